package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"countersign/worker/api/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 9, 28, 6, 3, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// served is a harness served on loopback, with a clock that stands still.
type served struct {
	*Harness
	t      testing.TB
	url    string
	clock  *clock
	client *Client
	key    string
}

// serve opens a harness on a new database and serves it over real HTTP.
func serve(t testing.TB, o Options) *served {
	t.Helper()
	s := &served{t: t, clock: newClock()}
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "harness.db")
	}
	if o.Now == nil {
		o.Now = s.clock.Now
	}
	if len(o.APIKeys) > 0 {
		s.key = o.APIKeys[0]
	}
	h, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		h.stop()
		server.Close()
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s.Harness, s.url = h, server.URL
	s.client = NewClient(server.URL, s.key, server.Client())
	return s
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) error(t testing.TB) wire.ErrorBody {
	t.Helper()
	var e wire.Error
	if err := json.Unmarshal(a.body, &e); err != nil || e.Error.Type == "" || e.Error.Message == "" {
		t.Fatalf("status %d with a body that is no error: %q", a.status, a.body)
	}
	return e.Error
}

func (a answer) item(t testing.TB) wire.Item {
	t.Helper()
	var item wire.Item
	if a.status/100 != 2 {
		t.Fatalf("status %d, want an item: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &item); err != nil {
		t.Fatal(err)
	}
	return item
}

// post sends a JSON text.
func (s *served) post(path, body string) answer {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	return s.send(req)
}

func (s *served) send(req *http.Request) answer {
	s.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, bytes.TrimSpace(body)}
}

// call sends v as JSON.
func (s *served) call(path string, v any) answer {
	s.t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.post(path, string(body))
}

func (s *served) claims(worker string) answer {
	s.t.Helper()
	return s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: worker})
}

func (s *served) accepts(id, worker string) answer {
	s.t.Helper()
	return s.call(wire.AcceptPath, wire.HoldRequest{ID: id, WorkerID: worker})
}

func (s *served) heartbeats(id, worker string) answer {
	s.t.Helper()
	return s.call(wire.HeartbeatPath, wire.HoldRequest{ID: id, WorkerID: worker})
}

func (s *served) completes(id, worker string) answer {
	s.t.Helper()
	return s.call(wire.CompletePath, wire.CompleteRequest{ID: id, WorkerID: worker, Result: json.RawMessage(`{"ok":true}`)})
}

// enqueues puts an exec item in a session's queue and returns its id.
func (s *served) enqueues(session string) string {
	s.t.Helper()
	item, err := s.client.Enqueue(context.Background(), session, wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		s.t.Fatal(err)
	}
	return item.ID
}

// heldItem enqueues an item that w1 has claimed.
func (s *served) heldItem() string {
	s.t.Helper()
	id := s.enqueues("sess_1")
	if got := s.claims("w1").item(s.t).ID; got != id {
		s.t.Fatalf("claimed %s, want %s", got, id)
	}
	return id
}

// makes creates a session.
func (s *served) makes(id, environment string) {
	s.t.Helper()
	if _, err := s.client.CreateSession(context.Background(), NewSession{ID: id, EnvironmentID: environment}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) moves(id string, to SessionStatus) {
	s.t.Helper()
	if _, err := s.client.SetStatus(context.Background(), id, to); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) stops(id string) int {
	s.t.Helper()
	n, err := s.client.StopSession(context.Background(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// status reads an item's status from the database.
func (s *served) status(id string) string {
	s.t.Helper()
	return s.column(id, "status")
}

// column reads one column of an item as text, "" for NULL.
func (s *served) column(id, name string) string {
	s.t.Helper()
	var v string
	if err := s.pools.reader.QueryRow(`SELECT COALESCE(CAST(`+name+` AS TEXT), '') FROM work_items WHERE id = ?`, id).Scan(&v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// wants checks an answer's status and code.
func wants(t testing.TB, what string, a answer, status int, code string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s: status %d, want %d: %s", what, a.status, status, a.body)
	}
	if status/100 == 2 {
		return
	}
	if got := a.error(t).Code; got != code {
		t.Fatalf("%s: code %q, want %q", what, got, code)
	}
}
