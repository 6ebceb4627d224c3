package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	url     string // of the harness
	client  *harness.Client
	dir     string // the work directory
	journal *store.Store
	engine  *worker.Engine
	stop    func()
}

func startReal(t testing.TB, options harness.Options, changes ...func(*worker.Config)) *real {
	t.Helper()
	options.Path = filepath.Join(t.TempDir(), "harness.db")
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
	return startRealAt(t, server.URL, changes...)
}

// startRealAt is startReal with a harness that runs already.
func startRealAt(t testing.TB, url string, changes ...func(*worker.Config)) *real {
	t.Helper()
	base := t.TempDir()
	r := &real{t: t, url: url, client: harness.NewClient(url, "", nil), dir: filepath.Join(base, "work")}
	err := os.Mkdir(r.dir, 0o755)
	if err != nil {
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
	client, err := api.New(api.Options{Origin: url})
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
