package harness

import (
	"context"
	"testing"
)

func TestAnItemGivenAwayIsAnothersUnlessItWasAccepted(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	if err := s.GiveAway(context.Background(), id, "w2"); err != nil {
		t.Fatal(err)
	}
	wants(t, "heartbeat of the first", s.heartbeats(id, "w1"), 409, "")
	wants(t, "accept of the first", s.accepts(id, "w1"), 409, "")
	wants(t, "accept of the second", s.accepts(id, "w2"), 200, "")
	if err := s.GiveAway(context.Background(), id, "w3"); err == nil {
		t.Error("an accepted item was given away")
	}
	wants(t, "complete of the second", s.completes(id, "w2"), 200, "")
	if err := s.GiveAway(context.Background(), "work_none", "w2"); err == nil {
		t.Error("an unknown item was given away")
	}
}
