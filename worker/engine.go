// Package worker is the engine: it claims work items from one harness, holds
// each while it is decided, gets the harness's accept, runs it, and reports the
// result (PROTOCOL.md §3, DESIGN.md).
//
// An item's story is in tend.go and reads from top to bottom; the accept is in
// accept.go, the lease beside it in lease.go, the report in deliver.go, and what
// a restart finds in recover.go.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"countersign/worker/api"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// Harness is what the engine asks of a harness: the worker routes of
// PROTOCOL.md §2. Errors are *api.Refused, *api.Unanswered or the context's.
type Harness interface {
	Probe(ctx context.Context) error
	Claim(ctx context.Context, workerID string) (api.Item, bool, error)
	Accept(ctx context.Context, itemID, workerID string) error
	Heartbeat(ctx context.Context, itemID, workerID string) error
	Complete(ctx context.Context, itemID, workerID string, result json.RawMessage, failed bool) error
}

// Runner runs one tool call. Package execute implements it.
type Runner interface {
	// Dir is the canonical work directory.
	Dir() string
	// Usable says why nothing can be done in the work directory now.
	Usable() error
	// Check says why a task cannot be done here, without doing any of it.
	Check(execute.Task) error
	// Fingerprint takes the fingerprints of the files that a task names, of which
	// named are those of a command.
	Fingerprint(ctx context.Context, t execute.Task, named []string) []execute.Fingerprint
	// Preview says what a task would meet on the disk now.
	Preview(ctx context.Context, t execute.Task) execute.Preview
	// Run does the task and returns when nothing of it is left. A cancelled
	// context stops it; the cause says why.
	Run(ctx context.Context, t execute.Task, transcript string) execute.Outcome
}

// Poll is how often a harness is asked for work.
type Poll struct {
	Active  time.Duration // while something is held, or was a moment ago
	Idle    time.Duration // otherwise
	Longest time.Duration // the most that failures back off to
}

// Config is what an engine needs. Zero fields with a default in their comment
// take it.
type Config struct {
	Name        string
	Origin      string
	Environment string
	WorkerID    string

	Harness Harness
	Journal Journal
	Policy  Policy
	Runner  Runner

	OutputDir       string        // transcripts, one file per item; none are kept
	Lease           time.Duration // the harness's lease window; 60 s
	DecisionTimeout time.Duration // from the item's creation; 4 min
	MaxHeld         int           // undecided and approved, not started; 8
	MaxRunning      int           // 2
	Poll            Poll          // 250 ms, 1 s, 15 s
	Clock           Clock         // SystemClock
	Observer        Observer      // none
	Log             *slog.Logger  // slog.Default
	Paused          bool          // start paused
	Once            bool          // claim at most one item, see it through, then end

	RemovedEnv  func() []string // variables that commands do not get; asked once, when Run begins, and may take its time; none
	Confinement string          // what commands are kept from, for people
}

// Engine works for one connection. Its intents and Snapshot are safe for
// concurrent use and never wait for a request, a disk or a command.
type Engine struct {
	cfg   Config
	clock Clock
	log   *slog.Logger

	tending sync.WaitGroup
	notes   notes

	mu            sync.Mutex
	room          chan struct{} // tells that there may be room for a claim
	answers       chan struct{} // tells that a harness that was not reached is
	holds         []*hold       // open ones, oldest first
	finished      []View        // closed ones, newest last, bounded
	finishedBytes int           // of them
	conn          ConnectionView
	failingFrom   time.Duration // Boot of the first failure in a row; 0 while well
	toldFailing   bool
	busyUntil     time.Duration // Boot until which polling stays active
	paused        bool
	pausedUntil   time.Time
	away          bool
	pauseTimer    *time.Timer
	expiries      int  // in a row
	claims        int  // so far: what was claimed first comes first
	echo          bool // something claimed had been held here before
	untaken       int  // items in a row that could not be written down
	lookAgain     bool // something could not be written or started: look before the next claim
	quitting      bool
}

const (
	keepFinished  = 200
	keepBytes     = 16 << 20         // of payloads and results of finished ones
	maxDelivering = 64               // above it nothing is claimed: results come first
	activeFor     = 30 * time.Second // polling stays active this long after an item
	requestWithin = 10 * time.Second
)

// ErrQuitWhenDone is the cause to cancel Run's context with when running work
// may end by itself. Any other cause stops it.
var ErrQuitWhenDone = errors.New("quitting when running work is done")

