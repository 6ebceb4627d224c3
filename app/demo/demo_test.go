package demo

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/harness"
	"countersign/worker/api"
	"countersign/worker/execute"
)

// inProcess carries requests to a handler without a socket, so that the time of
// a synctest bubble can pass.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host = "localhost"
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// stage is an embedded harness, a work directory with the sample project, and
// a worker that does what decide lets it.
type stage struct {
	client *harness.Client
	worker *api.Client
	other  Rival
	dir    string

	mu    sync.Mutex
	asked []string // what was claimed, in order
}

// onStage runs a test in a bubble. decide says whether an item is done; one
// that is not is declined.
func onStage(t *testing.T, decide func(task execute.Task) bool, test func(ctx context.Context, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s := &stage{dir: t.TempDir()}
		if err := CopyProject(s.dir); err != nil {
			t.Fatal(err)
		}
		h, err := harness.Open(ctx, harness.Options{Path: filepath.Join(t.TempDir(), "h.db"), Lease: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		transport := inProcess{h.Handler()}
		s.client = harness.NewClient("http://localhost", "", &http.Client{Transport: transport})
		if s.worker, err = api.New(api.Options{Origin: "http://localhost", EnvironmentID: Environment, Transport: transport}); err != nil {
			t.Fatal(err)
		}
		s.other = Rival{ID: "another", GiveAway: h.GiveAway, Complete: s.worker.Complete}
		runner, err := execute.New(execute.Options{Dir: s.dir})
		if err != nil {
			t.Fatal(err)
		}
		worked := make(chan struct{})
		go func() { defer close(worked); s.work(ctx, t, runner, decide) }()
		test(ctx, s)
		cancel()
		<-worked
	})
}

func (s *stage) work(ctx context.Context, t *testing.T, runner *execute.Runner, decide func(execute.Task) bool) {
	for pause(ctx, time.Second) {
		item, found, err := s.worker.Claim(ctx, "w1")
		if err != nil || !found {
			continue
		}
		task, err := execute.Decode(item.Kind, item.Payload)
		if err != nil {
			t.Errorf("an agent asked for %s: %v", item.Payload, err)
			continue
		}
		s.mu.Lock()
		s.asked = append(s.asked, task.Kind+" "+task.Command+task.Path)
		s.mu.Unlock()
		if !decide(task) {
			declined, failed := json.RawMessage(`{"exitCode":126,"stdout":"","stderr":"An operator declined this.","timedOut":false,"aborted":false}`), false
			if task.Kind != "exec" {
				declined, failed = json.RawMessage(`{"message":"An operator declined this."}`), true
			}
			if err := s.worker.Complete(ctx, item.ID, "w1", declined, failed); err != nil {
				t.Error(err)
			}
			continue
		}
		if err := s.worker.Accept(ctx, item.ID, "w1"); err != nil {
			t.Error(err)
			continue
		}
		o := runner.Run(ctx, task, filepath.Join(s.dir, "..", "transcript"))
		if err := s.worker.Complete(ctx, item.ID, "w1", o.Result, o.Failed); err != nil {
			t.Error(err)
		}
	}
}

func (s *stage) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

func played(ctx context.Context, t *testing.T, s *stage, play func(context.Context, *agent) error) {
	t.Helper()
	if err := start(ctx, s.client, s.other, harness.NewSession{EnvironmentID: Environment}, play); err != nil {
		t.Error(err)
	}
}

func always(execute.Task) bool { return true }
func never(execute.Task) bool  { return false }

func TestTheSampleProjectsTestsFailUntilTheAgentHasMendedThem(t *testing.T) {
	onStage(t, always, func(ctx context.Context, s *stage) {
		played(ctx, t, s, fixRounding)
		if got := strings.Join(s.asked, ", "); got != "list ., read README.md, exec sh tests/run.sh, read src/cart.sh, write src/cart.sh, exec sh tests/run.sh, write docs/rounding.md" {
			t.Errorf("asked %s", got)
		}
		if !strings.Contains(s.file("docs/rounding.md"), "0 failed") {
			t.Errorf("the note says %s", s.file("docs/rounding.md"))
		}
	})
}

func TestADeclinedAgentGoesOnAndSaysSo(t *testing.T) {
	onStage(t, never, func(ctx context.Context, s *stage) {
		played(ctx, t, s, fixRounding)
		if got := s.asked[len(s.asked)-1]; got != "write docs/rounding.md" {
			t.Errorf("the last that was asked is %s", got)
		}
		if s.file("docs/rounding.md") != "" {
			t.Error("what was declined was written")
		}
	})
}

func TestALeaseIsTakenAwayUnlessTheOperatorWasQuick(t *testing.T) {
	onStage(t, always, func(ctx context.Context, s *stage) { played(ctx, t, s, takenByAnother) })
	synctest.Test(t, func(t *testing.T) {
		h, err := harness.Open(context.Background(), harness.Options{Path: filepath.Join(t.TempDir(), "h.db"), Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		transport := inProcess{h.Handler()}
		client := harness.NewClient("http://localhost", "", &http.Client{Transport: transport})
		worker, err := api.New(api.Options{Origin: "http://localhost", EnvironmentID: Environment, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- start(context.Background(), client, Rival{"another", h.GiveAway, worker.Complete}, harness.NewSession{EnvironmentID: Environment}, takenByAnother)
		}()
		time.Sleep(time.Second)
		item, found, err := worker.Claim(context.Background(), "w1")
		if err != nil || !found {
			t.Fatal(err, found)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := worker.Heartbeat(context.Background(), item.ID, "w1"); err == nil {
			t.Error("the item is still the first worker's")
		}
	})
}

func TestTheWholePlayEnds(t *testing.T) {
	quick := func(task execute.Task) bool {
		return task.Kind != "exec" || strings.HasPrefix(task.Command, "sh tests")
	}
	onStage(t, quick, func(ctx context.Context, s *stage) {
		Play(ctx, s.client, s.other, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if len(s.asked) < 8 {
			t.Errorf("asked only %v", s.asked)
		}
	})
}
