package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/harness"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// real is the engine with nothing replaced: the embedded harness over TCP, the
// journal on disk, commands by /bin/sh.
type real struct {
	t       testing.TB
	server  *httptest.Server
	client  *harness.Client
	dir     string // the work directory
	journal *store.Store
	engine  *worker.Engine
	stop    func()
}

func startReal(t testing.TB, options harness.Options, changes ...func(*worker.Config)) *real {
	t.Helper()
	base := t.TempDir()
	options.Path = filepath.Join(base, "harness.db")
	h, err := harness.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &real{t: t, server: server, client: harness.NewClient(server.URL, "", nil), dir: filepath.Join(base, "work")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if r.journal, err = store.Open(t.Context(), filepath.Join(base, "journal.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := api.New(api.Options{Origin: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	runner, err := execute.New(execute.Options{Dir: r.dir, Grace: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Config{
		Name: "real", Origin: client.Origin(), WorkerID: "w1", Harness: client, Journal: r.journal,
		Policy: book(policy.ModeAll, ""), Runner: runner, OutputDir: filepath.Join(base, "output"),
		Log: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&cfg)
	}
	if r.engine, err = worker.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.engine.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *real) enqueue(session, kind string, payload any) string {
	r.t.Helper()
	it, err := r.client.Enqueue(r.t.Context(), session, kind, payload)
	if err != nil {
		r.t.Fatal(err)
	}
	return it.ID
}

func (r *real) await(id string) harness.Result {
	r.t.Helper()
	result, err := r.client.Await(r.t.Context(), id, 30*time.Second)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// until waits for a condition that the engine brings about by itself.
func (r *real) until(what string, holds func(worker.Snapshot) bool) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds(r.engine.Snapshot()) {
		select {
		case <-deadline:
			r.t.Fatalf("never: %s; %s", what, describe(r.engine.Snapshot()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestEveryKindOfWorkIsDoneAndReported(t *testing.T) {
	r := startReal(t, harness.Options{})
	r.await(r.enqueue("s", wire.KindWrite, wire.Write{Path: "a/b.txt", Content: "hello\n"}))
	var text string
	if err := json.Unmarshal(r.await(r.enqueue("s", wire.KindRead, wire.Read{Path: "/a/b.txt"})).Result, &text); err != nil || text != "hello\n" {
		t.Errorf("read %q, %v", text, err)
	}
	if got := string(r.await(r.enqueue("s", wire.KindList, wire.List{})).Result); got != `["a/b.txt"]` {
		t.Errorf("listed %s", got)
	}
	var done wire.ExecResult
	exec := r.await(r.enqueue("s", wire.KindExec, wire.Exec{Command: "cat a/b.txt; echo no >&2; exit 3"}))
	if err := json.Unmarshal(exec.Result, &done); err != nil {
		t.Fatal(err)
	}
	if done.ExitCode != 3 || done.Stdout != "hello\n" || done.Stderr != "no\n" || exec.Failed {
		t.Errorf("exec gave %+v", done)
	}
	missing := r.await(r.enqueue("s", wire.KindRead, wire.Read{Path: "missing"}))
	if !missing.Failed {
		t.Errorf("reading a missing file gave %s", missing.Result)
	}
	custom := r.await(r.enqueue("s", wire.KindCustomTool, map[string]any{"tool_name": "x"}))
	if !custom.Failed {
		t.Errorf("a custom tool gave %s", custom.Result)
	}
}

func TestAStoppedSessionEndsTheCommandThatRunsForIt(t *testing.T) {
	r := startReal(t, harness.Options{Lease: 900 * time.Millisecond}, func(c *worker.Config) { c.Lease = 900 * time.Millisecond })
	session, err := r.client.CreateSession(t.Context(), harness.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	r.enqueue(session.ID, wire.KindExec, wire.Exec{Command: "echo started > started; sleep 600"})
	r.until("it runs", func(s worker.Snapshot) bool {
		_, err := os.Stat(filepath.Join(r.dir, "started"))
		return err == nil
	})
	if _, err := r.client.StopSession(t.Context(), session.ID); err != nil {
		t.Fatal(err)
	}
	r.until("it was stopped", func(s worker.Snapshot) bool {
		return len(s.Finished) == 1 && s.Finished[0].Word == worker.WordStopped && s.Finished[0].Closed
	})
}

func TestAStoppedSessionsWaitingItemIsWithdrawnUnrun(t *testing.T) {
	r := startReal(t, harness.Options{Lease: 900 * time.Millisecond}, func(c *worker.Config) {
		c.Lease, c.Policy = 900*time.Millisecond, book(policy.ModeRules, "")
	})
	id := r.enqueue("s", wire.KindExec, wire.Exec{Command: "touch ran"})
	r.until("it waits", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 })
	if _, err := r.client.StopSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	r.until("it was withdrawn", func(s worker.Snapshot) bool {
		return len(s.Finished) == 1 && s.Finished[0].Word == worker.WordWithdrawn
	})
	if _, err := os.Stat(filepath.Join(r.dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	var lost *harness.AwaitError
	if _, err := r.client.Await(t.Context(), id, 0); !errors.As(err, &lost) || lost.Code != wire.CodeLeaseLost {
		t.Errorf("the session was told %v", err)
	}
}

func TestAHarnessOfTheOldGenerationIsNeverClaimedFrom(t *testing.T) {
	r := startReal(t, harness.Options{Generation: harness.Old})
	r.enqueue("s", wire.KindExec, wire.Exec{Command: "touch ran"})
	r.until("it is told", func(s worker.Snapshot) bool { return s.Connections[0].State == worker.CannotAccept })
	items, err := r.client.WorkItems(t.Context(), "")
	if err == nil && len(items.Items) == 1 && items.Items[0].ClaimedBy != nil {
		t.Error("the item was claimed")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

func TestAHarnessOfTheMiddleGenerationIsWorkedFor(t *testing.T) {
	r := startReal(t, harness.Options{Generation: harness.WithAccept})
	r.await(r.enqueue("s", wire.KindExec, wire.Exec{Command: "true"}))
}

func TestItemsOfManySessionsEachRunOnce(t *testing.T) {
	r := startReal(t, harness.Options{}, func(c *worker.Config) { c.MaxRunning = 4 })
	const sessions, each = 10, 10
	var ids []string
	for i := range sessions * each {
		ids = append(ids, r.enqueue(fmt.Sprint("s", i%sessions), wire.KindExec,
			wire.Exec{Command: fmt.Sprintf("echo %d >> s%d", i/sessions, i%sessions)}))
	}
	for _, id := range ids {
		r.await(id)
	}
	var want strings.Builder
	for i := range each {
		fmt.Fprintln(&want, i)
	}
	for i := range sessions {
		got, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprint("s", i)))
		if err != nil || string(got) != want.String() {
			t.Errorf("session %d ran %q, %v", i, got, err)
		}
	}
}

// BenchmarkItems sees `true` through its whole life, four at once, and beside it a
// plain loop that does the same requests and the same command on the same harness,
// without a journal, a helper or a transcript. The ratio is the price of the
// promise: the two take turns, and it is the median of all turns, so that what else
// the machine does matters little.
func BenchmarkItems(b *testing.B) { benchmarkItems(b, nil) }

// BenchmarkItemsUnderAHelper is BenchmarkItems as the program is installed: with
// commands under the helper.
func BenchmarkItemsUnderAHelper(b *testing.B) { benchmarkItems(b, installedKeeper(b)) }

func benchmarkItems(b *testing.B, keeper *execute.Keeper) {
	const atOnce, turn = 4, 200
	ours := &gated{}
	r := startReal(b, harness.Options{}, under(b, keeper), func(c *worker.Config) {
		c.MaxRunning, c.MaxHeld = atOnce, 2*atOnce
		c.Poll.Active, c.Poll.Idle = 5*time.Millisecond, 5*time.Millisecond // a turn begins at once
		ours.Harness, c.Harness = c.Harness, ours
	})
	timed := func(items int, work func()) time.Duration {
		ids := r.fill(items)
		start := time.Now()
		var working sync.WaitGroup
		working.Go(work)
		for _, id := range ids {
			r.await(id)
		}
		took := time.Since(start)
		working.Wait()
		return took
	}
	var journalled, plain time.Duration
	var ratios []float64
	b.ResetTimer()
	for left := b.N; left > 0; left -= turn {
		items := min(left, turn)
		ours.claims.Lock()
		b.StopTimer()
		took := timed(items, func() { r.plainly(atOnce) })
		b.StartTimer()
		by := timed(items, ours.claims.Unlock)
		journalled, plain = journalled+by, plain+took
		ratios = append(ratios, by.Seconds()/took.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(float64(b.N)/journalled.Seconds(), "items/s")
	b.ReportMetric(float64(b.N)/plain.Seconds(), "plain-items/s")
	b.ReportMetric(ratios[len(ratios)/2], "times-plain")
}

// gated is a harness that hands nothing out while claims are held back.
type gated struct {
	worker.Harness
	claims sync.Mutex
}

func (g *gated) Claim(ctx context.Context, workerID string) (api.Item, bool, error) {
	g.claims.Lock()
	defer g.claims.Unlock()
	return g.Harness.Claim(ctx, workerID)
}

// BenchmarkStartAfterAccept is how long after the accept's answer a command runs:
// from the answer's arrival to what the command itself takes for the time, one
// after another, its shell and its `date` included.
func BenchmarkStartAfterAccept(b *testing.B) {
	for name, keeper := range map[string]*execute.Keeper{"helper": installedKeeper(b), "group": nil} {
		b.Run(name, func(b *testing.B) {
			answers := &stamped{at: make(map[string]time.Time)}
			r := startReal(b, harness.Options{}, under(b, keeper), func(c *worker.Config) {
				answers.Harness, c.Harness = c.Harness, answers
				c.Poll.Active = time.Millisecond
			})
			var took []time.Duration
			for b.Loop() {
				id := r.enqueue("s", wire.KindExec, wire.Exec{Command: "date +%s%N"})
				var done wire.ExecResult
				if err := json.Unmarshal(r.await(id).Result, &done); err != nil {
					b.Fatal(err)
				}
				at, err := strconv.ParseInt(strings.TrimSpace(done.Stdout), 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Unix(0, at).Sub(answers.of(id)))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
			b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "p95-ms")
		})
	}
}

// stamped is a harness that remembers when each accept was answered.
type stamped struct {
	worker.Harness
	mu sync.Mutex
	at map[string]time.Time
}

func (s *stamped) Accept(ctx context.Context, itemID, workerID string) error {
	err := s.Harness.Accept(ctx, itemID, workerID)
	s.mu.Lock()
	s.at[itemID] = time.Now()
	s.mu.Unlock()
	return err
}

func (s *stamped) of(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

// under has commands run under a helper, if there is a keeper.
func under(b *testing.B, keeper *execute.Keeper) func(*worker.Config) {
	return func(c *worker.Config) {
		if keeper == nil {
			return
		}
		runner, err := execute.New(execute.Options{Dir: c.Runner.Dir(), Keeper: keeper})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(keeper.Dismiss)
		c.Runner = runner
	}
}

// installedKeeper returns a keeper whose helper is the program that is installed
// beside ours.
func installedKeeper(b *testing.B) *execute.Keeper {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	helper := filepath.Join(filepath.Dir(self), "countersign-keeper")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", helper, "countersign/worker/execute/keeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Cleanup(func() { os.Remove(helper) })
	keeper, err := execute.NewKeeper()
	if err != nil {
		b.Fatal(err)
	}
	if keeper == nil {
		b.Skip("there are no helpers on this system")
	}
	return keeper
}

// fill puts so many items in the queue, each of a session of its own.
func (r *real) fill(n int) (ids []string) {
	for i := range n {
		ids = append(ids, r.enqueue(fmt.Sprint("s", i), wire.KindExec, wire.Exec{Command: "true"}))
	}
	return ids
}

// plainly empties the queue with so many loops that write nothing down.
func (r *real) plainly(loops int) {
	client, err := api.New(api.Options{Origin: r.server.URL})
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			for {
				item, found, err := client.Claim(r.t.Context(), "plain")
				if err != nil {
					r.t.Error(err)
				}
				if err != nil || !found {
					return
				}
				err = errors.Join(
					client.Accept(r.t.Context(), item.ID, "plain"),
					exec.Command("/bin/sh", "-c", "true").Run(),
					client.Complete(r.t.Context(), item.ID, "plain", json.RawMessage(`{"exitCode":0}`), false))
				if err != nil {
					r.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
