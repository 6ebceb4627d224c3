package ui

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/safetext"
)

// byOperator is who decided, as the journal names it.
const byOperator = worker.ByOperator

// section is a part of the queue.
type section int

const (
	waiting section = iota
	inLine          // approved, and not started
	running
	finished
)

func (s section) title() string {
	return [...]string{"Waiting for you", "In line", "Running", "Just finished"}[s]
}

// entry is one row of the queue: a section's title, an item, or a fold of items.
type entry struct {
	section section
	id      worker.HoldID // 0 for the title, below 0 for a fold
}

// queue is the place where work is decided on and watched. The item shown is
// remembered by its number, so that nothing that comes or goes can put another
// one under the operator's hand.
type queue struct {
	u        *UI
	root     *fyne.Container
	list     *rowList
	split    *container.Split
	empty    *fyne.Container
	emptyMsg *widget.Label
	detail   *detail

	entries   []entry
	views     map[worker.HoldID]worker.View
	folds     map[worker.HoldID]*fold
	foldIDs   map[string]worker.HoldID // by key, for as long as the window lives
	foldOf    map[worker.HoldID]worker.HoldID
	foldView  *foldView
	summaries map[worker.HoldID]string
	rows      map[*row]entry // what each row of the list was last given
	selected  worker.HoldID
	marked    map[worker.HoldID]string // by digest: what is approved together
	answering map[worker.HoldID]bool   // an answer to it is on its way
	dialog    *aboutItem               // nil where none is open
	offered   bool                     // nobody chose the selected item, and it does not wait
	settling  bool                     // the list is being told of a selection, not the operator's
}

func newQueue(u *UI, k *keys) *queue {
	q := &queue{u: u, summaries: map[worker.HoldID]string{}, rows: map[*row]entry{}, marked: map[worker.HoldID]string{},
		answering: map[worker.HoldID]bool{}, foldIDs: map[string]worker.HoldID{}, foldView: newFoldView(k)}
	q.list = &rowList{keys: k}
	q.list.Length = func() int { return len(q.entries) }
	q.list.CreateItem = func() fyne.CanvasObject { return newRow() }
	q.list.UpdateItem = func(i int, o fyne.CanvasObject) {
		q.rows[o.(*row)] = q.entries[i]
		o.(*row).set(q.face(q.entries[i]))
	}
	q.list.OnSelected = q.picked
	q.list.HideSeparators = true
	q.list.ExtendBaseWidget(q.list)
	q.detail = newDetail(u, k, q.onScreen, q.do)
	q.detail.marks = func() (int, bool) { return len(q.marked), q.marked[q.detail.view.ID] != "" }
	q.emptyMsg = widget.NewLabel("")
	q.emptyMsg.Alignment = fyne.TextAlignCenter
	q.emptyMsg.Wrapping = fyne.TextWrapWord
	q.split = container.NewHSplit(container.NewThemeOverride(q.list, dense{NewTheme(), 3, 3, false}),
		container.NewStack(q.detail.root, q.foldView.root))
	q.split.SetOffset(0.36)
	q.empty = container.NewCenter(container.New(atLeast{fyne.NewSize(520, 0)}, q.emptyMsg))
	q.empty.Hide()
	q.root = container.NewStack(q.split, q.empty)
	return q
}

func (q *queue) onScreen() bool { return q.u.visible.Load() && q.root.Visible() }

// draw takes over a snapshot.
func (q *queue) draw(s worker.Snapshot) {
	was := q.entries
	q.take(s)
	q.forgetMarks()
	q.keepSelection()
	if slices.Equal(was, q.entries) {
		q.refreshRows()
	} else {
		q.restructure(was)
	}
	q.showSelected()
	q.tellDialog()
	none := len(q.entries) == 0
	if none {
		setText(q.emptyMsg, emptyWords(s))
	}
	if q.empty.Visible() != none {
		q.empty.Hidden, q.split.Hidden = !none, none
		q.root.Refresh()
	}
}

// refreshRows draws the rows that say something else now, and nothing when none
// does: whatever is drawn costs a picture of the whole window.
func (q *queue) refreshRows() {
	for r, e := range q.rows {
		if q.there(e.id) || e.id == 0 {
			r.set(q.face(e))
		}
	}
}

func (q *queue) take(s worker.Snapshot) {
	q.entries = nil
	q.views = make(map[worker.HoldID]worker.View, len(s.Waiting)+len(s.Running)+len(s.Finished))
	q.folds, q.foldOf = map[worker.HoldID]*fold{}, map[worker.HoldID]worker.HoldID{}
	undecided, decided := byDecision(s.Waiting)
	for i, views := range [][]worker.View{undecided, decided, s.Running, s.Finished} {
		if len(views) > 0 {
			q.entries = append(q.entries, entry{section: section(i)})
		}
		q.foldSection(section(i), views)
	}
	for id := range q.summaries {
		if _, ok := q.views[id]; !ok {
			delete(q.summaries, id)
		}
	}
}

// byDecision parts what waits for the operator from what waits for its turn.
func byDecision(views []worker.View) (undecided, decided []worker.View) {
	for _, v := range views {
		if v.Decision == worker.Undecided {
			undecided = append(undecided, v)
		} else {
			decided = append(decided, v)
		}
	}
	return undecided, decided
}

// keepSelection stays with the item that is being read as long as it is there.
// One that the operator never chose gives way to the first that waits.
func (q *queue) keepSelection() {
	if in, folded := q.foldOf[q.selected]; folded {
		q.selected = in
	}
	there := q.there(q.selected)
	if there && !q.offered {
		return
	}
	if next := q.nextWaiting(0, nil); next != 0 {
		q.selected, q.offered = next, false
		return
	}
	if there {
		return
	}
	q.selected, q.offered = 0, false
	for _, e := range q.entries {
		if e.id != 0 {
			q.selected, q.offered = e.id, true
			return
		}
	}
}

