package ui

import (
	"errors"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
)

func TestEverythingCanBeDoneWithTheKeyboardAlone(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Waiting = []worker.View{execItem(1, "one"), execItem(2, "two"), execItem(3, "three"), execItem(4, "four")}
		s.Running = []worker.View{asRunning(execItem(9, "sleep 100"))}
	})

	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 1 digest1 by operator")
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })

	st.pass(time.Second)
	st.press(fyne.KeyD, ctrl)
	for _, r := range "not now" {
		st.window.win.Canvas().Focused().TypedRune(r)
	}
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 2 digest2 "not now" by operator`)
	st.until("the next item", func() bool { return st.window.queue.selected == 3 })

	st.pass(time.Second)
	st.press(fyne.KeyR, ctrl)
	st.did("release 3")

	for st.window.queue.selected != 9 {
		st.press(fyne.KeyJ, 0)
	}
	st.pass(time.Second)
	st.press(fyne.KeyBackspace, ctrlShift)
	st.did("stop 9")

	st.press(fyne.KeyP, ctrl)
	st.did("pause")
	st.press(fyne.KeyDelete, ctrlShift)
	st.did("stop everything")

	st.press(fyne.Key2, ctrl)
	if !st.window.history.root.Visible() {
		t.Error("Ctrl+2 did not go to the history")
	}
	st.press(fyne.KeyF, ctrl)
	if st.window.win.Canvas().Focused() != fyne.Focusable(st.window.history.search) {
		t.Error("Ctrl+F did not go to the search field")
	}
	st.press(fyne.KeyEscape, 0)
	if st.window.win.Canvas().Focused() != nil {
		t.Error("Escape did not leave the field")
	}
	st.press(fyne.Key1, ctrl)
	st.press(fyne.KeyK, 0)
	if st.window.queue.selected != 4 {
		t.Errorf("K went to %d, want 4", st.window.queue.selected)
	}
	st.press(fyne.KeyF1, 0)
	if !st.shows("approve the item shown") {
		t.Error("F1 does not show the keys")
	}
	st.press(fyne.KeyEscape, 0)
	if st.window.sheets.open() {
		t.Error("Escape did not close the keys")
	}
}

func TestNoBareKeyDecides(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "rm -rf build")))
	c := st.window.win.Canvas()
	names := []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace, fyne.KeyA, fyne.KeyY, fyne.KeyD, fyne.KeyR, fyne.KeyE, fyne.KeyL, fyne.KeyG, fyne.KeyBackspace}
	for range 12 { // whatever Tab leads to
		for _, n := range names {
			st.press(n, 0)
		}
		c.FocusNext()
	}
	st.didNothing()
}

func TestApproveCannotTakeTheFocus(t *testing.T) {
	if _, ok := any(&button{}).(fyne.Focusable); ok {
		t.Error("a button can take the focus, and Space would press it")
	}
}

func TestADecisionNeedsTheItemToHaveBeenInView(t *testing.T) {
	st := newStage(t)
	st.Show()
	st.put(waitingItems(execItem(1, "one")))
	st.pass(readingTime - time.Millisecond)
	st.press(fyne.KeyReturn, ctrl)
	st.press(fyne.KeyD, ctrl)
	if st.window.sheets.open() {
		t.Fatal("the decline dialog opened for an item nobody can have read")
	}
	st.didNothing()
	st.pass(time.Millisecond)
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 1 digest1 by operator")
}

func TestComingToTheFrontRestartsTheReadingTime(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.window.shown()
	st.press(fyne.KeyReturn, ctrl)
	st.didNothing()
}

func TestNothingIsDecidedInAWindowWithoutTheFocus(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.watched.Store(false)
	st.press(fyne.KeyReturn, ctrl)
	test.Tap(st.window.queue.detail.approve)
	st.didNothing()
}

func TestAHeldKeyDecidesOnceOnly(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyReturn, ctrl)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	for range 50 {
		st.pass(time.Second)
		st.repeat(fyne.KeyReturn, ctrl)
	}
	st.wgIdle()
	if got := st.desk.intents(); len(got) != 1 {
		t.Errorf("a held key decided %d times: %q", len(got), got)
	}
}

func TestNothingIsDecidedWhileAFieldHasTheFocus(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.press(fyne.KeyF, ctrl)
	st.press(fyne.Key1, ctrl) // the place changes, and the field is left
	st.press(fyne.KeyF, ctrl)
	for _, n := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyD, fyne.KeyR, fyne.KeyE, fyne.KeyL, fyne.KeyG} {
		st.press(n, ctrl)
	}
	st.press(fyne.KeyReturn, ctrlShift)
	st.press(fyne.KeyBackspace, ctrlShift)
	if st.window.sheets.open() {
		t.Error("a dialog opened")
	}
	st.didNothing()
}

func TestUnderADialogOnlyItsOwnKeysWork(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.press(fyne.KeyF1, 0)
	for _, n := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyD, fyne.KeyR, fyne.KeyP} {
		st.press(n, ctrl)
	}
	st.didNothing()
	if !st.window.sheets.open() {
		t.Error("the dialog is gone")
	}
}

func TestDeclineIsForTheItemTheDialogWasOpenedFor(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyD, ctrl)
	st.put(waitingItems(execItem(2, "two"))) // 1 is withdrawn meanwhile
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 1 digest1 "" by operator`)
}

func TestARefusedIntentIsSaidInWords(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.desk.refuse = errors.New("this is not what was shown: look at the item again before deciding")
	st.press(fyne.KeyReturn, ctrl)
	st.until("the words", func() bool { return st.shows("This is not what was shown: look at the item again") })
	if st.window.queue.selected != 1 {
		t.Error("it went on to another item though nothing was decided")
	}
}