// New makes an engine. It starts nothing.
func New(cfg Config) (*Engine, error) {
	if cfg.Harness == nil || cfg.Journal == nil || cfg.Policy == nil || cfg.Runner == nil {
		return nil, errors.New("an engine needs a harness, a journal, a policy and a runner")
	}
	if cfg.WorkerID == "" {
		return nil, errors.New("an engine needs a worker id")
	}
	setDefault(&cfg.Lease, time.Minute)
	setDefault(&cfg.DecisionTimeout, 4*time.Minute)
	setDefault(&cfg.MaxHeld, 8)
	setDefault(&cfg.MaxRunning, 2)
	setDefault(&cfg.Poll.Active, 250*time.Millisecond)
	setDefault(&cfg.Poll.Idle, time.Second)
	setDefault(&cfg.Poll.Longest, 15*time.Second)
	if cfg.Clock == nil {
		cfg.Clock = SystemClock()
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Engine{
		cfg:   cfg,
		clock: cfg.Clock,
		log:   cfg.Log.With("connection", cfg.Name),
		room:  make(chan struct{}, 1), answers: make(chan struct{}, 1),
		paused: cfg.Paused,
		conn: ConnectionView{
			Name: cfg.Name, Origin: cfg.Origin, Environment: cfg.Environment,
			WorkDir: cfg.Runner.Dir(), State: Connecting,
			MaxHeld: cfg.MaxHeld, MaxRunning: cfg.MaxRunning, ApproveAll: cfg.Policy.Mode() == policy.ModeAll,
			Confinement: cfg.Confinement,
		},
	}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run takes up what the journal says is unfinished, then claims work until ctx
// is cancelled, and returns when everything it started has ended. What waited
// stays in the journal. With the cause ErrQuitWhenDone running work may end by
// itself; with any other it is stopped. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	e.startNotes()
	defer e.notes.stop()
	defer e.forgetPause()
	e.lookAtEnv()
	if err := e.recover(ctx); err != nil {
		return fmt.Errorf("take up what the journal of %s left open: %w", e.cfg.Name, err)
	}
	e.claimWork(ctx)
	ended := make(chan struct{})
	go func() {
		e.tending.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		e.quit(context.Cause(ctx))
		<-ended
	}
	return nil
}

// lookAtEnv has the snapshots say what commands do not get.
func (e *Engine) lookAtEnv() {
	if e.cfg.RemovedEnv == nil {
		return
	}
	names := e.cfg.RemovedEnv()
	e.mu.Lock()
	e.conn.RemovedEnv = names
	e.mu.Unlock()
	e.changed()
}

// Hurry stops what still runs while the engine quits with ErrQuitWhenDone, as any
// other cause would have done at once.
func (e *Engine) Hurry() { e.quit(errShutdown) }

// quit lets nothing start any more, and stops what runs unless it may end.
func (e *Engine) quit(cause error) {
	e.mu.Lock()
	e.quitting = true
	if !errors.Is(cause, ErrQuitWhenDone) {
		for _, h := range e.holds {
			if h.phase.started() {
				h.stopRun(errShutdown)
			}
		}
	}
	e.signal()
	e.mu.Unlock()
	e.changed()
}

// signal wakes those who may start now, and the next claim if there is room for
// it. e.mu must be held.
func (e *Engine) signal() {
	e.giveTurns()
	if e.mayClaim() {
		select {
		case e.room <- struct{}{}:
		default: // it is told already
		}
	}
}

// awaitRoom returns nil when there is room for one more item.
func (e *Engine) awaitRoom(ctx context.Context) error {
	for ctx.Err() == nil && !e.isRoom() {
		select {
		case <-e.room:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// sleep waits for d and says whether it passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) changed() {
	if e.cfg.Observer != nil {
		e.cfg.Observer.Changed()
	}
}

func (e *Engine) happened(kind EventKind, h *hold, ran bool, text string) {
	ev := Event{Kind: kind, At: e.clock.Now(), Connection: e.cfg.Name, Ran: ran, Text: text}
	if h != nil {
		ev.Hold = h.rec.ID
	}
	e.log.Info("event", "kind", string(kind), "hold", int64(ev.Hold), "text", text)
	if e.cfg.Observer != nil {
		e.cfg.Observer.Happened(ev)
	}
}
