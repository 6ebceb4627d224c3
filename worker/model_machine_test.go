package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"countersign/store"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

const origin = "http://127.0.0.1:1"

var errKilled = errors.New("killed")

// machine is one worker's machine: its disk outlasts its lives.
type machine struct {
	w     *world
	name  string
	path  string
	asks  bool
	store *store.Store
	life  *life // the last one, dead or not
	lives []*life

	mu         sync.Mutex
	faults     []fault
	badDisk    int  // so many writes fail
	diskFailed bool // ever: what was in memory only is not in the journal
	slowDisk   int  // so many writes take slowBy
	slowBy     time.Duration
	claimed    [][]byte
	told       map[string]*told
}

// told is what the answers that arrived at a machine said of an item.
type told struct {
	accepted bool          // the last answer to an accept
	sent     time.Duration // Boot at which that accept was sent
	came     time.Duration // Boot at which its answer arrived
	lost     time.Duration // Boot at which a heartbeat was refused after it; 0: was not
}

// point is where a life can be made to end.
type point string

var points = []point{"before a commit", "after a commit", "before a request", "after an answer", "before a run", "after a run"}

// trap ends a life when it comes by a point once more than passes times.
type trap struct {
	at     point
	passes int
}

// life is one run of Countersign on a machine. A kill lets it reach neither the
// disk nor the harness nor a command any more.
type life struct {
	m      *machine
	engine *worker.Engine
	quit   context.CancelCauseFunc
	ended  chan struct{}
	died   chan struct{} // closed by a kill

	mu   sync.Mutex
	trap trap
	gate chan struct{} // while it stands still; closed when it goes on
	dead bool
}

func (m *machine) open() (err error) {
	m.store, err = store.Open(context.Background(), m.path)
	return err
}

// start begins a life on what the disk has.
func (m *machine) start() {
	if m.life != nil {
		_ = m.store.Close()
		if err := m.open(); err != nil {
			m.w.breach("%s: reopen the journal: %v", m.name, err)
			return
		}
	}
	l := &life{m: m, ended: make(chan struct{}), died: make(chan struct{})}
	client, err := api.New(api.Options{Origin: origin, Transport: l})
	if err != nil {
		panic(err)
	}
	mode := policy.ModeAll
	if m.asks {
		mode = policy.ModeRules
	}
	l.engine, err = worker.New(worker.Config{
		Name: m.name, Origin: client.Origin(), WorkerID: m.name, Harness: client, Journal: mortal{m.store, l},
		Policy: book(mode, ""), Runner: l, Clock: m.w.clock, Log: slog.New(slog.DiscardHandler), MaxHeld: 3,
		Poll: worker.Poll{Active: 2 * time.Second, Idle: 4 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l.quit = cancel
	m.mu.Lock()
	m.told = map[string]*told{}
	m.mu.Unlock()
	m.life, m.lives = l, append(m.lives, l)
	go func() {
		defer close(l.ended)
		if err := l.engine.Run(ctx); err != nil && !l.isDead() {
			m.w.note("%s ended: %v", m.name, err)
			l.kill()
		}
	}()
}

// quit ends a life as an operator does, and is over when it has ended or died.
func (m *machine) quit(whenDone bool) {
	l := m.life
	cause := context.Canceled
	if whenDone {
		cause = worker.ErrQuitWhenDone
	}
	l.quit(cause)
	select {
	case <-l.ended:
	case <-l.died:
	}
	l.kill()
}

func (m *machine) unfinished() []worker.Hold {
	open, err := m.store.Unfinished(context.Background(), origin, "")
	if err != nil {
		m.w.breach("%s: %v", m.name, err)
	}
	return open
}

func (m *machine) diskFails(writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.badDisk, m.diskFailed = writes, true
}

func (m *machine) diskIsSlow(writes int, by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slowDisk, m.slowBy = writes, by
}

// kill ends the life at once: what is committed stays, nothing more is done.
func (l *life) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return
	}
	l.dead = true
	close(l.died)
	l.open()
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// freeze has the life stand still wherever it meets the world, until thaw.
func (l *life) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate == nil && !l.dead {
		l.gate = make(chan struct{})
	}
}

func (l *life) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open()
}

// open lets whoever stands still go on. l.mu must be held.
func (l *life) open() {
	if l.gate != nil {
		close(l.gate)
		l.gate = nil
	}
}

func (l *life) set(t trap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trap = t
}

// reaches is called wherever the life meets the world. It holds up whoever comes
// by a frozen life, and one that was killed until all is over. It says whether to
// go on.
func (l *life) reaches(at point) bool {
	l.mu.Lock()
	springs := false
	if at != "" && l.trap.at == at && !l.dead {
		springs = l.trap.passes == 0
		l.trap.passes--
	}
	l.mu.Unlock()
	if springs {
		l.m.w.note("%s is killed %s", l.m.name, at)
		l.kill()
	}
	for {
		l.mu.Lock()
		dead, gate := l.dead, l.gate
		l.mu.Unlock()
		switch {
		case dead:
			<-l.m.w.over
			return false
		case gate == nil:
			return true
		}
		<-gate
	}
}

