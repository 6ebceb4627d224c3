package ui

import (
	"errors"
	"slices"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
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
	st.hold(fyne.KeyReturn, ctrl)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	for range 50 {
		st.pass(time.Second)
		st.repeat(fyne.KeyReturn, ctrl)
	}
	st.decided("approve 1 digest1 by operator")
	st.window.keys.up(&fyne.KeyEvent{Name: fyne.KeyReturn})
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 2 digest2 by operator")
}

// decided checks that this has been decided, and nothing else.
func (st *stage) decided(want ...string) {
	st.t.Helper()
	st.pump()
	st.wgIdle()
	if got := st.desk.intents(); !slices.Equal(got, want) {
		st.t.Fatalf("decided: %q, want %q", got, want)
	}
}

func TestAHeldKeyDecidesNothingAlthoughAnotherIsPressedMeanwhile(t *testing.T) {
	for _, held := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeyR} {
		for _, other := range []fyne.KeyName{
			desktop.KeyShiftLeft, desktop.KeyControlRight, fyne.KeySpace, fyne.KeyJ,
			fyne.KeyUnknown, // F13 and all that has no name in Fyne
		} {
			st, _ := newStageWithRules(t)
			st.show(grantable(execItem(1, "one"), execItem(2, "two"), execItem(3, "three")))
			st.hold(held, ctrl)
			st.until("the decision", func() bool { return len(st.desk.intents()) == 1 })
			first := st.desk.intents()[0]
			st.pass(time.Second)
			st.window.keys.down(&fyne.KeyEvent{Name: other})
			st.repeat(held, ctrl)
			st.repeat(held, ctrlShift)
			st.window.keys.up(&fyne.KeyEvent{Name: other})
			st.repeat(held, ctrl)
			st.repeat(held, ctrlShift)
			st.decided(first)
		}
	}
}

func TestAKeyThatWasNotSeenGoingDownDecidesNothing(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	st.window.keys.down(&fyne.KeyEvent{Name: desktop.KeyShiftLeft})
	st.repeat(fyne.KeyReturn, ctrl) // it went down where nobody listens, in a menu
	st.didNothing()
}

func TestAKeyThatTheDriverDoesNotKnowToRepeatDecidesOnceOnly(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	for range 3 { // it comes as a press each time
		st.hold(fyne.KeyReturn, ctrl)
		st.pass(time.Second)
	}
	st.decided("approve 1 digest1 by operator")
}

func TestAKeyWithoutALatinLetterDecidesOncePerPress(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two"), execItem(3, "three")))
	// On a Cyrillic keyboard, R has no name when it goes down.
	cyrillic := &fyne.KeyEvent{Physical: fyne.HardwareKey{ScanCode: 27}}
	other := &fyne.KeyEvent{Physical: fyne.HardwareKey{ScanCode: 191}}
	st.window.keys.down(cyrillic)
	st.repeat(fyne.KeyR, ctrl)
	st.did("release 1")
	st.put(waitingItems(execItem(2, "two"), execItem(3, "three")))
	st.pass(time.Second)
	st.window.keys.down(other)
	st.repeat(fyne.KeyR, ctrl)
	st.decided("release 1")
	st.window.keys.up(cyrillic)
	st.window.keys.down(cyrillic)
	st.repeat(fyne.KeyR, ctrl)
	st.did("release 2")
}

func TestAKeyHeldWhileTheFocusIsElsewhereDecidesNothing(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.hold(fyne.KeyReturn, ctrl)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	st.focus(false)
	st.window.keys.up(&fyne.KeyEvent{Name: fyne.KeyReturn}) // said by the driver, of every key
	st.focus(true)
	st.pass(time.Second)
	st.hold(fyne.KeyReturn, ctrl) // a repeat, which the driver takes for a press
	st.window.keys.down(&fyne.KeyEvent{Name: desktop.KeyControlLeft})
	st.pass(time.Minute)
	st.repeat(fyne.KeyReturn, ctrl)
	st.decided("approve 1 digest1 by operator")
	st.window.keys.up(&fyne.KeyEvent{Name: fyne.KeyReturn})
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 2 digest2 by operator")
}

func TestAfterTheFocusCameTheFirstPressOfControlAndAKeyDecides(t *testing.T) {
	for name, first := range map[string]func(*stage){
		"Control was pressed here":             func(st *stage) { st.window.keys.down(&fyne.KeyEvent{Name: controlKeys()[0]}) },
		"a held key would have spoken by then": func(st *stage) { st.pass(longestDelay) },
	} {
		st := newStage(t)
		st.show(waitingItems(execItem(1, "one")))
		st.focus(false)
		st.focus(true)
		st.pass(readingTime)
		first(st)
		st.press(fyne.KeyReturn, ctrl)
		t.Log(name)
		st.did("approve 1 digest1 by operator")
	}
}

// focus is what the driver tells of the window's input focus.
func (st *stage) focus(here bool) {
	life := st.App.Lifecycle().(interface {
		OnEnteredForeground() func()
		OnExitedForeground() func()
	})
	if here {
		life.OnEnteredForeground()()
	} else {
		life.OnExitedForeground()()
	}
}

func TestAKeyHeldAsADialogOpensOrClosesDecidesNothingMore(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyD, ctrl)
	st.hold(fyne.KeyReturn, ctrl)
	st.did(`decline 1 digest1 "" by operator`)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	st.pass(time.Second)
	st.window.keys.down(&fyne.KeyEvent{Name: desktop.KeyShiftLeft})
	st.repeat(fyne.KeyReturn, ctrl)
	st.hold(fyne.KeyD, ctrl)
	if !st.window.sheets.open() {
		t.Fatal("Ctrl+D opened nothing")
	}
	st.repeat(fyne.KeyReturn, ctrl) // still held, from the first dialog
	st.decided(`decline 1 digest1 "" by operator`)
	if !st.window.sheets.open() {
		t.Error("a held key answered the dialog")
	}
}

func TestTheFieldsAndListsTellTheDispatcherWhenAKeyIsLetGo(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	e := &fyne.KeyEvent{Name: fyne.KeyReturn}
	for _, w := range []desktop.Keyable{newField(st.window.keys, "", 1), &rowList{keys: st.window.keys}} {
		w.KeyDown(e)
		w.KeyUp(e)
		if len(st.window.keys.held) > 0 {
			t.Errorf("after %T has let go: %v are held", w, st.window.keys.held)
		}
	}
}

func TestTheMouseDecidesWhileAKeyIsHeld(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.hold(fyne.KeyReturn, ctrl)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	st.pass(time.Second)
	st.wgIdle()
	test.Tap(st.window.queue.detail.approve)
	st.did("approve 2 digest2 by operator")
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
	st.until("the words", func() bool { return st.shows("Exec #1: this is not what was shown: look at the item again") })
	if st.window.queue.selected != 1 {
		t.Error("it went on to another item though nothing was decided")
	}
}
