package harness

import (
	"net/http"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

func TestEachGenerationSpellsStatusesItsOwnWay(t *testing.T) {
	want := map[Generation][5]string{ // waiting, held, accepted, applied, failed
		Newest:     {"queued", "queued", "accepted", "applied", "failed"},
		WithAccept: {"pending", "claimed", "claimed", "done", "failed"},
		Old:        {"pending", "claimed", "claimed", "done", "failed"},
	}
	for g, words := range want {
		got := [5]string{
			g.word(statusQueued, false), g.word(statusQueued, true), g.word(statusAccepted, true),
			g.word(statusApplied, true), g.word(statusFailed, true),
		}
		if got != words {
			t.Errorf("generation %d: %v, want %v", g, got, words)
		}
	}
}

func TestTheClaimAnswerTellsTheGenerationsApart(t *testing.T) {
	for g, want := range map[Generation]string{Newest: "queued", WithAccept: "claimed", Old: "claimed"} {
		s := serve(t, Options{Generation: g})
		s.enqueues("sess_1")
		if got := s.claims("w1").item(t).Status; got != want {
			t.Errorf("generation %d: claimed item is %q, want %q", g, got, want)
		}
	}
}

func TestWithAcceptHandsOutAnAcceptedItemAgain(t *testing.T) {
	s := serve(t, Options{Generation: WithAccept})
	id := s.heldItem()
	acceptIt(s, id)
	wants(t, "claim inside the lease", s.claims("w2"), 204, "")
	s.clock.advance(DefaultLease)
	again := s.claims("w2").item(t)
	if again.ID != id || again.AcceptedAt != nil {
		t.Errorf("handed out %+v", again)
	}
	wants(t, "accept by the first", s.accepts(id, "w1"), 409, "")
	wants(t, "report by the first", s.completes(id, "w1"), 409, "")
	wants(t, "accept by the second", s.accepts(id, "w2"), 200, "")
}

func TestOldHasNoAcceptNoHeartbeatAndNoLease(t *testing.T) {
	s := serve(t, Options{Generation: Old})
	id := s.heldItem()
	for _, path := range []string{wire.AcceptPath, wire.HeartbeatPath} {
		a := s.post(path, `{}`)
		if a.status != http.StatusNotFound || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
	s.clock.advance(30 * 24 * time.Hour)
	wants(t, "claim", s.claims("w2"), 204, "")
	wants(t, "complete", s.completes(id, "w1"), 200, "")
}

func TestOldIgnoresTheEnvironmentKey(t *testing.T) {
	s := serve(t, Options{Generation: Old, EnvironmentKeys: map[string]string{"key-a": "env_a"}})
	id := s.enqueues("sess_1")
	got := s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentKey: "wrong"}).item(t).ID
	if got != id {
		t.Errorf("claimed %s, want %s", got, id)
	}
}
