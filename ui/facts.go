package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// factGrid says where an item comes from and where it would run.
type factGrid struct {
	box                                                 *fyne.Container
	session, connection, dir, asked, limit, lease, item *widget.Label
}

func newFactGrid() *factGrid {
	g := &factGrid{}
	value := func() *widget.Label {
		l := widget.NewLabel("")
		l.Wrapping = fyne.TextWrapWord
		return l
	}
	g.session, g.connection, g.dir = value(), value(), value()
	g.asked, g.limit, g.lease, g.item = value(), value(), value(), value()
	form := func(pairs ...any) *fyne.Container {
		c := container.New(layout.NewFormLayout())
		for i := 0; i < len(pairs); i += 2 {
			name := widget.NewLabel(pairs[i].(string))
			name.Importance = widget.LowImportance
			c.Add(name)
			c.Add(pairs[i+1].(fyne.CanvasObject))
		}
		return c
	}
	columns := container.NewGridWithColumns(2,
		form("Session", g.session, "Connection", g.connection, "Lease", g.lease),
		form("Asked", g.asked, "Time limit", g.limit, "Item", g.item))
	wide := form("Runs in", g.dir)
	g.box = container.NewStack(container.NewThemeOverride(
		container.NewVBox(wide, columns), dense{NewTheme(), 2, 3, false}))
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
	setText(g.item, safetext.Clip(v.Item.ID, 80)+" · code "+code(v.Digest))
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
	return ageWords(left) + " left, then renewed"
}
