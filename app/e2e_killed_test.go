package main_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker/api/wire"
)

func TestEndToEndKilledWhileAnItemWaits(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	e := l.enqueue("s1", "50s", "exec", "--", "echo run >> runs")
	before, _ := l.waiting()
	w.kill()
	l.work()
	id, code := l.waiting()
	if id != before {
		t.Errorf("hold %s became %s", before, id)
	}
	if _, errs, exit := l.run("approve", id, code); exit != 0 {
		t.Fatalf("approve: %s", errs)
	}
	if exit := e.wait(); exit != 0 || l.file("runs") != "run\n" {
		t.Errorf("exit %d, runs %q", exit, l.file("runs"))
	}
}

func TestEndToEndKilledWhileACommandRuns(t *testing.T) {
	for name, c := range map[string]struct {
		generation harness.Generation
		exit       int
		said       string
	}{
		"a harness that calls it unknown once the lease lapsed":   {harness.Newest, 4, "work_outcome_unknown"},
		"a harness that would hand it to another is told at once": {harness.WithAccept, 0, "[exit 125]"},
	} {
		t.Run(name, func(t *testing.T) { killedWhileRunning(t, c.generation, c.exit, c.said) })
	}
}

func killedWhileRunning(t *testing.T, generation harness.Generation, exit int, said string) {
	l := newLab(t)
	l.hostHarness(harness.Options{Lease: time.Second, Generation: generation}, nil)
	w := l.work("--approve", "all", "--lease-ms", "1000")
	e := l.enqueue("s1", "40s", "exec", "--", "echo $$ >> runs; exec sleep 600")
	eventually(t, "the command runs", func() bool { return strings.HasSuffix(l.file("runs"), "\n") })
	w.kill()
	l.endsLater("runs")
	for command, words := range map[string]string{"history": "1   20", "show 1": "accept status   Was running", "tail 1": "[Was running", "doctor": "1 item was running when Countersign ended (#1)"} {
		out, errs, _ := l.run(strings.Fields(command)...)
		if !strings.Contains(out+errs, words) || command == "history" && !strings.Contains(out, "Was running: Countersign ended while it ran") {
			t.Errorf("%s after the kill: %s%s", command, out, errs)
		}
	}
	l.work("--approve", "all", "--lease-ms", "1000")
	eventually(t, "it is found interrupted", func() bool {
		out, _, _ := l.run("history", "--outcome", "interrupted")
		return strings.Contains(out, "Interrupted")
	})
	if code := e.wait(); code != exit || !strings.Contains(e.out.String(), said) {
		t.Errorf("the session was told exit %d: %s", code, e.out.String())
	}
	// Other work is done, so this one was passed over, not merely late.
	if code := l.enqueue("s2", "50s", "exec", "--", "true").wait(); code != 0 {
		t.Errorf("the next item: exit %d", code)
	}
	if n := strings.Count(l.file("runs"), "\n"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestEndToEndKilledWithAResultUndelivered(t *testing.T) {
	l := newLab(t)
	var refused atomic.Int32
	var open atomic.Bool
	l.hostHarness(harness.Options{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.CompletePath && !open.Load() {
				refused.Add(1)
				http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	w := l.work("--approve", "all")
	e := l.enqueue("s1", "50s", "exec", "--", "echo once | tee -a runs")
	eventually(t, "the result was turned away", func() bool { return refused.Load() > 0 })
	w.kill()
	open.Store(true)
	l.work("--approve", "all")
	if exit := e.wait(); exit != 0 || e.out.String() != "once\n" {
		t.Errorf("exit %d, %s", exit, e.out.String())
	}
	if l.file("runs") != "once\n" {
		t.Errorf("runs: %q", l.file("runs"))
	}
}
