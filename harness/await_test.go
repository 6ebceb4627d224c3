package harness

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"countersign/worker/api/wire"
)

// inProcess calls a handler without a socket, so that time passes in a bubble.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// bubble runs test in a synctest bubble with a harness whose clock is the bubble's.
func bubble(t *testing.T, test func(t *testing.T, h *Harness, c *Client)) {
	path := filepath.Join(t.TempDir(), "harness.db")
	synctest.Test(t, func(t *testing.T) {
		h, err := Open(context.Background(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		test(t, h, NewClient("http://127.0.0.1", "", &http.Client{Transport: inProcess{h.Handler()}}))
	})
}

func enqueued(t *testing.T, c *Client) string {
	t.Helper()
	item, err := c.Enqueue(t.Context(), "sess_1", wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	return item.ID
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The table of PROTOCOL.md §5: the row at the deadline, and how the wait ends.
func TestAWaitEndsWithTheCodeOfItsRow(t *testing.T) {
	claim := func(t *testing.T, h *Harness) string {
		t.Helper()
		item, found, err := h.claim(t.Context(), "w1", scope{})
		must(t, err)
		if !found {
			t.Fatal("nothing to claim")
		}
		return item.ID
	}
	stop := func(t *testing.T, h *Harness) {
		t.Helper()
		_, err := h.stopSession(t.Context(), "sess_1")
		must(t, err)
	}
	accept := func(t *testing.T, h *Harness, id string) {
		t.Helper()
		must(t, h.accept(t.Context(), id, "w1"))
	}
	tests := []struct {
		name        string
		given       func(t *testing.T, h *Harness, id string)
		code, retry string
		abandoned   bool
	}{
		{"queued, never claimed", func(*testing.T, *Harness, string) {}, wire.CodeQueueTimeout, wire.Retryable, false},
		{"stopped, never claimed", func(t *testing.T, h *Harness, _ string) { stop(t, h) }, wire.CodeLeaseLost, wire.NotRetryable, false},
		{"stopped, held", func(t *testing.T, h *Harness, _ string) { claim(t, h); stop(t, h) }, wire.CodeLeaseLost, wire.NotRetryable, true},
		{"stopped, accepted", func(t *testing.T, h *Harness, id string) { claim(t, h); accept(t, h, id); stop(t, h) }, wire.CodeLeaseLost, wire.NotRetryable, false},
		{"held", func(t *testing.T, h *Harness, _ string) { claim(t, h) }, wire.CodeOutcomeUnknown, wire.NotRetryable, true},
		{"held, lapsed", func(t *testing.T, h *Harness, _ string) { claim(t, h); time.Sleep(DefaultLease) }, wire.CodeOutcomeUnknown, wire.NotRetryable, true},
		{"accepted", func(t *testing.T, h *Harness, id string) { claim(t, h); accept(t, h, id) }, wire.CodeOutcomeUnknown, wire.NotRetryable, false},
		{"unknown", func(t *testing.T, h *Harness, id string) {
			claim(t, h)
			accept(t, h, id)
			time.Sleep(DefaultLease)
			_, _, err := h.claim(t.Context(), "w2", scope{})
			must(t, err)
		}, wire.CodeOutcomeUnknown, wire.NotRetryable, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *Harness, c *Client) {
				id := enqueued(t, c)
				test.given(t, h, id)
				_, err := c.Await(t.Context(), id, 5*time.Second)
				gaveUp, ok := errors.AsType[*AwaitError](err)
				if !ok {
					t.Fatalf("the wait ended with %v", err)
				}
				if gaveUp.Code != test.code || gaveUp.RetryStatus != test.retry || gaveUp.Message == "" {
					t.Errorf("ended with %+v, want %s, %s", gaveUp, test.code, test.retry)
				}
				var abandoned bool
				must(t, h.pools.reader.QueryRow(`SELECT abandoned_at IS NOT NULL FROM work_items WHERE id = ?`, id).Scan(&abandoned))
				if abandoned != test.abandoned {
					t.Errorf("abandoned %v, want %v", abandoned, test.abandoned)
				}
			})
		})
	}
}

func TestARowThatCannotBeReadHasAnUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, h *Harness, c *Client) {
		id := enqueued(t, c)
		_, err := h.pools.writer.Exec(`ALTER TABLE work_items RENAME COLUMN result TO elsewhere`)
		must(t, err)
		start := time.Now()
		_, err = c.Await(t.Context(), id, 5*time.Second)
		if gaveUp, ok := errors.AsType[*AwaitError](err); !ok || gaveUp.Code != wire.CodeOutcomeUnknown || gaveUp.RetryStatus != wire.NotRetryable {
			t.Errorf("the wait ended with %v", err)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("the wait ended after %v", waited)
		}
	})
}

