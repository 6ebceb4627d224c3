package harness

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"countersign/worker/api/wire"
)

// everyRoute is one request for each route, in its least form.
func everyRoute() []string {
	return []string{
		"POST " + wire.ClaimPath, "POST " + wire.AcceptPath, "POST " + wire.HeartbeatPath, "POST " + wire.CompletePath,
		"GET " + wire.HealthPath, "POST /v1/sessions", "GET /v1/sessions/s", "POST /v1/sessions/s/status",
		"POST /v1/sessions/s/stop", "POST /v1/sessions/s/work-items", "GET /v1/sessions/s/events/stream",
		"GET /v1/environments/e/work-items", "GET /v1/work-items/w/result?timeout_ms=0", "POST /v1/no/such/route",
	}
}

func (s *served) request(route string, change func(*http.Request)) answer {
	s.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(`{}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	change(req)
	return s.send(req)
}

func TestEveryRouteButHealthWantsAnAPIKey(t *testing.T) {
	s := serve(t, Options{APIKeys: []string{"first-key", "second-key"}})
	for _, route := range everyRoute() {
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer first-ke", "Basic first-key", "first-key", "Bearer first-key second-key"} {
			a := s.request(route, func(r *http.Request) { r.Header.Set("Authorization", header) })
			if route == "GET "+wire.HealthPath {
				wants(t, route, a, 200, "")
				continue
			}
			wants(t, route+" with "+header, a, 401, "")
		}
		for _, header := range []string{"Bearer first-key", "bearer second-key"} {
			a := s.request(route, func(r *http.Request) { r.Header.Set("Authorization", header) })
			if a.status == http.StatusUnauthorized {
				t.Errorf("%s refuses %q", route, header)
			}
		}
	}
}

func TestAKeyIsTakenWhoseHashAloneIsKnown(t *testing.T) {
	s := serve(t, Options{APIKeyHashes: []string{HashKey("first-key")}})
	for header, want := range map[string]bool{"Bearer first-key": true, "Bearer wrong": false, "Bearer " + HashKey("first-key"): false, "": false} {
		a := s.request("GET /v1/sessions/s", func(r *http.Request) { r.Header.Set("Authorization", header) })
		if taken := a.status != http.StatusUnauthorized; taken != want {
			t.Errorf("%q: status %d", header, a.status)
		}
	}
	if _, err := Open(t.Context(), Options{Path: t.TempDir() + "/h.db", APIKeyHashes: []string{"cs_key"}}); err == nil {
		t.Error("a key was taken for a hash")
	}
}

func TestOnlyALoopbackHostIsAnswered(t *testing.T) {
	s := serve(t, Options{})
	tests := map[string]bool{
		"localhost": true, "LocalHost:3000": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]": true, "[::1]:3000": true,
		"evil.example": false, "evil.example:3000": false, "127.0.0.1.evil.example": false, "localhost.evil.example:80": false, "10.0.0.1:3000": false, "0.0.0.0": false,
	}
	for host, allowed := range tests {
		a := s.request("GET "+wire.HealthPath, func(r *http.Request) { r.Host = host })
		if got := a.status != http.StatusForbidden; got != allowed {
			t.Errorf("Host %q: status %d", host, a.status)
		}
	}
	anyHost := serve(t, Options{AnyHost: true})
	wants(t, "any host", anyHost.request("GET "+wire.HealthPath, func(r *http.Request) { r.Host = "evil.example" }), 200, "")
}

func TestPostsWantAJSONContentType(t *testing.T) {
	s := serve(t, Options{})
	for _, route := range everyRoute() {
		if !strings.HasPrefix(route, "POST") {
			continue
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"} {
			wants(t, route+" as "+kind, s.request(route, func(r *http.Request) { r.Header.Set("Content-Type", kind) }), 415, "")
		}
		if a := s.request(route, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }); a.status == 415 {
			t.Errorf("%s refuses JSON with a charset", route)
		}
	}
}

func TestOversizedBodiesAreRefusedAndChangeNothing(t *testing.T) {
	s := serve(t, Options{MaxBody: 100 << 10})
	id := s.heldItem()
	big := strings.Repeat("x", 100<<10)
	wants(t, "complete", s.post(wire.CompletePath, `{"id":"`+id+`","worker_id":"w1","result":"`+big+`"}`), 413, "")
	wants(t, "enqueue", s.post("/v1/sessions/sess_1/work-items", `{"kind":"exec","payload":"`+big+`"}`), 413, "")
	wants(t, "claim", s.post(wire.ClaimPath, `{"worker_id":"`+big[:maxSmallBody]+`"}`), 413, "")
	wants(t, "accept", s.post(wire.AcceptPath, `{"id":"`+big[:maxSmallBody]+`"}`), 413, "")
	wants(t, "shorter report", s.post(wire.CompletePath, `{"id":"`+id+`","worker_id":"w1","result":"`+big[:50<<10]+`"}`), 200, "")
}

func TestAnEnvironmentKeyClaimsForItsEnvironmentAlone(t *testing.T) {
	keys := map[string]string{"key-a": "env_a", "key-b": "env_b"}
	for _, withAPIKey := range []bool{false, true} {
		o := Options{EnvironmentKeys: keys}
		if withAPIKey {
			o.APIKeys = []string{"api"}
		}
		s := serve(t, o)
		s.makes("sess_a", "env_a")
		id := s.enqueues("sess_a")
		claim := func(environment, key string) answer {
			return s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentID: environment, EnvironmentKey: key})
		}
		wants(t, "wrong key", claim("", "key-c"), 401, "")
		wants(t, "outside the scope", claim("env_a", "key-b"), 400, "")
		wants(t, "other environment", claim("", "key-b"), 204, "")
		if got := claim("", "key-a").item(t).ID; got != id {
			t.Errorf("claimed %s, want %s", got, id)
		}
		wants(t, "named too", claim("env_a", "key-a"), 204, "")
		if withAPIKey {
			wants(t, "no environment key, an API key", claim("env_a", ""), 204, "")
		} else {
			wants(t, "no key at all", claim("env_a", ""), 401, "")
		}
	}
	none := serve(t, Options{})
	wants(t, "a key where there are none", none.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentKey: "key-a"}), 401, "")
}

func TestKeysAndPayloadsNeverReachTheLog(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, Options{
		APIKeys: []string{"api-secret"}, EnvironmentKeys: map[string]string{"env-secret": "env_a"},
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if _, err := s.client.Enqueue(context.Background(), "sess_1", wire.KindExec, wire.Exec{Command: "payload-secret"}); err != nil {
		t.Fatal(err)
	}
	s.claims("w1")
	s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentKey: "env-secret", EnvironmentID: "env_b"})
	s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentKey: "guessed-secret"})
	s.request("POST /v1/sessions", func(r *http.Request) { r.Header.Set("Authorization", "Bearer other-secret") })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.claims("w1")
	if log.Len() == 0 || strings.Contains(log.String(), "secret") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestHealthIsHealthyAndSaysWhenItIsNot(t *testing.T) {
	s := serve(t, Options{})
	a := s.request("GET "+wire.HealthPath, func(*http.Request) {})
	if a.status != 200 || !strings.Contains(string(a.body), `"status":"healthy"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wants(t, "health when closed", s.request("GET "+wire.HealthPath, func(*http.Request) {}), 503, "")
	wants(t, "claim when closed", s.claims("w1"), 503, "")
}

func TestAnInternalErrorTellsNoDetails(t *testing.T) {
	s := serve(t, Options{})
	if _, err := s.pools.writer.Exec(`DROP TABLE sessions`); err != nil {
		t.Fatal(err)
	}
	a := s.claims("w1")
	wants(t, "claim", a, 500, "")
	if strings.Contains(string(a.body), "table") {
		t.Errorf("told %s", a.body)
	}
}
