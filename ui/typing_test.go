package ui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"countersign/worker"
)

// typed is what comes of typing words, wherever they go.
func (st *stage) typed(words string) {
	st.t.Helper()
	for _, r := range words {
		name := fyne.KeyName(strings.ToUpper(string(r)))
		if r == ' ' {
			name = fyne.KeySpace
		}
		st.press(name, 0)
		if f := st.window.win.Canvas().Focused(); f != nil {
			f.TypedRune(r)
		}
		st.pass(200 * time.Millisecond)
	}
}

// atOnce shows two items and goes to the second, which nobody can have read.
func (st *stage) atOnce(second worker.View) {
	st.t.Helper()
	st.show(waitingItems(execItem(1, "one"), second, execItem(3, "three")))
	st.press(fyne.KeyJ, 0)
	st.pass(100 * time.Millisecond)
}

func TestWordsTypedAfterADeclineAtOnceAreForTheAgent(t *testing.T) {
	st := newStage(t)
	st.atOnce(execItem(2, "two"))
	st.press(fyne.KeyD, ctrl)
	st.typed("too risky")
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 2 digest2 "too risky" by operator`)
	st.decided(`decline 2 digest2 "too risky" by operator`)
}

func TestADeclineAndAReleaseNeedNoTimeToRead(t *testing.T) {
	st := newStage(t)
	st.Show()
	st.put(waitingItems(execItem(1, "one"), execItem(2, strings.Repeat("x", readAtOnce+1))))
	st.press(fyne.KeyD, ctrl)
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 1 digest1 "" by operator`)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	st.press(fyne.KeyR, ctrl)
	st.did("release 2")
}

func TestWordsTypedAfterAnEditAtOnceAreInTheCommandAtItsEnd(t *testing.T) {
	st := newStage(t)
	st.atOnce(execItem(2, "make\nmake"))
	st.press(fyne.KeyE, ctrl)
	st.typed(" test")
	st.press(fyne.KeyReturn, ctrl)
	st.did(`approve 2 digest2 as {"command":"make\nmake test"} by operator`)
	st.decided(`approve 2 digest2 as {"command":"make\nmake test"} by operator`)
}

func TestWhatADialogWouldStartStillHasToHaveBeenRead(t *testing.T) {
	for name, c := range map[string]struct {
		key    fyne.KeyName
		covers bool // the dialog does not show what would start
		want   []string
	}{
		"edited": {fyne.KeyE, false, []string{`approve 2 digest2 as {"command":"allow"} by operator`}},
		"always": {fyne.KeyL, true, []string{"add for 2 allow", "approve 2 digest2 by operator, always"}},
	} {
		t.Run(name, func(t *testing.T) {
			st, _ := newStageWithRules(t)
			st.atOnce(execItem(2, "two"))
			st.press(c.key, ctrl)
			st.until("the text", st.textIsThere)
			st.write("allow")
			st.tray.openItem(3) // which is no way to have read 2
			st.press(fyne.KeyReturn, ctrl)
			st.didNothing()
			if !st.window.sheets.open() || !st.shows("Nothing was sent: ") {
				t.Fatalf("the dialog is open: %v, %q", st.window.sheets.open(), st.texts())
			}
			st.picture("too-early-" + name)
			st.watched.Store(false)
			st.pass(time.Second)
			st.press(fyne.KeyReturn, ctrl)
			st.didNothing() // the window had not the focus
			st.watched.Store(true)
			if c.covers {
				st.pass(time.Second)
				st.press(fyne.KeyReturn, ctrl)
				st.didNothing()
				st.press(fyne.KeyEscape, 0)
				st.window.queue.selectItem(2)
				st.pass(time.Second)
				st.press(c.key, ctrl)
				st.until("the text", st.textIsThere)
				st.write("allow")
			}
			st.press(fyne.KeyReturn, ctrl)
			st.until("the dialog closes", func() bool { return !st.window.sheets.open() })
			st.decided(c.want...)
		})
	}
}