func TestAnAbandonedItemIsStillItsHoldersToAcceptAndReport(t *testing.T) {
	bubble(t, func(t *testing.T, h *Harness, c *Client) {
		id := enqueued(t, c)
		_, _, err := h.claim(t.Context(), "w1", scope{})
		must(t, err)
		if _, err := c.Await(t.Context(), id, time.Second); err == nil {
			t.Fatal("a result from nowhere")
		}
		must(t, h.accept(t.Context(), id, "w1"))
		must(t, h.complete(t.Context(), id, "w1", json.RawMessage(`7`), false))
		if got, err := c.Await(t.Context(), id, 0); err != nil || string(got.Result) != "7" {
			t.Errorf("the result is %+v, %v", got, err)
		}
	})
}

func TestAResultEndsTheWaitAtOnceStoppedWorkIncluded(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		bubble(t, func(t *testing.T, h *Harness, c *Client) {
			id := enqueued(t, c)
			_, _, err := h.claim(t.Context(), "w1", scope{})
			must(t, err)
			must(t, h.accept(t.Context(), id, "w1"))
			go func() {
				time.Sleep(3 * time.Second)
				if stopped {
					_, _ = h.stopSession(context.Background(), "sess_1")
				}
				time.Sleep(3 * time.Second)
				_ = h.complete(context.Background(), id, "w1", json.RawMessage(`{"message":"no"}`), true)
			}()
			start := time.Now()
			got, err := c.Await(t.Context(), id, time.Minute)
			if err != nil || string(got.Result) != `{"message":"no"}` || !got.Failed {
				t.Errorf("stopped %v: %+v, %v", stopped, got, err)
			}
			if waited := time.Since(start); waited != 6*time.Second {
				t.Errorf("stopped %v: waited %v", stopped, waited)
			}
		})
	}
}

func TestAResultThatCameBetweenTheDeadlineAndTheVerdictWins(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	acceptIt(s, id)
	s.stops("sess_1")
	wants(t, "complete", s.completes(id, "w1"), 200, "")
	if got, err := s.giveUp(t.Context(), id); err != nil || string(got.Result) != `{"ok":true}` {
		t.Errorf("the wait ended with %+v, %v", got, err)
	}
}

func TestAWaitForNothingIsRefused(t *testing.T) {
	s := serve(t, Options{})
	id := s.enqueues("sess_1")
	get := func(path string) answer {
		req, err := http.NewRequest(http.MethodGet, s.url+path, nil)
		must(t, err)
		return s.send(req)
	}
	wants(t, "unknown id", get("/v1/work-items/work_none/result?timeout_ms=0"), 404, "")
	wants(t, "no timeout", get("/v1/work-items/"+id+"/result"), 400, "")
	wants(t, "negative", get("/v1/work-items/"+id+"/result?timeout_ms=-1"), 400, "")
	wants(t, "too long", get("/v1/work-items/"+id+"/result?timeout_ms=86400001"), 400, "")
	wants(t, "the deadline of none", get("/v1/work-items/"+id+"/result?timeout_ms=0"), 504, wire.CodeQueueTimeout)
	s.stops("sess_1")
	wants(t, "stopped", get("/v1/work-items/"+id+"/result?timeout_ms=0"), 409, wire.CodeLeaseLost)
}

func TestAWaitOutlivesTheServersTimeLimits(t *testing.T) {
	s := serve(t, Options{})
	id := s.enqueues("sess_1")
	server := httptest.NewUnstartedServer(s.Handler())
	server.Config.ReadTimeout, server.Config.WriteTimeout = 20*time.Millisecond, 20*time.Millisecond
	server.Start()
	defer server.Close()
	_, err := NewClient(server.URL, "", server.Client()).Await(t.Context(), id, 200*time.Millisecond)
	if gaveUp, ok := errors.AsType[*AwaitError](err); !ok || gaveUp.Code != wire.CodeQueueTimeout {
		t.Errorf("the wait ended with %v", err)
	}
}

func TestServeEndsWaitsWhenItsContextEnds(t *testing.T) {
	h, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "harness.db")})
	must(t, err)
	defer h.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := NewClient("http://"+l.Addr().String(), "", &http.Client{Transport: transport})
	id := enqueued(t, c)
	waited := make(chan error, 1)
	go func() {
		_, err := c.Await(context.Background(), id, time.Hour)
		waited <- err
	}()
	for !h.hub.listening(itemTopic(id)) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if answer, ok := errors.AsType[*AnswerError](<-waited); !ok || answer.HTTPStatus != http.StatusServiceUnavailable {
		t.Errorf("the wait ended with %+v", answer)
	}
	must(t, <-served)
}

// listening reports whether anybody listens to a topic.
func (b *hub) listening(topic string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs[topic]) > 0
}
