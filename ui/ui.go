// Package ui is what the operator sees: the window, the tray and the
// notifications. It draws snapshots of the engines and sends intents to them; it
// knows neither HTTP nor SQL.
//
// Everything that touches a widget runs on the UI thread, reached through
// Options.OnUI. That thread never waits: snapshots, intents, the history and
// transcripts are read in goroutines that the UI owns and Close waits for.
package ui

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"

	"countersign/assets"
	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// Desk is what the window needs of the engines. *worker.Desk satisfies it.
type Desk interface {
	Snapshot() worker.Snapshot
	Approve(id worker.HoldID, digest, by string) error
	ApproveForSession(id worker.HoldID, digest, by string) error
	AllowReads(id worker.HoldID, digest, dir string, within time.Duration, by string) error
	ApproveEdited(id worker.HoldID, digest string, payload json.RawMessage, by string) error
	NarrowRule(id worker.HoldID) (string, error)
	Preview(ctx context.Context, id worker.HoldID) (execute.Preview, error)
	Decline(id worker.HoldID, digest, words, by string) error
	Release(id worker.HoldID) error
	Stop(id worker.HoldID) error
	StopEverything()
	Grants() []policy.Grant
	Revoke(grant string) error
	Pause(until time.Time)
	Resume()
	Present()
}

// History is what the window needs of the history. *store.Store satisfies it.
type History interface {
	Find(ctx context.Context, q worker.HistoryQuery) ([]worker.Hold, error)
	Count(ctx context.Context, q worker.HistoryQuery) (int, error)
	Hold(ctx context.Context, id worker.HoldID) (worker.Hold, error)
	Entries(ctx context.Context, id worker.HoldID) ([]worker.Entry, error)
}

// Transcript is a command's output, which may still grow. *execute.Transcript
// satisfies it.
type Transcript interface {
	Count() (int, error)
	Lines(from, n int) ([]execute.Line, error)
	Close() error
}

// Rulebook is what the window needs of the operator's rules. Its methods may wait
// for the disk.
type Rulebook interface {
	State() policy.RulesState
	Accept(hash string) error
	Try(id worker.HoldID, rule string) (policy.Explanation, error)
	Add(id worker.HoldID, rule string) error
	AddRules(rules string) error // all of them or none
	Explain(item policy.Item) (policy.Explanation, error)
	Follow(f func()) // f is called when State may have changed, and returns at once
}

// Notifier shows a notification of the desktop's. It may block, for a bounded
// time.
type Notifier interface {
	Notify(title, text string) error
}

// Options is what a UI is made of. App, Desk, History and Quit are required.
type Options struct {
	App     fyne.App
	Desk    Desk
	History History

	Rulebook Rulebook // nil: there are no rules to look at or to add to
	Notifier Notifier // nil: the window's banner alone says what is to be said

	// Quit ends the program now; running commands are stopped.
	Quit func()
	// QuitWhenDone ends the program when the running commands have ended. nil
	// where that cannot be had: then it is not offered.
	QuitWhenDone func()

	TitleSuffix string // behind the window's title: " – demo"

	// OnUI runs a function on the UI thread; fyne.Do by default.
	OnUI func(func())
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// OpenTranscript opens the file of a hold's output; execute.OpenTranscript by
	// default.
	OpenTranscript func(path string) (Transcript, error)
	// SessionBus says whether a tray can be made at all; by default whether a
	// session bus answers, where trays need one.
	SessionBus func() bool
	// TrayHost waits, for as long as ctx lets it, until there is a place for tray
	// icons, and reports whether there is.
	TrayHost func(ctx context.Context) bool
}

// UI is the window, the tray and the notifications. It is a worker.Observer.
type UI struct {
	Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	pacer   *pacer
	notices *notices
	busy    atomic.Bool // something waits or runs: ages and leases move
	visible atomic.Bool // the window is open
	watched atomic.Bool // the window is open and has the input focus
	last    atomic.Pointer[worker.Snapshot]

	// The rest belongs to the UI thread.
	snap   worker.Snapshot
	window *window
	tray   *tray
}

var _ worker.Observer = (*UI)(nil)

// New makes the user interface, hidden. It must be called on the UI thread
// before the app runs: a tray can only be added then.
func New(o Options) *UI {
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	u := &UI{Options: o, ctx: ctx, cancel: cancel}
	dress(u.App)
	u.notices = newNotices(o.Now, u.tell)
	u.window = newWindow(u)
	u.tray = newTray(u)
	u.pacer = &pacer{
		dirty: make(chan struct{}, 1), interval: u.interval, tick: u.tick, paint: u.repaint,
	}
	u.snap = u.Desk.Snapshot() // so that the first frame is whole; nothing runs yet that it could wait for
	first := u.snap
	u.last.Store(&first)
	u.watchFocus()
	u.start(u.pacer.run)
	u.start(u.notices.run)
	u.followRules()
	u.Changed()
	return u
}

// dress gives an app our looks.
func dress(a fyne.App) {
	if _, ours := a.Settings().Theme().(colours); !ours { // to set it throws away all that was measured
		a.Settings().SetTheme(NewTheme())
	}
	a.SetIcon(fyne.NewStaticResource("countersign.png", assets.Icon()))
}

