package ui

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"countersign/worker"
	"countersign/worker/safetext"
)

// readsAllowed is for how long reads below a directory are allowed at once.
const readsAllowed = 15 * time.Minute

// do acts on the item in the detail.
func (q *queue) do(a action) {
	switch a {
	case doNext:
		q.move(1)
	case doPrevious:
		q.move(-1)
	case doNextWaiting:
		q.moveOn(q.selected)
	case doApprove:
		q.approve()
	case doApproveSession:
		q.approveSession()
	case doAllowReads:
		q.allowReads()
	case doEdit:
		q.edit()
	case doAlways:
		q.always()
	case doMark:
		q.toggleMark()
	case doDecline:
		q.decline()
	case doRelease:
		if v, b := q.detail.view, q.detail.release; v.ID != 0 && !b.Hidden && !b.disabled { // it starts nothing
			q.answer(v, func() error { return q.u.Desk.Release(v.ID) }, func() { q.moveOn(v.ID) })
		}
	case doStop:
		if v, ok := q.decidable(q.detail.stop); ok {
			q.answer(v, func() error { return q.u.Desk.Stop(v.ID) }, nil)
		}
	default:
		if q.foldView.root.Visible() {
			q.foldView.scroll(a)
		} else {
			q.detail.scroll(a)
		}
	}
}

// decidable returns the item in the detail if the button allows its action and
// the operator can have read it. Where they cannot have, it is said. What only
// opens a dialog does not ask it, see awaiting.
func (q *queue) decidable(b *button) (worker.View, bool) {
	d := q.detail
	v := d.view
	waits := d.section == waiting && v.Decision == worker.Undecided && !d.ready // it is being read
	if v.ID == 0 || b.Hidden || b.disabled && !waits {
		return v, false
	}
	if waits || !d.lookedAt() {
		d.tooEarly()
		return v, false
	}
	return v, true
}

// awaiting returns the item in the detail if it waits for a decision, whether or
// not it can have been read: for what opens a dialog, in which nothing has started
// yet. Where it does not wait, a dialog says so, see cannot.
func (q *queue) awaiting(done string) (worker.View, bool) {
	d := q.detail
	v := d.view
	switch {
	case v.ID == 0:
		q.cannot("Nothing can be "+done, "No item is shown that waits for you.")
	case d.section != waiting || v.Decision != worker.Undecided:
		q.cannot(capital(itemName(v.Hold))+" cannot be "+done, goneWords(v, d.section == finished))
	default:
		return v, true
	}
	return v, false
}

// awaitingRead is awaiting for what needs the text of the item.
func (q *queue) awaitingRead(done string) (worker.View, bool) {
	v, ok := q.awaiting(done)
	if ok && !q.detail.ready {
		q.cannot(capital(itemName(v.Hold))+" cannot be "+done, "It is still being read: try again in a moment.")
		return v, false
	}
	return v, ok
}

// cannot says in a dialog that another one cannot be opened. Whoever wanted that
// may be typing already: under a dialog their words are no keys, and Ctrl+Enter
// behind them approves nothing.
func (q *queue) cannot(title, why string) {
	q.u.window.sheets.show(title, paragraph(why), nil, choice{label: "Back", key: doLeave})
}

// The two say why what a dialog is about cannot be started yet, where it came before
// the operator's eyes only as the dialog was opened; "" where it can.

// readThere is for a dialog that shows all that it would start: to read it there is
// enough.
func (q *queue) readThere() (early func() string) {
	read, opened := q.detail.lookedAt(), q.u.Now()
	return func() string {
		if read || q.u.watched.Load() && q.u.Now().Sub(opened) >= readingTime {
			return ""
		}
		return "Nothing was sent: a moment, read it first."
	}
}

// readBefore is for a dialog that lies over what it would start.
func (q *queue) readBefore() (early func() string) {
	read := q.detail.lookedAt()
	return func() string {
		if read {
			return ""
		}
		return "Nothing was sent: this came before the item can have been read. Go back and read it first."
	}
}

// answer sends an answer to an item. While one is on its way no other is sent: a
// key that was pressed twice would only be told that the item is decided. What the
// engines refuse names the item, since the next one may be in view by then.
func (q *queue) answer(v worker.View, send func() error, done func()) {
	if q.answering[v.ID] {
		return
	}
	q.answering[v.ID] = true
	q.u.ask(func() error { return q.became(v.Hold, send()) }, func(err error) {
		delete(q.answering, v.ID)
		var over isOver
		switch {
		case errors.As(err, &over):
			q.u.window.say(over.Error())
		case err != nil:
			q.u.window.say(sentence(itemName(v.Hold) + ": " + safetext.Clip(err.Error(), 1000)))
		case done != nil:
			done()
		}
	})
}