// mortal is a journal that is out of a killed life's reach.
type mortal struct {
	*store.Store
	l *life
}

func (j mortal) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (id worker.HoldID, err error) {
	err = j.commit(func() error { id, err = j.Store.Open(ctx, h, reason, then...); return err })
	return id, err
}

func (j mortal) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	return j.commit(func() error { return j.Store.Move(ctx, id, steps...) })
}

func (j mortal) Unfinished(ctx context.Context, origin, environment string) (holds []worker.Hold, err error) {
	if !j.l.reaches("") {
		return nil, errKilled
	}
	return j.Store.Unfinished(ctx, origin, environment)
}

func (j mortal) Last(ctx context.Context, origin, itemID string) (worker.Hold, bool, error) {
	if !j.l.reaches("") {
		return worker.Hold{}, false, errKilled
	}
	return j.Store.Last(ctx, origin, itemID)
}

func (j mortal) commit(write func() error) error {
	if !j.l.reaches("before a commit") {
		return errKilled
	}
	m := j.l.m
	m.mu.Lock()
	fails, by := m.badDisk > 0, time.Duration(0)
	m.badDisk--
	if m.slowDisk > 0 {
		m.slowDisk--
		by = m.slowBy
	}
	m.mu.Unlock()
	time.Sleep(by)
	if fails {
		return errDisk
	}
	err := write()
	if !j.l.reaches("after a commit") {
		return errKilled
	}
	return err
}

// Dir, Usable, Check and Run make the life a runner: its commands last as long as
// their items say, and are gone with a kill.
func (l *life) Fingerprint(context.Context, execute.Task, []string) []execute.Fingerprint {
	return []execute.Fingerprint{{Path: "f", State: execute.StateRegular, Size: l.m.w.file.Load()}}
}

func (l *life) Preview(context.Context, execute.Task) execute.Preview { return execute.Preview{} }

func (l *life) Dir() string                { return "/work" }
func (l *life) Usable() error              { return nil }
func (l *life) Check(t execute.Task) error { return nil }

// Run implements worker.Runner.
func (l *life) Run(ctx context.Context, t execute.Task, _ string) execute.Outcome {
	it := l.m.w.item(t.Command)
	if !l.reaches("before a run") {
		return execute.Outcome{}
	}
	l.checkStart(it)
	l.m.w.started(it, l.m.name)
	o := execute.Outcome{How: execute.Ended, Result: resultOf(it.command, 0)}
	timer := time.NewTimer(it.lasts)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		o = execute.Outcome{How: execute.Stopped, Exit: 143, Reason: context.Cause(ctx).Error(), Result: resultOf(it.command, 143)}
	case <-l.died:
	}
	if !l.reaches("after a run") {
		return execute.Outcome{}
	}
	return o
}

// checkStart sees that a start was authorized, at the machine and at the harness,
// and written down.
func (l *life) checkStart(it *asked) {
	m, now := l.m, l.m.w.clock.Boot()
	m.mu.Lock()
	said := told{}
	if m.told[it.id] != nil {
		said = *m.told[it.id]
	}
	m.mu.Unlock()
	switch {
	case !said.accepted:
		m.w.breach("%s starts %s without an accept", m.name, it.id)
	case now-said.came > 5*time.Second, now-said.sent > time.Minute:
		m.w.breach("%s starts %s on an accept sent %v ago, answered %v ago", m.name, it.id, now-said.sent, now-said.came)
	case said.lost != 0 && said.lost < now:
		m.w.breach("%s starts %s though a heartbeat was refused", m.name, it.id)
	}
	m.w.mu.Lock()
	holder, accepted := it.holder, it.accepted
	m.w.mu.Unlock()
	if holder != m.name || !accepted {
		m.w.breach("%s starts %s, which the harness has not committed to it", m.name, it.id)
	}
	last, _, err := m.store.Last(context.Background(), origin, it.id)
	if err != nil || last.Execution != worker.Starting || last.Decision != worker.Approved || last.Acceptance != worker.Accepted {
		m.w.breach("%s starts %s, recorded as %+v, %v", m.name, it.id, last.Facts, err)
	}
}

// heard remembers what an answer that arrived says of an item.
func (m *machine) heard(path string, id string, status int, body []byte, sent time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told[id] == nil {
		m.told[id] = &told{}
	}
	t := m.told[id]
	isJSON := json.Valid(body)
	switch route := path[strings.LastIndex(path, "/")+1:]; {
	case route == "accept" && status == http.StatusOK && isJSON:
		*t = told{accepted: true, sent: sent, came: m.w.clock.Boot()}
	case route == "accept" && status/100 == 4 && isJSON:
		t.accepted = false
	case route == "heartbeat" && (status == http.StatusConflict || status == http.StatusNotFound) && isJSON && sent > t.sent:
		t.lost = m.w.clock.Boot()
	case route == "claim" && status == http.StatusOK:
		m.claimed = append(m.claimed, body)
	}
}
