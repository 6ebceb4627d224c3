package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/store"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(harnessPath); path != "" {
		if err := serveHarness(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// script is a harness that answers as a test tells it to. Without being told, it
// hands out what was queued and says yes.
type script struct {
	mu      sync.Mutex
	queue   []wire.Item
	answers map[string][]reply // by route, used up in order; the last one stays
	calls   []call
}

type reply struct {
	status int
	body   string
	wait   time.Duration // before answering
	lost   bool          // the request arrives, the answer does not
}

type call struct {
	route string // "claim", "accept", "heartbeat", "complete", "probe"
	at    time.Time
	id    string
	done  wire.CompleteRequest
}

var (
	ok         = reply{status: 200, body: `{"ok":true}`}
	leaseLost  = reply{status: 409, body: `{"error":{"type":"conflict","code":"work_lease_lost","message":"stopped or lapsed"}}`}
	notOurs    = reply{status: 409, body: `{"error":{"type":"conflict","message":"another worker holds it"}}`}
	notFound   = reply{status: 404, body: `{"error":{"type":"not_found","message":"no such item"}}`}
	badRequest = reply{status: 400, body: `{"error":{"type":"invalid_request","message":"bad"}}`}
	tooLarge   = reply{status: 413, body: `{"error":{"type":"too_large","message":"too large"}}`}
	unfit422   = reply{status: 422, body: `{"error":{"type":"invalid_request","message":"unfit"}}`}
	forbidden  = reply{status: 403, body: `{"error":{"type":"auth","message":"no"}}`}
	broken     = reply{status: 500, body: `{"error":{"type":"internal","message":"broken"}}`}
	proxyPage  = reply{status: 200, body: `<html>sign in</html>`}
	lostAnswer = reply{lost: true}
)

func (s *script) on(route string, replies ...reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string][]reply{}
	}
	s.answers[route] = replies
}

func (s *script) offer(items ...wire.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, items...)
}

// RoundTrip makes the script a transport: the test's time stands still while a
// request is answered, and no socket is needed.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	rep := s.answer(r.URL.Path, body)
	if rep.wait > 0 {
		select {
		case <-time.After(rep.wait):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if rep.lost {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	contentType := "application/json"
	if strings.HasPrefix(rep.body, "<") {
		contentType = "text/html"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(rep.status)
	_, _ = io.WriteString(w, rep.body)
	return w.Result(), nil
}

func (s *script) answer(path string, body []byte) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{route: path[strings.LastIndex(path, "/")+1:], at: time.Now()}
	_ = json.Unmarshal(body, &c.done)
	c.id = c.done.ID
	if c.route == "accept" && c.id == "" {
		c.route = "probe"
	}
	s.calls = append(s.calls, c)
	if told := s.answers[c.route]; len(told) > 0 {
		if len(told) > 1 {
			s.answers[c.route] = told[1:]
		}
		return told[0]
	}
	switch c.route {
	case "probe":
		return badRequest
	case "claim":
		if len(s.queue) == 0 {
			return reply{status: 204}
		}
		item := s.queue[0]
		s.queue = s.queue[1:]
		data, err := json.Marshal(item)
		if err != nil {
			panic(err)
		}
		return reply{status: 200, body: string(data)}
	}
	return ok
}

func (s *script) made(route string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []call
	for _, c := range s.calls {
		if c.route == route {
			out = append(out, c)
		}
	}
	return out
}

// tools is a runner that records what starts and ends it when told to, or when
// it is stopped.
type tools struct {
	mu       sync.Mutex
	starts   []string // commands, in order
	hold     bool     // runs last until stopped or let go
	letGo    chan struct{}
	unusable error
	files    []execute.Fingerprint // that a command names, as they are now
}

func (r *tools) Fingerprint(context.Context, execute.Task, []string) []execute.Fingerprint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.files)
}

func (r *tools) Preview(context.Context, execute.Task) execute.Preview { return execute.Preview{} }

func (r *tools) Dir() string { return "/work" }

func (r *tools) Usable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unusable
}

func (r *tools) Check(execute.Task) error { return nil }

func (r *tools) Run(ctx context.Context, t execute.Task, _ string) execute.Outcome {
	r.mu.Lock()
	r.starts = append(r.starts, t.Command)
	hold, letGo := r.hold, r.letGo
	r.mu.Unlock()
	if hold {
		select {
		case <-ctx.Done():
			return execute.Outcome{
				How: execute.Stopped, Exit: 143, Reason: context.Cause(ctx).Error(),
				Result: json.RawMessage(`{"exitCode":143,"stdout":"","stderr":"","timedOut":false,"aborted":true}`),
			}
		case <-letGo:
		}
	}
	return execute.Outcome{
		How:    execute.Ended,
		Result: json.RawMessage(`{"exitCode":0,"stdout":"` + strings.Repeat("x", 40_000) + `","stderr":"","timedOut":false,"aborted":false}`),
	}
}

func (r *tools) started() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.starts)
}

// bedClock is the bubble's clock, with the sleeps of the machine added.
type bedClock struct {
	start time.Time
	mu    sync.Mutex
	slept time.Duration
}

func (c *bedClock) Now() time.Time { return time.Now().Add(c.sleptFor()) }