// approver is who approves what is in the detail, and what of it they have not
// seen.
func (q *queue) approver() string {
	if n := q.detail.unseen(); n > 0 {
		return fmt.Sprintf("%s, %s", byOperator, unseenWords(n))
	}
	return byOperator
}

func (q *queue) approve() {
	v, ok := q.decidable(q.detail.approve)
	switch {
	case !ok:
	case len(q.marked) > 0:
		q.approveMarked()
	default:
		by := q.approver()
		q.answer(v, func() error { return q.u.Desk.Approve(v.ID, v.Digest, by) }, func() { q.moveOn(v.ID) })
	}
}

func (q *queue) approveSession() {
	if v := q.detail.view; v.ID != 0 && q.detail.open() && !v.Grantable {
		q.u.window.say(sentence(worker.ErrNoGrant.Error()))
		return
	}
	v, ok := q.decidable(q.detail.session)
	if !ok {
		return
	}
	by := q.approver()
	q.answer(v, func() error { return q.u.Desk.ApproveForSession(v.ID, v.Digest, by) }, func() { q.moveOn(v.ID) })
}

func (q *queue) allowReads() {
	v, ok := q.decidable(q.detail.reads)
	if !ok {
		return
	}
	by, dir := q.approver(), readsUnder(q.detail.reading.task.Kind, q.detail.reading.task.Path)
	q.answer(v, func() error { return q.u.Desk.AllowReads(v.ID, v.Digest, dir, readsAllowed, by) },
		func() { q.moveOn(v.ID) })
}

// readsUnder is the directory that a read or a list is about, relative to the
// work directory.
func readsUnder(kind, asked string) string {
	p := path.Clean("/" + asked)
	if !isList(kind) {
		p = path.Dir(p)
	}
	if p = strings.TrimPrefix(p, "/"); p == "" {
		return "."
	}
	return p
}

// readsLabel says what one press allows.
func readsLabel(dir string) string {
	if dir == "." {
		return "Allow all reads here, 15 min"
	}
	return "Allow reads under " + safetext.Clip(dir, 40) + ", 15 min"
}

func (q *queue) decline() {
	v, ok := q.awaiting("declined")
	if !ok {
		return
	}
	w := q.u.window
	gone := w.sheets.askWords(w.keys, itemName(v.Hold), func(words string) {
		q.answer(v, func() error { return q.u.Desk.Decline(v.ID, v.Digest, words, byOperator) },
			func() { q.moveOn(v.ID) })
	})
	q.dialog = &aboutItem{v.Hold, gone}
}

// toggleMark marks the item in the detail, to be approved together with others,
// or takes the mark away. Only what was read whole can be marked: nobody looks at
// it again.
func (q *queue) toggleMark() {
	v, ok := q.decidable(q.detail.marking)
	switch {
	case !ok:
		return
	case q.marked[v.ID] != "":
		delete(q.marked, v.ID)
	case q.detail.unseen() > 0:
		q.u.window.say(fmt.Sprintf("#%d cannot be marked: %s. Scroll to the end of it first.", v.ID, unseenWords(q.detail.unseen())))
		return
	default:
		q.marked[v.ID] = v.Digest
	}
	q.refreshRows()
	q.detail.enable()
}

// forgetMarks drops the marks of what is not any more what was marked.
func (q *queue) forgetMarks() {
	maps.DeleteFunc(q.marked, func(id worker.HoldID, digest string) bool {
		v, ok := q.views[id]
		return !ok || v.Digest != digest || v.Decision != worker.Undecided || q.sectionOf(id) != waiting
	})
}

func (q *queue) sectionOf(id worker.HoldID) section {
	for _, e := range q.entries {
		if e.id == id {
			return e.section
		}
	}
	return finished
}

// approveMarked approves all that is marked, each as it was read.
func (q *queue) approveMarked() {
	marked := maps.Clone(q.marked)
	clear(q.marked)
	by := byOperator
	if len(marked) > 1 {
		by = fmt.Sprintf("%s, %d at once", byOperator, len(marked))
	}
	from := q.selected
	q.u.intent(func() error {
		var errs []error
		for _, id := range slices.Sorted(maps.Keys(marked)) {
			if err := q.u.Desk.Approve(id, marked[id], by); err != nil {
				errs = append(errs, fmt.Errorf("#%d: %w", id, err))
			}
		}
		return errors.Join(errs...)
	}, func() {
		if _, was := marked[from]; was && q.selected == from {
			q.selectItem(q.nextWaiting(from, marked))
		}
	})
	q.refreshRows()
	q.detail.enable()
}

// moveOn goes to the next item that waits for a decision, after one was made.
func (q *queue) moveOn(from worker.HoldID) {
	if q.selected != from {
		return // the operator has gone elsewhere meanwhile
	}
	q.selectItem(q.nextWaiting(from, nil))
}
