package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"countersign/worker/execute"
	"countersign/worker/policy"
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

// fakeDesk records intents.
type fakeDesk struct {
	mu        sync.Mutex
	snap      worker.Snapshot
	did       []string
	refuse    error
	snapshots int

	refuseApproval error
	grants         []policy.Grant
	previews       map[worker.HoldID]execute.Preview
	previewWaits   chan struct{} // nil, or what a preview waits for
}

func (d *fakeDesk) Snapshot() worker.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshots++
	s := d.snap
	s.Waiting, s.Running, s.Finished = slices.Clone(s.Waiting), slices.Clone(s.Running), slices.Clone(s.Finished)
	return s
}

func (d *fakeDesk) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, fmt.Sprintf(format, args...))
	return d.refuse
}

func (d *fakeDesk) intents() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.did)
}

func (d *fakeDesk) Approve(id worker.HoldID, digest, by string) error {
	if d.refuseApproval != nil {
		return d.refuseApproval
	}
	return d.note("approve %d %s by %s", id, digest, by)
}

func (d *fakeDesk) ApproveForSession(id worker.HoldID, digest, by string) error {
	return d.note("approve %d %s for the session by %s", id, digest, by)
}

func (d *fakeDesk) AllowReads(id worker.HoldID, digest, dir string, within time.Duration, by string) error {
	return d.note("allow reads under %s for %v with %d %s by %s", dir, within, id, digest, by)
}

func (d *fakeDesk) ApproveEdited(id worker.HoldID, digest string, payload json.RawMessage, by string) error {
	return d.note("approve %d %s as %s by %s", id, digest, payload, by)
}

func (d *fakeDesk) NarrowRule(id worker.HoldID) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("[[rule]]\nname = \"like #%d\"\n", id), d.refuse
}

func (d *fakeDesk) Preview(ctx context.Context, id worker.HoldID) (execute.Preview, error) {
	d.mu.Lock()
	p, wait := d.previews[id], d.previewWaits
	d.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	return p, nil
}

func (d *fakeDesk) Decline(id worker.HoldID, digest, words, by string) error {
	return d.note("decline %d %s %q by %s", id, digest, words, by)
}
func (d *fakeDesk) Release(id worker.HoldID) error { return d.note("release %d", id) }
func (d *fakeDesk) Stop(id worker.HoldID) error    { return d.note("stop %d", id) }
func (d *fakeDesk) StopEverything()                { d.note("stop everything") }
func (d *fakeDesk) Pause(until time.Time) {
	if until.IsZero() {
		d.note("pause")
	} else {
		d.note("pause until %s", until.Format(time.RFC3339))
	}
}

func (d *fakeDesk) Grants() []policy.Grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.grants)
}

func (d *fakeDesk) Revoke(grant string) error { return d.note("revoke %s", grant) }

func (d *fakeDesk) Resume()  { d.note("resume") }
func (d *fakeDesk) Present() { d.note("present") }

// Items for snapshots.

func execItem(id int, command string) worker.View {
	return view(id, "exec", map[string]any{"command": command})
}

func view(id int, kind string, payload map[string]any) worker.View {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	h := worker.Hold{
		ID: worker.HoldID(id), Connection: "demo", WorkDir: "/work",
		Item:   worker.Item{ID: fmt.Sprintf("work_%d", id), SessionID: "sess_A", Kind: kind, Payload: data},
		Digest: fmt.Sprintf("digest%d", id),
		Facts: worker.Facts{
			Decision: worker.Undecided, Acceptance: worker.NotAsked,
			Execution: worker.NotStarted, Delivery: worker.NothingToDeliver,
		},
	}
	return worker.View{
		Hold: h, Word: h.Status(), Age: time.Minute, Lease: 40 * time.Second, LeaseWindow: time.Minute,
		DecisionLeft: 3 * time.Minute,
		Steps:        []worker.Entry{{Hold: h.ID, Step: worker.StepClaimed}},
	}
}

func asRunning(v worker.View) worker.View {
	v.Decision, v.Acceptance, v.Execution = worker.Approved, worker.Accepted, worker.Running
	v.Word, v.DecisionLeft = worker.WordRunning, 0
	return v
}

func asDone(v worker.View) worker.View {
	v = asRunning(v)
	v.Execution, v.Delivery = worker.Finished, worker.Delivered
	v.Outcome = &execute.Outcome{How: execute.Ended, StdoutBytes: 1}
	v.Word = v.Hold.Status()
	return v
}

func waitingItems(views ...worker.View) func(*worker.Snapshot) {
	return func(s *worker.Snapshot) { s.Waiting = views }
}

// fakeTranscript is a transcript in memory.
type fakeTranscript struct {
	mu    sync.Mutex
	lines []execute.Line
}

var errNoFile = errors.New("no such transcript")

func (st *stage) open(path string) (Transcript, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f := st.files[path]; f != nil {
		return f, nil
	}
	return nil, errNoFile
}

func (f *fakeTranscript) print(stderr bool, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lines {
		f.lines = append(f.lines, execute.Line{Text: []byte(l), Stderr: stderr})
	}
}

func (f *fakeTranscript) Count() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lines), nil
}

func (f *fakeTranscript) Lines(from, n int) ([]execute.Line, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines[from : from+n]), nil
}

func (f *fakeTranscript) Close() error { return nil }

// fakeHistory is a history of holds numbered 1 to n.
type fakeHistory struct {
	mu      sync.Mutex
	n       int
	queries []worker.HistoryQuery
	block   chan struct{} // Find of "slow" waits for it
	kept    map[worker.HoldID]worker.Hold
}

func (h *fakeHistory) hold(id worker.HoldID) worker.Hold {
	if kept, ok := h.kept[id]; ok {
		return kept
	}
	v := asDone(execItem(int(id), fmt.Sprintf("echo item %d", id)))
	v.Closed = true
	return v.Hold
}

func (h *fakeHistory) Find(ctx context.Context, q worker.HistoryQuery) ([]worker.Hold, error) {
	h.mu.Lock()
	h.queries = append(h.queries, q)
	n, block := h.n, h.block
	h.mu.Unlock()
	if q.Text == "slow" {
		<-block
		return []worker.Hold{execItem(7, "echo the slow answer").Hold}, nil
	}
	if q.Text == "fast" {
		return []worker.Hold{execItem(8, "echo the fast answer").Hold}, nil
	}
	before := q.Before
	if before == 0 {
		before = worker.HoldID(n + 1)
	}
	var holds []worker.Hold
	for id := before - 1; id > 0 && len(holds) < q.Limit; id-- {
		holds = append(holds, h.hold(id))
	}
	return holds, nil
}

func (h *fakeHistory) asked() []worker.HistoryQuery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.queries)
}

func (h *fakeHistory) Count(context.Context, worker.HistoryQuery) (int, error) { return h.n, nil }

func (h *fakeHistory) Hold(_ context.Context, id worker.HoldID) (worker.Hold, error) {
	return h.hold(id), nil
}

func (h *fakeHistory) Entries(_ context.Context, id worker.HoldID) ([]worker.Entry, error) {
	return []worker.Entry{
		{Hold: id, Step: worker.StepClaimed},
		{Hold: id, Step: worker.StepDelivered, Facts: h.hold(id).Facts},
	}, nil
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