// there reports whether an item or a fold has a row.
func (q *queue) there(id worker.HoldID) bool {
	_, item := q.views[id]
	return item || q.folds[id] != nil
}

const (
	sectionHeight = 30
	leaseSteps    = 18 // in which a lease is seen to shrink
)

// restructure tells the list that its rows are others now.
func (q *queue) restructure(was []entry) {
	for i, e := range was {
		if e.id == 0 && (i >= len(q.entries) || q.entries[i].id != 0) {
			q.list.SetItemHeight(i, rowHeight())
		}
	}
	for i, e := range q.entries {
		if e.id == 0 {
			q.list.SetItemHeight(i, sectionHeight)
		}
	}
	q.mark()
	q.list.Refresh()
}

// mark shows in the list which item is selected.
func (q *queue) mark() {
	q.settling = true
	defer func() { q.settling = false }()
	if i := q.index(); i >= 0 {
		q.list.Select(i)
	} else {
		q.list.UnselectAll()
	}
}

func (q *queue) index() int {
	return slices.IndexFunc(q.entries, func(e entry) bool { return e.id != 0 && e.id == q.selected })
}

// picked is called when a row was clicked.
func (q *queue) picked(i int) {
	if q.settling || i >= len(q.entries) {
		return
	}
	q.u.window.present()
	if q.entries[i].id == 0 { // a title cannot be selected
		q.list.UnselectAll()
		q.mark()
		return
	}
	q.selected, q.offered = q.entries[i].id, false
	q.showSelected()
}

func (q *queue) showSelected() {
	if f := q.folds[q.selected]; f != nil {
		q.detail.clear()
		q.foldView.show(f)
		return
	}
	q.foldView.root.Hide()
	v, ok := q.views[q.selected]
	if !ok {
		q.detail.clear()
		return
	}
	i := q.index()
	q.detail.show(v, q.entries[i].section)
}

// selectItem moves to an item, if it is there.
func (q *queue) selectItem(id worker.HoldID) {
	if q.there(id) {
		q.selected, q.offered = id, false
		q.mark()
		q.showSelected()
	}
}

func (q *queue) move(by int) {
	for i := q.index() + by; i >= 0 && i < len(q.entries); i += by {
		if q.entries[i].id != 0 {
			q.selectItem(q.entries[i].id)
			return
		}
	}
}

// nextWaiting is the undecided item after another one, or the first there is; 0
// for none. What is in decided was decided a moment ago.
func (q *queue) nextWaiting(after worker.HoldID, decided map[worker.HoldID]string) worker.HoldID {
	var next worker.HoldID
	for _, e := range q.entries {
		if e.section != waiting || e.id == 0 || e.id == after || q.views[e.id].Decision != worker.Undecided {
			continue
		}
		if _, done := decided[e.id]; done {
			continue
		}
		if next == 0 || next < after && e.id > after {
			next = e.id
		}
	}
	return next
}

func (q *queue) face(e entry) face {
	if e.id == 0 {
		return face{title: e.section.title()}
	}
	if f := q.folds[e.id]; f != nil {
		return f.face()
	}
	v := q.views[e.id]
	s, ok := q.summaries[e.id]
	if !ok {
		s = q.summarize(v)
	}
	f := face{kind: v.Item.Kind, summary: s, word: v.Hold.WithFailure(v.Word)}
	f.rest = safetext.Clip(v.Item.SessionID, 60) + " · " + recently(v.Age)
	if f.marked = q.marked[e.id] != ""; f.marked {
		f.rest = "marked · " + f.rest
	}
	if e.section == finished {
		f.rest = rowRest(v.Hold, f.rest)
		return f
	}
	if v.Decision == worker.Undecided && v.DecisionLeft > 0 {
		f.right, f.urgent = countdown(v.DecisionLeft), v.DecisionLeft < time.Minute
	}
	if v.LeaseWindow > 0 {
		part := float64(v.Lease) / float64(v.LeaseWindow)
		f.lease, f.leased, f.risk = float32(math.Round(part*leaseSteps)/leaseSteps), true, v.AtRisk
	}
	return f
}

// summarize finds the summary of an item, later if it is large.
func (q *queue) summarize(v worker.View) string {
	if len(v.Item.Payload) <= readAtOnce {
		q.summaries[v.ID] = summary(v.Item)
		return q.summaries[v.ID]
	}
	q.summaries[v.ID] = summaryLater(v.Item)
	q.u.start(func(context.Context) {
		s := summary(v.Item)
		q.u.OnUI(func() {
			q.summaries[v.ID] = s
			q.refreshRows()
		})
	})
	return q.summaries[v.ID]
}

// emptyWords says what would bring work here.
func emptyWords(s worker.Snapshot) string {
	switch {
	case s.Paused:
		return "Nothing waits. Countersign is paused and claims nothing until you resume."
	case s.Away:
		return "Nothing waits. Claiming stopped because nobody answered; any key or click here starts it again."
	case connectionTrouble(s.Connections) != "":
		return "Nothing waits, and nothing can come: see above."
	}
	return "Nothing waits. When an agent's session asks for a tool call, it appears here for you to countersign."
}

// itemName is a short name of our own for an item.
func itemName(h worker.Hold) string {
	switch h.Item.Kind {
	case wire.KindExec, wire.KindRead, wire.KindWrite, wire.KindList:
		return fmt.Sprintf("%s #%d", h.Item.Kind, h.ID)
	}
	return fmt.Sprintf("item #%d", h.ID)
}

// unseenWords counts rows as they are in the window: one line can fill many.
func unseenWords(n int) string { return countWords(n, "row", "rows") + " unseen" }
