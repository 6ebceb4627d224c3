package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/app/config"
	"countersign/harness"
	"countersign/worker/api/wire"
)

// harnessAt serves an embedded harness and returns a client of it.
func harnessAt(t *testing.T) (*harness.Client, *httptest.Server) {
	t.Helper()
	h, err := harness.Open(t.Context(), harness.Options{Path: filepath.Join(t.TempDir(), "h.db")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() { h.Close(); server.Close() })
	return harness.NewClient(server.URL, "", nil), server
}

func TestAWaitThatNobodyTookTheWorkInSaysThatItMayStillRun(t *testing.T) {
	client, _ := harnessAt(t)
	item, err := client.Enqueue(t.Context(), "s1", wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Await(t.Context(), item.ID, time.Millisecond)
	err = awaitError(item.ID, err)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitQueueTimeout {
		t.Errorf("ended with %v", err)
	}
	for _, want := range []string{"(work_queue_timeout, retryable)", "has not run", "still queued", "may run twice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestWorkForAnotherEnvironmentThanItsSessionsIsNotQueued(t *testing.T) {
	client, server := harnessAt(t)
	enqueue := func(session, environment string) error {
		c := enqueueCommand{Harness: server.URL, Session: session, EnvironmentID: environment, Timeout: time.Millisecond}
		return c.do(config.Credentials{}, wire.KindList, wire.List{})
	}
	var exit *exitError
	for _, environment := range []string{"env_a", "", "env_a"} {
		if err := enqueue("s", environment); !errors.As(err, &exit) || exit.code != exitQueueTimeout {
			t.Errorf("for environment %q: %v", environment, err)
		}
	}
	if err := enqueue("s", "env_b"); err == nil || !strings.Contains(err.Error(), `session s was made for environment "env_a"`) {
		t.Errorf("for another: %v", err)
	}
	if list, err := client.WorkItems(t.Context(), "env_a"); err != nil || len(list.Items) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAWaitThatBreaksOffSaysThatTheWorkStays(t *testing.T) {
	client, server := harnessAt(t)
	item, err := client.Enqueue(t.Context(), "s1", wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errQuit)
	_, broken := client.Await(interrupted, item.ID, time.Second)
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"type":"unavailable","message":"The harness is shutting down."}}`)
	}))
	defer refuse.Close()
	_, stopped := harness.NewClient(refuse.URL, "", nil).Await(t.Context(), item.ID, time.Second)
	for what, err := range map[string]error{"interrupted": broken, "stopped": stopped} {
		said := awaitError(item.ID, err).Error()
		if !strings.Contains(said, "stays with the harness") || !strings.Contains(said, "may run twice") || strings.Contains(said, server.URL) || strings.Contains(said, "..") {
			t.Errorf("%s: %s", what, said)
		}
	}
}

func TestAnEnqueueWithoutAnAnswerSaysThatTheWorkMayBeThere(t *testing.T) {
	client, server := harnessAt(t)
	server.Close()
	_, err := client.Enqueue(t.Context(), "s1", wire.KindExec, wire.Exec{Command: "true"})
	if said := enqueueError(err).Error(); !strings.Contains(said, "may have the work") {
		t.Error(said)
	}
	refused := &harness.AnswerError{HTTPStatus: http.StatusBadRequest, Message: "No."}
	if said := enqueueError(refused).Error(); strings.Contains(said, "may have the work") {
		t.Errorf("of a refusal: %s", said)
	}
}

func TestHowACommandEndedStandsOnALineOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		stderr string
		exit   int
		want   string
	}{
		{"declined: no", 126, "declined: no\n[exit 126]\n"},
		{"line\n", 3, "line\n[exit 3]\n"},
		{"", 1, "[exit 1]\n"},
		{"warned", 0, "warned"},
	} {
		if got := stderrText(wire.ExecResult{Stderr: c.stderr, ExitCode: c.exit}); got != c.want {
			t.Errorf("%q with exit %d: %q", c.stderr, c.exit, got)
		}
	}
}
