package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

func TestEndToEndChaos(t *testing.T) {
	bin := os.Getenv("COUNTERSIGN_BIN")
	if bin == "" {
		t.Skip("COUNTERSIGN_BIN does not name the built program: make test does")
	}
	figures, err := Run(t.Context(), Options{
		Bin: bin, Dir: t.TempDir(), Items: 40, Sessions: 20, Running: 4, Seed: 7,
		Lease: 1500 * time.Millisecond, KillEvery: 700 * time.Millisecond, Fire: 20 * time.Second, Log: t.Logf,
	})
	t.Logf("\n%s", figures)
	if err := errors.Join(err, figures.Breach()); err != nil {
		t.Error(err)
	}
}

func TestWhatRanTwiceOrWasLostOrUntrueIsABreach(t *testing.T) {
	hold := func(execution worker.Execution, delivery worker.Delivery, closed bool) []worker.Hold {
		h := worker.Hold{ID: 1, Facts: worker.Facts{Execution: execution, Delivery: delivery, Closed: closed}}
		if execution != worker.NotStarted {
			h.Outcome = &execute.Outcome{}
		}
		return []worker.Hold{h}
	}
	unknown := told{code: wire.CodeOutcomeUnknown}
	unrun := told{result: wire.ExecResult{ExitCode: 126}}
	for name, c := range map[string]struct {
		item
		want string // "" for no breach
	}{
		"reported":                            {item{marks: 1, holds: hold(worker.Finished, worker.Delivered, true)}, ""},
		"interrupted and left to lapse":       {item{marks: 1, holds: hold(worker.Interrupted, worker.NothingToDeliver, true), told: unknown}, ""},
		"interrupted before its mark":         {item{holds: hold(worker.Interrupted, worker.NothingToDeliver, true), told: unknown}, ""},
		"declined":                            {item{holds: hold(worker.NotStarted, worker.Delivered, true), told: unrun}, ""},
		"two marks":                           {item{marks: 2, holds: hold(worker.Finished, worker.Delivered, true)}, "ran twice"},
		"an open hold":                        {item{marks: 1, holds: hold(worker.Finished, worker.Delivering, false)}, "lost"},
		"delivered, unknown to the harness":   {item{marks: 1, holds: hold(worker.Finished, worker.Delivered, true), told: unknown}, "lost"},
		"a mark that the journal knows not":   {item{marks: 1, holds: hold(worker.NotStarted, worker.NothingToDeliver, true)}, "untrue"},
		"a mark of what is said not to run":   {item{marks: 1, holds: hold(worker.CouldNotStart, worker.Delivered, true), told: unrun}, "untrue"},
		"no mark of what is said to have run": {item{holds: hold(worker.Finished, worker.Delivered, true)}, "untrue"},
	} {
		t.Run(name, func(t *testing.T) {
			var f Figures
			f.count(c.item)
			switch err := f.Breach(); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestTheProxySpoilsWhatItIsToldToAndNothingElse(t *testing.T) {
	arrived := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived++
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(body)
	}))
	defer upstream.Close()
	p, err := newProxy(upstream.URL, rand.New(rand.NewPCG(1, 1)), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func(f fault) (status int, body string, err error) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, f, 0) }))
		defer server.Close()
		answer, err := http.Post(server.URL+"/x", "application/json", strings.NewReader("question"))
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	for _, c := range []struct {
		fault
		arrives bool
		status  int // 0: the connection breaks
	}{
		{none, true, 409}, {delayBefore, true, 409}, {delayAfter, true, 409},
		{dropBefore, false, 0}, {outage, false, 0}, {dropAfter, true, 0},
		{unavailable, false, 503}, {garbage, false, 200},
	} {
		arrived = 0
		status, body, err := ask(c.fault)
		if (arrived == 1) != c.arrives || status != c.status || (err != nil) != (c.status == 0) {
			t.Errorf("%q: arrived %d times, status %d, %v", c.fault, arrived, status, err)
		}
		if c.status == 409 && body != "question" {
			t.Errorf("%q: the answer is %q", c.fault, body)
		}
	}
	if f, _ := p.next(); f != none {
		t.Errorf("a proxy that was not told to misbehave has %q", f)
	}
}
