package ui

import (
	"fmt"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"

	"countersign/worker"
	"countersign/worker/api/wire"
)

// answerRow is the buttons of a detail: all that can be answered to the item.
type answerRow struct {
	box                           *fyne.Container
	reads, approve, session       *button
	ever, editing, marking, whole *button
	decline, release, stop        *button
	row                           string // what decides which buttons there are and how wide
	rules                         bool   // rules can be added to
}

// newAnswerRow makes the buttons; do is nil where nothing can be done.
func newAnswerRow(do func(action), rules bool) *answerRow {
	r := &answerRow{rules: rules}
	make := func(label string, a action, icon fyne.Resource) *button {
		return newButton(label, keysOf(a), icon, func() { do(a) })
	}
	r.reads = make("", doAllowReads, theme.FolderOpenIcon())
	r.approve = make("Approve", doApprove, theme.ConfirmIcon())
	r.session = make("For this session", doApproveSession, theme.ConfirmIcon())
	r.ever = make("Always…", doAlways, theme.DocumentSaveIcon())
	r.editing = make("Edit…", doEdit, theme.DocumentCreateIcon())
	r.marking = make("Mark", doMark, theme.CheckButtonIcon())
	r.whole = make("", doWhole, theme.VisibilityIcon())
	r.decline = make("Decline…", doDecline, theme.CancelIcon())
	r.release = make("Release", doRelease, theme.ContentUndoIcon())
	r.stop = make("Stop", doStop, theme.MediaStopIcon())
	r.approve.tone, r.stop.tone = theme.ColorNamePrimary, theme.ColorNameError
	r.box = container.NewPadded(container.New(&buttonRow{}, r.reads, r.approve, r.session, r.ever, r.editing,
		r.whole, r.marking, r.decline, r.release, r.stop))
	r.whole.Hide()
	return r
}

// answerable is what decides about the buttons.
type answerable struct {
	view    worker.View
	section section
	open    bool // it awaits a decision, and is there to be read
	unseen  int
	marked  int  // items marked in all
	isIn    bool // this one is among them
	reads   string
}

// enable lets through what can be done with the item now, and reports whether
// the buttons have to be laid out anew.
func (r *answerRow) enable(a answerable) (again bool) {
	v := a.view
	waits, open := a.section == waiting, a.open
	exec, write := v.Item.Kind == wire.KindExec, v.Item.Kind == wire.KindWrite
	label := "Approve"
	switch {
	case !open:
	case a.marked > 0:
		label = fmt.Sprintf("Approve %d marked", a.marked)
	case a.unseen > 0:
		label = "Approve with " + unseenWords(a.unseen)
	}
	r.approve.set(label, open)
	r.decline.set("Decline…", waits && v.Decision == worker.Undecided) // read or not: it starts nothing
	r.release.set("Release", (waits || a.section == inLine) && v.Acceptance == worker.NotAsked)
	r.stop.set("Stop", a.section == running && v.Word != worker.WordStopping)
	if session := "For this session"; v.Grantable || !open {
		r.session.set(session, open)
	} else {
		r.session.set("Not for a session: always asked", false)
	}
	r.ever.set("Always…", open)
	r.editing.set("Edit…", open)
	r.reads.set(readsLabel(a.reads), open && v.Grantable)
	if a.isIn {
		r.marking.icon = theme.CheckButtonCheckedIcon()
		r.marking.set("Marked", open)
	} else {
		r.marking.icon = theme.CheckButtonIcon()
		r.marking.set("Mark", open)
	}
	r.approve.Hidden, r.decline.Hidden = !waits, !waits
	r.release.Hidden = !waits && a.section != inLine
	r.session.Hidden, r.marking.Hidden = !open, !open
	r.reads.Hidden = !open || exec || write
	r.editing.Hidden = !open || !exec && !write
	r.ever.Hidden = !open || !r.rules
	r.stop.Hidden = a.section != running
	if a.section == finished && r.whole.Hidden != r.box.Hidden {
		r.box.Hidden = r.whole.Hidden
		again = true
	} else if a.section != finished && r.box.Hidden {
		r.box.Hidden = false
		again = true
	}
	row := fmt.Sprint(a.section, open, exec, write, v.Grantable, label, r.reads.label, r.whole.Hidden, r.whole.label, a.isIn)
	if row != r.row {
		r.row, again = row, true
		r.box.Refresh()
	}
	return again
}