func TestWhatLayUnderADialogIsReadFromWhenThatCloses(t *testing.T) {
	for name, key := range map[string]fyne.KeyName{"decline": fyne.KeyD, "edit": fyne.KeyE, "keys": fyne.KeyF1} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.atOnce(execItem(2, "two"))
			mod := ctrl
			if key == fyne.KeyF1 {
				mod = 0
			}
			st.press(key, mod)
			st.pass(time.Second)
			st.press(fyne.KeyEscape, 0)
			st.press(fyne.KeyReturn, ctrl)
			st.didNothing()
			st.pass(time.Second)
			st.press(fyne.KeyReturn, ctrl)
			st.did("approve 2 digest2 by operator")
		})
	}
}

func TestARuleIsNotWrittenBeforeItIsThere(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.window.keys.down(&fyne.KeyEvent{Name: fyne.KeyL})
	st.window.queue.always() // the rule comes with the next pump
	if !st.window.sheets.open() {
		t.Fatal("no dialog opened at once")
	}
	f := st.window.win.Canvas().Focused().(*field)
	f.TypedRune('k')
	st.window.keys.down(&fyne.KeyEvent{Name: fyne.KeyReturn})
	st.window.keys.shortcut(&desktop.CustomShortcut{KeyName: fyne.KeyReturn, Modifier: ctrl})
	st.until("the rule", st.textIsThere)
	if want := "[[rule]]\nname = \"like #1\"\n"; f.Text != want {
		t.Errorf("the field holds %q, want %q", f.Text, want)
	}
	st.didNothing()
}

// Where a dialog cannot be opened, another one says so: the words that are typed
// next go nowhere, and Ctrl+Enter behind them approves nothing.
func TestWordsTypedAfterARefusedDialogAreNoShortcuts(t *testing.T) {
	over := asDone(execItem(9, "nine"))
	over.Closed = true
	for name, c := range map[string]struct {
		item worker.View
		key  fyne.KeyName
		says string
	}{
		"declined when it is over":     {over, fyne.KeyD, "Exec #9 cannot be declined"},
		"edited when it is over":       {over, fyne.KeyE, "Exec #9 cannot be edited"},
		"allowed when it is over":      {over, fyne.KeyL, "Exec #9 cannot be approved always"},
		"a read that is edited":        {readItem(9, "a"), fyne.KeyE, "Read #9 cannot be edited"},
		"a command that cannot be":     {execItem(9, "ls \x1b[2K"), fyne.KeyE, "Exec #9 cannot be edited"},
		"a rule where there are none":  {execItem(9, "ls"), fyne.KeyL, "Exec #9 cannot be approved always"},
		"a large one that is not read": {execItem(9, strings.Repeat("x\n", readAtOnce)), fyne.KeyE, "Exec #9 cannot be edited"},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.show(func(s *worker.Snapshot) {
				s.Waiting = []worker.View{execItem(1, "one"), execItem(2, "two")}
				if c.item.Closed {
					s.Finished = []worker.View{c.item}
				} else {
					s.Waiting = append(s.Waiting, c.item)
				}
			})
			st.window.queue.selectItem(9)
			st.press(c.key, ctrl)
			if !st.shows(c.says) {
				t.Errorf("it is not said why: %q", st.texts())
			}
			st.picture("cannot-" + string(c.key))
			st.typed("too risky")
			st.press(fyne.KeyReturn, ctrl)
			st.didNothing()
			if st.window.queue.selected != 9 {
				t.Errorf("item %d is selected", st.window.queue.selected)
			}
			st.press(fyne.KeyEscape, 0)
			if st.window.sheets.open() {
				t.Error("Escape does not close it")
			}
		})
	}
}

func TestWhyThereIsNoRuleIsSaidInTheDialogAndNothingCanBeSent(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.desk.refuse = errors.New("no rule can allow this: it is a loop")
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyL, ctrl)
	st.until("words", func() bool { return st.shows("No rule can allow this: it is a loop.") })
	st.desk.refuse = nil
	st.typed("k")
	st.press(fyne.KeyReturn, ctrl)
	st.press(fyne.KeyT, ctrl)
	st.didNothing()
	if !st.window.sheets.open() {
		t.Error(fmt.Sprint("the dialog is gone: ", st.texts()))
	}
}
