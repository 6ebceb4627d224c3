package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// barRoom is the space at the right of what may be scrolled, where its bar is.
const barRoom = 16

// factGrid says where an item comes from and where it would run.
type factGrid struct {
	box                                                       *fyne.Container
	session, connection, dir, asked, limit, lease, item, code *widget.Label
}

func newFactGrid() *factGrid {
	g := &factGrid{}
	value := func() *widget.Label {
		l := widget.NewLabel("")
		l.Wrapping = fyne.TextWrapWord
		return l
	}
	g.session, g.connection, g.dir = value(), value(), value()
	g.asked, g.limit, g.lease, g.item, g.code = value(), value(), value(), value(), value()
	least := fyne.NewSize(fyne.MeasureText("Connection", theme.TextSize(), fyne.TextStyle{}).Width+10, 0)
	form := func(pairs ...any) *fyne.Container {
		c := container.New(layout.NewFormLayout())
		for i := 0; i < len(pairs); i += 2 {
			name := widget.NewLabel(pairs[i].(string))
			name.Importance = widget.LowImportance
			c.Add(container.New(atLeast{least}, name))
			c.Add(pairs[i+1].(fyne.CanvasObject))
		}
		return c
	}
	// What is named by others can be long: it has the whole width, and does not
	// push about what is short.
	// That comes last, since it is what a low window leaves out.
	columns := container.NewGridWithColumns(2, form("Asked", g.asked, "Lease", g.lease), form("Code", g.code, "Time limit", g.limit))
	names := form("Session", g.session, "Connection", g.connection, "Item", g.item)
	g.box = container.New(layout.NewCustomPaddedLayout(4, 8, 10, barRoom), container.NewThemeOverride(
		container.New(layout.NewCustomPaddedVBoxLayout(4), form("Runs in", g.dir), columns, names), dense{NewTheme(), 2, 0, false}))
	return g
}

func (g *factGrid) set(v worker.View, task execute.Task, now time.Time) {
	setText(g.session, safetext.Clip(v.Item.SessionID, sessionShown))
	connection := v.Connection
	if v.Environment != "" {
		connection += " · " + safetext.Clip(v.Environment, 60)
	}
	setText(g.connection, connection)
	setText(g.dir, safetext.Line(v.WorkDir))
	asked := recently(v.Age)
	if v.Age >= 10*time.Second {
		asked += " ago"
	}
	switch {
	case v.Closed:
		asked = heldWords(v, now)
	case v.Age == 0:
		asked = "held since " + when(v.OpenedAt, now)
	}
	if v.Returned {
		asked += ", handed out again"
	}
	setText(g.asked, asked)
	limit := "none"
	if task.Kind == wire.KindExec {
		limit = limitWords(task.TimeLimit)
	}
	setText(g.limit, limit)
	setText(g.lease, leaseWords(v))
	setText(g.item, safetext.Clip(v.Item.ID, 80))
	setText(g.code, policy.Code(v.Digest))
}

// heldWords says from when to when an item that is over was held.
func heldWords(v worker.View, now time.Time) string {
	words := "held from " + when(v.OpenedAt, now)
	if len(v.Steps) == 0 {
		return words
	}
	end := v.Steps[len(v.Steps)-1].At
	if end.Local().Format(time.DateOnly) == v.OpenedAt.Local().Format(time.DateOnly) {
		return words + " to " + end.Local().Format(time.TimeOnly)
	}
	return words + " to " + when(end, now)
}

// leaseWords says how long the harness leaves the item to us.
func leaseWords(v worker.View) string {
	switch {
	case v.Closed:
		return "over"
	case v.LeaseWindow == 0:
		return "held now: see the queue"
	case v.Lease <= 0:
		return "has probably lapsed"
	case v.AtRisk:
		return ageWords(v.Lease) + " left, the last renewal was not confirmed"
	}
	left := v.Lease
	if left > 20*time.Second {
		left = left.Truncate(10 * time.Second)
	}
	return ageWords(left) + ", then renewed"
}
