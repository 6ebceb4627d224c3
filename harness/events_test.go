package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

// listens opens a session's event stream.
func (s *served) listens(session string) *http.Response {
	s.t.Helper()
	// An event that never comes fails the test instead of hanging it.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/sessions/"+session+"/events/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func readEvent(t *testing.T, r *bufio.Reader) Event {
	t.Helper()
	var e Event
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
}

func TestAStreamTellsASessionsChangesInOrder(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	s.makes("sess_2", "")
	resp := s.listens("sess_1")
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %s", got)
	}
	r := bufio.NewReader(resp.Body)
	want := func(typ, item, status string) {
		t.Helper()
		if got := readEvent(t, r); got != (Event{typ, "sess_1", item, status}) {
			t.Errorf("told %+v, want %s %s %s", got, typ, item, status)
		}
	}
	want(EventSession, "", "idle")
	s.enqueues("sess_2") // not told here
	s.moves("sess_1", SessionRunning)
	want(EventSession, "", "running")
	done := s.enqueues("sess_1")
	want(EventWorkItem, done, "queued")
	s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", SessionID: "sess_1"})
	want(EventWorkItem, done, "claimed")
	acceptIt(s, done)
	want(EventWorkItem, done, "accepted")
	s.heartbeats(done, "w1") // changes nothing
	s.completes(done, "w1")
	want(EventWorkItem, done, "applied")
	left := s.enqueues("sess_1")
	want(EventWorkItem, left, "queued")
	s.moves("sess_1", SessionCancelled)
	want(EventSession, "", "terminated")
	want(EventWorkItem, left, "stopped")
}

func TestAStreamTellsOfWorkThatBecameUnknown(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	id := s.heldItem()
	acceptIt(s, id)
	r := bufio.NewReader(s.listens("sess_1").Body)
	readEvent(t, r)
	s.clock.advance(DefaultLease)
	s.claims("w2")
	if got := readEvent(t, r); got.ItemID != id || got.Status != statusUnknown {
		t.Errorf("told %+v", got)
	}
}

func TestAStreamOfAnUnknownSessionIsNotFound(t *testing.T) {
	s := serve(t, Options{})
	if got := s.listens("sess_none").StatusCode; got != http.StatusNotFound {
		t.Errorf("status %d", got)
	}
}

func TestStreamsEndWhenTheHarnessCloses(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	r := bufio.NewReader(s.listens("sess_1").Body)
	readEvent(t, r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

func TestStreamsAreBoundedInNumberAndReleasedWhenTheirReaderLeaves(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	for range maxStreams {
		s.streams <- struct{}{}
	}
	if got := s.listens("sess_1").StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("status %d", got)
	}
	<-s.streams
	resp := s.listens("sess_1")
	readEvent(t, bufio.NewReader(resp.Body))
	resp.Body.Close()
	s.streams <- struct{}{} // blocks until the handler gave its place back
}

func TestAListenerThatFallsBehindIsMarkedAndNobodyWaitsForIt(t *testing.T) {
	b := newHub()
	slow := b.subscribe(sessionTopic("s"), 2)
	quick := b.subscribe(sessionTopic("s"), 3)
	for range 3 {
		b.publish(Event{SessionID: "s"})
	}
	if !slow.lagged.Load() || quick.lagged.Load() || len(quick.events) != 3 {
		t.Errorf("slow lagged %v, quick lagged %v with %d events", slow.lagged.Load(), quick.lagged.Load(), len(quick.events))
	}
	b.unsubscribe(slow)
	b.unsubscribe(quick)
	if len(b.subs) != 0 {
		t.Error("the hub keeps topics that nobody listens to")
	}
}

// stuck is a reader that takes nothing until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	writing, release chan struct{}
}

func (w *stuck) Write(p []byte) (int, error) {
	select {
	case w.writing <- struct{}{}:
	default:
	}
	<-w.release
	return w.ResponseRecorder.Write(p)
}

func TestAStreamEndsWhenItsReaderFallsTooFarBehind(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	w := &stuck{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/sessions/sess_1/events/stream", nil)
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Handler().ServeHTTP(w, r)
	}()
	<-w.writing
	for range streamBuffer + 1 {
		s.changed("sess_1", "work_1", statusQueued)
	}
	close(w.release)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the stream goes on as if nothing were missing")
	}
}