func (c *bedClock) Boot() time.Duration { return time.Hour + time.Since(c.start) + c.sleptFor() }

func (c *bedClock) sleptFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slept
}

func (c *bedClock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}

// bench is an engine under test with everything around it.
type bench struct {
	t       *testing.T
	script  *script
	tools   *tools
	clock   *bedClock
	store   *store.Store
	journal worker.Journal
	engine  *worker.Engine
	quit    context.CancelCauseFunc
	ended   chan error

	mu     sync.Mutex
	events []worker.Event
}

func (b *bench) Changed() {}

func (b *bench) Happened(ev worker.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, ev)
}

func (b *bench) told(kind worker.EventKind) (n int, ran bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range b.events {
		if ev.Kind == kind {
			n++
			ran = ev.Ran
		}
	}
	return n, ran
}

func (b *bench) mustTell(kind worker.EventKind, times int) {
	b.t.Helper()
	if n, _ := b.told(kind); n != times {
		b.t.Errorf("told of %q %d times, want %d", kind, n, times)
	}
}

// inBubble runs a test of the engine in a bubble of fake time.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{
			t: t, script: &script{}, store: s, journal: s,
			tools: &tools{letGo: make(chan struct{})},
			clock: &bedClock{start: time.Now()},
		}
		defer func() {
			b.stop(context.Canceled)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, b)
	})
}

// start starts an engine; changes adjust its configuration first.
func (b *bench) start(changes ...func(*worker.Config)) {
	b.t.Helper()
	client, err := api.New(api.Options{Origin: "http://127.0.0.1:1", Transport: b.script})
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := worker.Config{
		Name: "test", Origin: client.Origin(), WorkerID: "w1",
		Harness: client, Journal: b.journal, Policy: book(policy.ModeRules, ""), Runner: b.tools,
		Clock: b.clock, Observer: b, Log: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&cfg)
	}
	b.engine, err = worker.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	b.quit, b.ended = cancel, make(chan error, 1)
	go func() { b.ended <- b.engine.Run(ctx) }()
}

// stop quits the engine and waits for it.
func (b *bench) stop(cause error) {
	if b.quit == nil {
		return
	}
	b.quit(cause)
	if err := <-b.ended; err != nil {
		b.t.Error(err)
	}
	b.quit = nil
}

func approveAll(c *worker.Config) { c.Policy = book(policy.ModeAll, "") }

// ruled gives an engine a rule file.
func ruled(rules string) func(*worker.Config) {
	return func(c *worker.Config) { c.Policy = book(policy.ModeRules, rules) }
}

// book is a policy of its own for a work directory that need not exist.
func book(mode policy.Mode, rules string) *policy.Book {
	grants, err := policy.NewGrants(nil)
	if err != nil {
		panic(err)
	}
	where := policy.Context{Root: "/work"}
	b, err := policy.NewBook(where, mode, grants)
	if err != nil {
		panic(err)
	}
	r, err := policy.Parse("rules.toml", []byte(rules), where)
	if err != nil {
		panic(err)
	}
	b.Use(r)
	return b
}

// settle lets the engine do all it can do without time passing, then lets d pass.
func settle(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// item is an exec item of a session, created now.
func item(id, session, command string) wire.Item {
	payload, err := json.Marshal(wire.Exec{Command: command})
	if err != nil {
		panic(err)
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return wire.Item{
		ID: id, SessionID: session, Kind: wire.KindExec, Payload: payload,
		Status: "queued", CreatedAt: now, ClaimedAt: &now,
	}
}

// waiting returns the only waiting hold.
func (b *bench) waiting() worker.View {
	b.t.Helper()
	s := b.engine.Snapshot()
	if len(s.Waiting) != 1 {
		b.t.Fatalf("%d items wait, want 1: %s", len(s.Waiting), describe(s))
	}
	return s.Waiting[0]
}

// last returns the hold that ended last, as the history has it.
func (b *bench) last() worker.Hold {
	b.t.Helper()
	holds, err := b.store.Find(context.Background(), worker.HistoryQuery{Limit: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	if len(holds) == 0 {
		b.t.Fatal("the history is empty")
	}
	return holds[0]
}

func (b *bench) approve(v worker.View) {
	b.t.Helper()
	if err := b.engine.Approve(v.ID, v.Digest, "operator"); err != nil {
		b.t.Fatal(err)
	}
}

func describe(s worker.Snapshot) string {
	var out strings.Builder
	for name, views := range map[string][]worker.View{"waiting": s.Waiting, "running": s.Running, "finished": s.Finished} {
		for _, v := range views {
			fmt.Fprintf(&out, "%s #%d %s %s; ", name, v.ID, v.Item.ID, v.Word)
		}
	}
	return out.String()
}

func (b *bench) wantStarts(commands ...string) {
	b.t.Helper()
	if got := b.tools.started(); !slices.Equal(got, commands) {
		b.t.Errorf("started %q, want %q", got, commands)
	}
}

func (b *bench) wantCalls(route string, n int) {
	b.t.Helper()
	if got := len(b.script.made(route)); got != n {
		b.t.Errorf("%d %s requests, want %d", got, route, n)
	}
}

var errDisk = errors.New("no space left on device")
