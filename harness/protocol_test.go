package harness

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

// Each row is one sentence of PROTOCOL.md §2: what is true of an item that w1
// claimed, and what the routes answer then.
func TestEveryRefusalOfTheWorkerRoutes(t *testing.T) {
	const lost = wire.CodeLeaseLost
	type want struct {
		status int
		code   string
	}
	ok, taken, stopped := want{200, ""}, want{409, ""}, want{409, lost}
	tests := []struct {
		name                        string
		worker                      string
		given                       func(s *served, id string)
		accept, heartbeat, complete want
	}{
		{"held", "w1", nil, ok, ok, ok},
		{"held by another", "w2", nil, taken, taken, taken},
		{"lapsed and not taken", "w1", lapse, stopped, ok, ok},
		{"lapsed, of another", "w2", lapse, taken, taken, taken},
		{"lapsed and taken", "w1", func(s *served, _ string) { lapse(s, ""); s.claims("w2") }, taken, taken, taken},
		{"accepted", "w1", acceptIt, ok, ok, ok},
		{"accepted and lapsed", "w1", func(s *served, id string) { acceptIt(s, id); lapse(s, id) }, stopped, ok, ok},
		{"accepted, lapsed and swept", "w1", func(s *served, id string) { acceptIt(s, id); lapse(s, id); s.claims("w2") }, taken, taken, taken},
		{"stopped", "w1", stopIt, stopped, stopped, ok},
		{"stopped after the accept", "w1", func(s *served, id string) { acceptIt(s, id); stopIt(s, id) }, stopped, stopped, ok},
		{"stopped, accepted, lapsed and swept over", "w1", func(s *served, id string) { acceptIt(s, id); stopIt(s, id); lapse(s, id); s.claims("w2") }, stopped, stopped, ok},
		{"stopped is said before held by another", "w2", stopIt, stopped, stopped, stopped},
		{"finished", "w1", func(s *served, id string) { s.completes(id, "w1") }, taken, taken, taken},
		{"finished by another", "w2", func(s *served, id string) { s.completes(id, "w1") }, taken, taken, taken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for route, want := range map[string]want{"accept": test.accept, "heartbeat": test.heartbeat, "complete": test.complete} {
				s := serve(t, Options{})
				id := s.heldItem()
				if test.given != nil {
					test.given(s, id)
				}
				var got answer
				switch route {
				case "accept":
					got = s.accepts(id, test.worker)
				case "heartbeat":
					got = s.heartbeats(id, test.worker)
				case "complete":
					got = s.completes(id, test.worker)
				}
				wants(t, route, got, want.status, want.code)
				if want == ok && string(got.body) != `{"ok":true}` {
					t.Errorf("%s: body %s", route, got.body)
				}
			}
		})
	}
}

func lapse(s *served, _ string)     { s.clock.advance(DefaultLease) }
func acceptIt(s *served, id string) { wants(s.t, "accept", s.accepts(id, "w1"), 200, "") }
func stopIt(s *served, _ string)    { s.stops("sess_1") }

func TestAnItemThatNobodyClaimedIsNobodysToAccept(t *testing.T) {
	s := serve(t, Options{})
	id := s.enqueues("sess_1")
	wants(t, "accept", s.accepts(id, "w1"), 409, "")
	wants(t, "heartbeat", s.heartbeats(id, "w1"), 409, "")
	wants(t, "complete", s.completes(id, "w1"), 409, "")
	if got := s.status(id); got != statusQueued {
		t.Errorf("status %s", got)
	}
}

func TestUnknownIDsAreNotFound(t *testing.T) {
	s := serve(t, Options{})
	wants(t, "accept", s.accepts("work_none", "w1"), 404, "")
	wants(t, "heartbeat", s.heartbeats("work_none", "w1"), 404, "")
	wants(t, "complete", s.completes("work_none", "w1"), 404, "")
}

