package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"

	"countersign/harness"
	"countersign/store"
	"countersign/ui"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// stuck is a notification service, and a UI thread, that never come back.
type stuck struct{ until chan struct{} }

func (s stuck) Notify(string, string) error { <-s.until; return nil }
func (s stuck) onUI(func())                 { <-s.until }

// The window's thread can hang: in a driver, a font, a display that went away.
func TestAWindowThatHangsStopsNoHeartbeatAndNoCommand(t *testing.T) {
	const lease = 2 * time.Second
	var beats, lost atomic.Int64
	h, err := harness.Open(t.Context(), harness.Options{Path: filepath.Join(t.TempDir(), "h.db"), Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/heartbeat") {
			beats.Add(1)
		}
		h.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); h.Close() })
	journal, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })

	r := newRelay("every")
	engine := engineFor(t, server.URL, lease, journal, lossCounter{r, &lost})
	hung := stuck{make(chan struct{})}
	u := ui.New(ui.Options{
		App: test.NewTempApp(t), Desk: worker.NewDesk(engine), History: journal, Notifier: hung, OnUI: hung.onUI,
		Quit: func() {}, SessionBus: func() bool { return false }, TrayHost: func(context.Context) bool { return false },
	})
	observer := worker.Observer(u)
	r.to.Store(&observer)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(hung.until)
		u.Close()
	})

	client := harness.NewClient(server.URL, "", nil)
	item, err := client.Enqueue(t.Context(), "s", wire.KindExec, wire.Exec{Command: "echo ran"})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "it waits", func() bool { return len(engine.Snapshot().Waiting) == 1 })
	within(t, "its lease is renewed, three windows long", func() bool { return beats.Load() >= 9 })
	v := engine.Snapshot().Waiting[0]
	if err := engine.Approve(v.ID, v.Digest, worker.ByOperator); err != nil {
		t.Fatal(err)
	}
	result, err := client.Await(t.Context(), item.ID, 30*time.Second)
	var done wire.ExecResult
	if err != nil || json.Unmarshal(result.Result, &done) != nil || done.Stdout != "ran\n" {
		t.Errorf("the result is %s, %v", result.Result, err)
	}
	if n := lost.Load(); n != 0 {
		t.Errorf("a lease was lost %d times", n)
	}
}

func engineFor(t *testing.T, origin string, lease time.Duration, journal *store.Store, o worker.Observer) *worker.Engine {
	t.Helper()
	client, err := api.New(api.Options{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	runner, err := execute.New(execute.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := policy.NewGrants(journal)
	if err != nil {
		t.Fatal(err)
	}
	book, err := policy.NewBook(policy.Context{Root: runner.Dir()}, policy.ModeAsk, grants)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := worker.New(worker.Config{
		Name: "c", Origin: client.Origin(), WorkerID: "w", Harness: client, Journal: journal, Policy: book, Runner: runner,
		OutputDir: t.TempDir(), Lease: lease, Observer: o, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// lossCounter counts lost leases on the way to an observer.
type lossCounter struct {
	worker.Observer
	lost *atomic.Int64
}

func (c lossCounter) Happened(e worker.Event) {
	if e.Kind == worker.EventLeaseLost {
		c.lost.Add(1)
	}
	c.Observer.Happened(e)
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to pass that %s", what)
		}
	}
}