func (o Options) withDefaults() Options {
	if o.OnUI == nil {
		o.OnUI = fyne.Do
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OpenTranscript == nil {
		o.OpenTranscript = func(path string) (Transcript, error) { return execute.OpenTranscript(path) }
	}
	if o.SessionBus == nil {
		o.SessionBus = sessionBus
	}
	if o.TrayHost == nil {
		o.TrayHost = trayHost
	}
	return o
}

// Show opens the window. UI thread only.
func (u *UI) Show() {
	u.visible.Store(true)
	u.watched.Store(true)
	u.window.draw() // with what is known, so that it never opens blank or stale
	u.window.shown()
	u.window.win.Show()
	u.Changed()
}

// Raise opens the window and asks for it to come to the front. Any goroutine
// may call it: a second start of the program does.
func (u *UI) Raise() { u.OnUI(u.raise) }

func (u *UI) raise() {
	u.Show()
	u.window.win.RequestFocus()
}

// Changed asks for a repaint soon. It never blocks.
func (u *UI) Changed() { u.pacer.changed() }

// Happened tells the operator of an event where a person is needed. It never
// blocks.
func (u *UI) Happened(e worker.Event) {
	u.notices.add(u.located(e))
	if isAlarm(e.Kind) {
		u.tray.alarm.Store(true)
	}
	if e.Kind == worker.EventFinished {
		u.window.history.stale.Store(true)
	}
	u.Changed()
}

// located says in an event about a connection which one that is, when there are
// several. The operator chose the name, but a notification is no place for all
// that a name can be: what is not plain is left out.
func (u *UI) located(e worker.Event) worker.Event {
	s := u.last.Load()
	if e.Hold == 0 && e.Connection != "" && s != nil && len(s.Connections) > 1 {
		e.Text = "Connection " + plainName(e.Connection) + ": " + e.Text
	}
	return e
}

// Banner shows words in the window until they are dismissed, behind what went
// wrong. Any goroutine may call it.
func (u *UI) Banner(text string) {
	u.OnUI(func() { u.window.messages.add(message{text: text, calm: true}) })
}

// Close ends what the UI does in the background, and waits for it. It is called
// on the UI thread, or after the app has ended. The window and the tray go with
// the app.
func (u *UI) Close() {
	u.cancel()
	u.wg.Wait()
}

// start runs f in a goroutine that Close waits for. UI thread only.
func (u *UI) start(f func(context.Context)) {
	if u.ctx.Err() != nil {
		return
	}
	u.wg.Add(1)
	go func() {
		defer u.wg.Done()
		f(u.ctx)
	}()
}

// intent sends something to the engines away from the UI thread. What they
// refuse is said in words; then, when it was not refused, done runs.
func (u *UI) intent(send func() error, done func()) {
	u.ask(send, func(err error) {
		switch {
		case err != nil:
			u.window.say(sentence(safetext.Clip(err.Error(), 1000)))
		case done != nil:
			done()
		}
	})
}

// ask sends something to the engines away from the UI thread and hands on what
// they say of it.
func (u *UI) ask(send func() error, answer func(error)) {
	u.start(func(context.Context) {
		err := send()
		u.OnUI(func() { answer(err) })
		u.Changed()
	})
}

func (u *UI) interval() time.Duration {
	if u.visible.Load() {
		return 50 * time.Millisecond
	}
	return time.Second // the tray alone
}

func (u *UI) tick() time.Duration {
	switch {
	case !u.visible.Load():
		return 0
	case u.busy.Load():
		return time.Second
	}
	return 10 * time.Second
}

// repaint takes a snapshot and has it drawn. It waits until it was, so that
// snapshots cannot pile up in front of a busy UI thread.
func (u *UI) repaint(ctx context.Context) {
	snap := u.Desk.Snapshot()
	u.last.Store(&snap)
	u.busy.Store(len(snap.Waiting)+len(snap.Running) > 0)
	drawn := make(chan struct{})
	u.OnUI(func() {
		defer close(drawn)
		u.snap = snap
		u.tray.draw(snap)
		if u.visible.Load() {
			u.window.draw()
		}
	})
	select {
	case <-drawn:
	case <-ctx.Done():
	}
}

// tell shows a notification, or the same words in the window when there is no
// service for them.
func (u *UI) tell(kind worker.EventKind, title, text string) {
	if kind == worker.EventWaiting && u.watched.Load() {
		return // it is on the screen in front of the operator
	}
	if u.Notifier != nil && u.Notifier.Notify(title, text) == nil {
		return
	}
	u.OnUI(func() {
		u.window.messages.add(message{text: title + ". " + text, kind: kind, calm: calm(kind)})
	})
}

// watchFocus follows whether the window has the input focus. What comes up in
// front of somebody who is typing elsewhere must not take a key for a decision.
func (u *UI) watchFocus() {
	life := u.App.Lifecycle()
	life.SetOnEnteredForeground(func() {
		u.watched.Store(u.visible.Load())
		u.window.keys.enter()
		u.window.shown()
	})
	life.SetOnExitedForeground(func() { u.watched.Store(false) })
}

// hide closes the window; the program goes on.
func (u *UI) hide() {
	u.visible.Store(false)
	u.watched.Store(false)
	u.window.win.Hide()
}