func TestBadRequestsAreSaid(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	for _, test := range []struct{ path, body string }{
		{wire.AcceptPath, `{}`},
		{wire.AcceptPath, `{"id":"` + id + `"}`},
		{wire.AcceptPath, `{"worker_id":"w1"}`},
		{wire.HeartbeatPath, `{}`},
		{wire.CompletePath, `{}`},
		{wire.CompletePath, `{"id":"` + id + `","worker_id":"w1"}`}, // no result
		{wire.CompletePath, `{"id":"` + id + `","result":null}`},
		{wire.ClaimPath, `{}`},
		{wire.ClaimPath, ``},
		{wire.ClaimPath, `<html>`},
		{wire.ClaimPath, `[]`},
		{wire.ClaimPath, `{"worker_id":7}`},
		{wire.ClaimPath, `{"worker_id":"w1"} trailing`},
	} {
		wants(t, test.path+" "+test.body, s.post(test.path, test.body), 400, "")
	}
	if got := s.status(id); got != statusQueued {
		t.Errorf("a bad request moved the item to %s", got)
	}
}

func TestANullResultIsAResult(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	wants(t, "complete", s.post(wire.CompletePath, `{"id":"`+id+`","worker_id":"w1","result":null}`), 200, "")
	if got := s.column(id, "result"); got != "null" {
		t.Errorf("result %q", got)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	s := serve(t, Options{})
	wants(t, "claim", s.post(wire.ClaimPath, `{"worker_id":"w1","labels":["x"]}`), 204, "")
}

func TestAClaimAnswersAsTheProtocolWritesIt(t *testing.T) {
	s := serve(t, Options{})
	id := s.enqueues("sess_QTKW")
	s.clock.advance(time.Second)
	a := s.claims("w1")
	var got map[string]any
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": id, "sessionId": "sess_QTKW", "kind": "exec", "payload": map[string]any{"command": "true"},
		"status": "queued", "claimedBy": "w1", "createdAt": "2026-09-28 06:03:00",
		"claimedAt": "2026-09-28 06:03:01", "completedAt": nil,
	}
	gotText, _ := json.Marshal(got)
	wantText, _ := json.Marshal(want)
	if string(gotText) != string(wantText) {
		t.Errorf("got  %s\nwant %s", gotText, wantText)
	}
	if a := s.claims("w1"); a.status != http.StatusNoContent || len(a.body) != 0 {
		t.Errorf("nothing to do answered %d %q", a.status, a.body)
	}
}

func TestPayloadsAndResultsPassAsTheyCame(t *testing.T) {
	s := serve(t, Options{})
	const payload = `{"command":"printf '<&>\u0000\u2028 é'","big":12345678901234567890}`
	wants(t, "enqueue", s.post("/v1/sessions/sess_1/work-items", `{"kind":"exec","payload":`+payload+`}`), 201, "")
	item := s.claims("w1").item(t)
	if string(item.Payload) != payload {
		t.Errorf("payload %s, want %s", item.Payload, payload)
	}
	s.post(wire.CompletePath, `{"id":"`+item.ID+`","worker_id":"w1","result":`+payload+`}`)
	if got := s.column(item.ID, "result"); got != payload {
		t.Errorf("result %s, want %s", got, payload)
	}
}

func TestFailedCompletionsAreFailedAndOthersApplied(t *testing.T) {
	s := serve(t, Options{})
	for failed, want := range map[bool]string{true: statusFailed, false: statusApplied} {
		id := s.heldItem()
		a := s.call(wire.CompletePath, wire.CompleteRequest{ID: id, WorkerID: "w1", Result: json.RawMessage(`{"message":"no"}`), Failed: failed})
		wants(t, "complete", a, 200, "")
		if got := s.status(id); got != want {
			t.Errorf("failed %v: %s, want %s", failed, got, want)
		}
		if s.column(id, "completed_at") == "" {
			t.Error("no completed_at")
		}
	}
}

func TestUnknownRoutesAndMethodsAreNotFoundInJSON(t *testing.T) {
	s := serve(t, Options{})
	wants(t, "unknown", s.post("/v1/x/worker/steal", `{}`), 404, "")
	req, _ := http.NewRequest(http.MethodGet, s.url+wire.ClaimPath, nil)
	wants(t, "GET claim", s.send(req), 404, "")
}
