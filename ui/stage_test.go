package ui

import (
	"context"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"
	"go.uber.org/goleak"

	"countersign/worker"
)

func TestMain(m *testing.M) {
	os.Setenv("LANG", "en_US.UTF-8")
	goleak.VerifyTestMain(m)
}

// stage is a window on the test driver with fakes around it. What the UI sends
// to the UI thread runs when the test pumps, on the test's own goroutine.
type stage struct {
	*UI
	t     *testing.T
	desk  *fakeDesk
	hist  *fakeHistory
	files map[string]*fakeTranscript

	longest time.Duration // that one function took on the UI thread

	mu    sync.Mutex
	queue []func()
	clock time.Time
	quits int
	waits int
}

func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	st := &stage{
		t: t, desk: &fakeDesk{}, hist: &fakeHistory{}, files: map[string]*fakeTranscript{},
		clock: time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC),
	}
	st.desk.snap.Connections = []worker.ConnectionView{{
		Name: "demo", Origin: "http://127.0.0.1:3000", Environment: "env_5b",
		State: worker.Connected, LastContact: st.clock,
	}}
	o := Options{
		App: testApp(), Desk: st.desk, History: st.hist,
		Quit: func() { st.quits++ }, QuitWhenDone: func() { st.waits++ },
		OnUI: st.onUI, Now: st.now,
		OpenTranscript: st.open,
		SessionBus:     func() bool { return false },
		TrayHost:       func(context.Context) bool { return false },
	}
	for _, c := range change {
		c(&o)
	}
	st.UI = New(o)
	t.Cleanup(func() {
		st.Close()
		st.window.win.Close()
	})
	st.window.win.Resize(fyne.NewSize(1180, 760))
	return st
}

func (st *stage) onUI(f func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.queue = append(st.queue, f)
}

func (st *stage) now() time.Time {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.clock
}

func (st *stage) pass(d time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.clock = st.clock.Add(d)
}

// pump runs what waits for the UI thread.
func (st *stage) pump() {
	for {
		st.mu.Lock()
		todo := st.queue
		st.queue = nil
		st.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		for _, f := range todo {
			start := time.Now()
			f()
			st.longest = max(st.longest, time.Since(start))
		}
	}
}

// until pumps until something is so.
func (st *stage) until(what string, so func() bool) {
	st.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		st.pump()
		if so() {
			return
		}
		if time.Now().After(deadline) {
			st.t.Fatalf("never came: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// put changes the snapshot and waits until it is drawn.
func (st *stage) put(change func(*worker.Snapshot)) {
	st.t.Helper()
	st.desk.mu.Lock()
	change(&st.desk.snap)
	st.desk.snap.At = st.desk.snap.At.Add(time.Millisecond)
	at := st.desk.snap.At
	st.desk.mu.Unlock()
	st.Changed()
	st.until("the snapshot is drawn", func() bool { return !st.snap.At.Before(at) })
}

// open shows the window with a snapshot and lets the reading time pass.
func (st *stage) show(change func(*worker.Snapshot)) {
	st.t.Helper()
	st.Show()
	st.put(change)
	st.pass(time.Second)
}

// press presses keys as a person does: down, what the driver makes of it, and up.
func (st *stage) press(name fyne.KeyName, mod fyne.KeyModifier) {
	st.hold(name, mod)
	st.window.keys.up(&fyne.KeyEvent{Name: name})
}

// hold presses keys and does not let go.
func (st *stage) hold(name fyne.KeyName, mod fyne.KeyModifier) {
	st.window.keys.down(&fyne.KeyEvent{Name: name})
	st.repeat(name, mod)
}

// repeat is what the driver does while keys are held.
func (st *stage) repeat(name fyne.KeyName, mod fyne.KeyModifier) {
	c := st.window.win.Canvas()
	focused := c.Focused()
	if mod == 0 {
		if focused != nil {
			focused.TypedKey(&fyne.KeyEvent{Name: name})
		} else {
			c.OnTypedKey()(&fyne.KeyEvent{Name: name})
		}
	} else {
		s := &desktop.CustomShortcut{KeyName: name, Modifier: mod}
		if to, ok := focused.(fyne.Shortcutable); ok {
			to.TypedShortcut(s)
		} else {
			c.(fyne.Shortcutable).TypedShortcut(s)
		}
	}
	st.pump()
}

func (st *stage) did(want string) {
	st.t.Helper()
	st.until("the intent "+want, func() bool { return slices.Contains(st.desk.intents(), want) })
}

// didNothing waits for what is under way, and checks that no intent came.
func (st *stage) didNothing() {
	st.t.Helper()
	st.pump()
	st.wgIdle()
	if got := st.desk.intents(); len(got) > 0 {
		st.t.Fatalf("intents came: %q", got)
	}
}

// wgIdle waits for a repaint asked for after everything else.
func (st *stage) wgIdle() {
	st.t.Helper()
	st.put(func(*worker.Snapshot) {})
}

// texts is every text drawn in the window, dialogs included.
func (st *stage) texts() []string {
	var all []string
	add := func(o fyne.CanvasObject) {
		walk(o, func(o fyne.CanvasObject) {
			switch o := o.(type) {
			case *canvas.Text:
				all = append(all, o.Text)
			case *widget.Label:
				all = append(all, o.Text)
			case *button:
				all = append(all, o.label)
			case *textRowBox:
				row := ""
				for _, p := range o.pieces[:o.used] {
					row += p.text.Text
				}
				all = append(all, row)
			}
		})
	}
	c := st.window.win.Canvas()
	add(c.Content())
	for _, o := range c.Overlays().List() {
		add(o)
	}
	return all
}

func (st *stage) shows(text string) bool {
	return slices.ContainsFunc(st.texts(), func(s string) bool { return strings.Contains(s, text) })
}

// walk visits what is visible.
func walk(o fyne.CanvasObject, visit func(fyne.CanvasObject)) {
	if !o.Visible() {
		return
	}
	visit(o)
	switch o := o.(type) {
	case *fyne.Container:
		for _, child := range o.Objects {
			walk(child, visit)
		}
	case fyne.Widget:
		for _, child := range test.WidgetRenderer(o).Objects() {
			walk(child, visit)
		}
	}
}

// Items for snapshots.

var errNoFile = errors.New("no such transcript")

func (st *stage) open(path string) (Transcript, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f := st.files[path]; f != nil {
		return f, nil
	}
	return nil, errNoFile
}

// picture writes what is in the window to a file, where one looks at them.
func (st *stage) picture(name string) {
	st.t.Helper()
	dir := os.Getenv("COUNTERSIGN_PICTURES")
	if dir == "" {
		return
	}
	st.wgIdle()
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		st.t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, st.window.win.Canvas().Capture()); err != nil {
		st.t.Fatal(err)
	}
}
