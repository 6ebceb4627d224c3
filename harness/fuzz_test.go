package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

// FuzzEveryRequestIsAnswered asks a harness that has work in each state whatever
// comes to mind. No request breaks it: it answers in JSON, and never with 500.
func FuzzEveryRequestIsAnswered(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"POST", wire.ClaimPath, `{"worker_id":"w1","session_id":"s","environment_id":"e","environment_key":"k"}`},
		{"POST", wire.AcceptPath, `{"id":"held","worker_id":"w1"}`},
		{"POST", wire.AcceptPath, `{}`},
		{"POST", wire.HeartbeatPath, `{"id":"accepted","worker_id":"w1"}`},
		{"POST", wire.CompletePath, `{"id":"accepted","worker_id":"w1","result":{"exitCode":0},"failed":true}`},
		{"POST", "/v1/sessions", `{"id":"s2","environment_id":"e","title":"t"}`},
		{"POST", "/v1/sessions/s/status", `{"status":"completed"}`},
		{"POST", "/v1/sessions/s/stop", `{}`},
		{"POST", "/v1/sessions/s/work-items", `{"kind":"exec","payload":{"command":"true"}}`},
		{"GET", "/v1/sessions/s", ``},
		{"GET", "/v1/sessions/s/events/stream", ``},
		{"GET", "/v1/environments/e/work-items", ``},
		{"GET", "/v1/work-items/queued/result?timeout_ms=0", ``},
		{"GET", wire.HealthPath, ``},
		{"POST", "/v1/sessions/%2e%2e/work-items?x=%zz", "{\"kind\":\"\xff\",\"payload\":null}"},
	} {
		f.Add(seed.method, seed.target, []byte(seed.body))
	}
	h, err := Open(context.Background(), Options{Path: filepath.Join(f.TempDir(), "harness.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close() })
	handler := h.Handler()
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		given(t, h)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond) // waits and streams
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+target, bytes.NewReader(body))
		if err != nil {
			return
		}
		r.RequestURI = r.URL.RequestURI()
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if ctx.Err() != nil {
			return
		}
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %q: the answer is not JSON: %q", method, target, body, w.Body)
		}
	})
}

// given empties the harness and puts one item of each state into it.
func given(t *testing.T, h *Harness) {
	t.Helper()
	for _, statement := range []string{
		`DELETE FROM work_items`, `DELETE FROM sessions`,
		`INSERT INTO sessions (id, environment_id, title, status, created_at, updated_at) VALUES ('s', 'e', '', 'running', 1, 1)`,
		`INSERT INTO work_items (id, session_id, environment_id, kind, payload, status, created_at)
			VALUES ('queued', 's', 'e', 'exec', '{}', 'queued', 1)`,
		`INSERT INTO work_items (id, session_id, environment_id, kind, payload, status, created_at, claimed_by, claimed_at, lease_until)
			VALUES ('held', 's', 'e', 'exec', '{}', 'queued', 1, 'w1', 1, 9e15), ('accepted', 's', 'e', 'exec', '{}', 'accepted', 1, 'w1', 1, 9e15)`,
	} {
		if _, err := h.pools.writer.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}
