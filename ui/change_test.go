package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"

	"github.com/aymanbagabas/go-udiff"
)

// asked is the window of a change on the test driver.
type asked struct {
	*changeWindow
	clock time.Time
	did   string
}

func ask(t *testing.T, before, now string) *asked {
	t.Helper()
	a := &asked{clock: time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)}
	a.changeWindow = newChangeWindow(Change{
		App: testApp(), Title: "What guards this machine was changed", Words: "It was.", Doubt: "Do you know it?",
		Diff:   udiff.Unified("in force", "config.toml", before, now),
		Accept: func() { a.did += "accept " }, Quit: func() { a.did += "quit " },
		Now: func() time.Time { return a.clock },
	})
	t.Cleanup(a.win.Close)
	a.show()
	a.win.Resize(fyne.NewSize(820, 560))
	return a
}

func (a *asked) pass(d time.Duration) { a.clock = a.clock.Add(d) }

// press presses a key with Control; hold does not let go of it.
func (a *asked) press(name fyne.KeyName) {
	a.hold(name)
	a.keys.up(&fyne.KeyEvent{Name: name})
}

func (a *asked) hold(name fyne.KeyName) {
	a.keys.down(&fyne.KeyEvent{Name: name})
	a.repeat(name)
}

func (a *asked) repeat(name fyne.KeyName) {
	a.win.Canvas().(fyne.Shortcutable).TypedShortcut(&desktop.CustomShortcut{KeyName: name, Modifier: ctrl})
}

func (a *asked) expect(t *testing.T, when, want string) {
	t.Helper()
	if got := strings.TrimSpace(a.did); got != want {
		t.Errorf("%s: it did %q, want %q", when, got, want)
	}
}

const guarded = "confinement.confine = true\n"

func TestAChangeIsAcceptedOrQuitOnce(t *testing.T) {
	for _, c := range []struct {
		want string
		take func(a *asked)
	}{
		{"accept", func(a *asked) { a.press(fyne.KeyReturn) }},
		{"accept", func(a *asked) { test.Tap(a.accept) }},
		{"quit", func(a *asked) { a.press(fyne.KeyQ) }},
		{"quit", func(a *asked) { test.Tap(a.quit) }},
	} {
		a := ask(t, guarded, "confinement.confine = false\n")
		a.pass(time.Second)
		c.take(a)
		a.expect(t, "at first", c.want)
		a.press(fyne.KeyReturn)
		a.press(fyne.KeyQ)
		a.expect(t, "once more", c.want)
	}
}

func TestAChangeIsShownWithItsWords(t *testing.T) {
	st := newStage(t)
	a := ask(t, guarded, "confinement.confine = false\nenvironment.pass = \"\u202e*\"\n")
	main := st.window.win
	st.window.win = a.win // for its texts
	t.Cleanup(func() { st.window.win = main })
	all := strings.Join(st.texts(), "\n")
	for _, want := range []string{"What guards this machine was changed", "It was.", "Do you know it?", "Accept and start", "Quit",
		"confinement.confine = true", "confinement.confine = false", "environment.pass"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not shown in %q", want, all)
		}
	}
	if strings.Contains(all, "\u202e") {
		t.Error("what reorders text is drawn as it is")
	}
	st.picture("change")
}

func TestAChangeIsAcceptedByNoEarlyHeldBareOrStrayKey(t *testing.T) {
	a := ask(t, guarded, "confinement.confine = false\n")
	a.press(fyne.KeyReturn)
	a.pass(readingTime - time.Millisecond)
	test.Tap(a.accept)
	a.expect(t, "too early", "")
	if !strings.Contains(a.early.Text, "A moment") {
		t.Errorf("it says %q", a.early.Text)
	}
	a.pass(time.Second)
	if a.win.Canvas().Focused() != nil {
		t.Error("something has the focus")
	}
	for _, name := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace, fyne.KeyY} {
		a.win.Canvas().OnTypedKey()(&fyne.KeyEvent{Name: name})
	}
	a.expect(t, "without Control", "")
	for range 50 {
		a.repeat(fyne.KeyReturn)
	}
	a.expect(t, "held from elsewhere", "")
	a.watched = false
	test.Tap(a.accept)
	a.expect(t, "without the focus", "")

	a.seen()
	a.press(fyne.KeyReturn)
	a.expect(t, "as it comes to the front", "")
	a.keys.enter()
	a.pass(time.Second)
	a.hold(fyne.KeyReturn) // as Control and it went down elsewhere
	a.expect(t, "soon after the focus came, without a Control of its own", "")
}

func TestALongChangeIsAcceptedOnlyOnceAllOfItWasOnScreen(t *testing.T) {
	var now strings.Builder
	for i := range 60 {
		fmt.Fprintf(&now, "environment.pass = \"V%d\"\n", i)
	}
	a := ask(t, guarded, now.String())
	a.pass(time.Second)
	a.press(fyne.KeyReturn)
	a.expect(t, "with rows unseen", "")
	if !strings.Contains(a.early.Text, "unseen") {
		t.Errorf("it says %q", a.early.Text)
	}
	for range 10 {
		a.pass(time.Second)
		a.win.Canvas().OnTypedKey()(&fyne.KeyEvent{Name: fyne.KeyPageDown})
	}
	a.press(fyne.KeyReturn)
	a.expect(t, "with all seen", "accept")
}
