package worker

import (
	"encoding/json"
	"testing"

	"countersign/worker/execute"
)

func TestTheLastThatFinishedAreRemembered(t *testing.T) {
	e := &Engine{}
	for id := range HoldID(keepFinished + 50) {
		e.remember(View{Hold: Hold{ID: id}})
	}
	if n := len(e.finished); n != keepFinished || e.finished[0].ID != 50 || e.finished[n-1].ID != keepFinished+49 {
		t.Errorf("%d, from %d to %d", n, e.finished[0].ID, e.finished[n-1].ID)
	}
}

func TestOfLargeOnesFewerAreRememberedAndOneAtLeast(t *testing.T) {
	large := func(id HoldID, size int) View {
		half := make(json.RawMessage, size/2)
		return View{Hold: Hold{ID: id, Item: Item{Payload: half}, Outcome: &execute.Outcome{Result: half}}}
	}
	e := &Engine{}
	for id := range HoldID(10) {
		e.remember(large(id, keepBytes/4))
	}
	if n := len(e.finished); n != 4 || e.finished[0].ID != 6 || e.finishedBytes != keepBytes {
		t.Errorf("%d from %d, %d bytes", n, e.finished[0].ID, e.finishedBytes)
	}
	e.remember(large(10, 2*keepBytes))
	if n := len(e.finished); n != 1 || e.finished[0].ID != 10 {
		t.Errorf("%d from %d", n, e.finished[0].ID)
	}
	e.remember(View{Hold: Hold{ID: 11}})
	if n := len(e.finished); n != 1 || e.finished[0].ID != 11 || e.finishedBytes != 0 {
		t.Errorf("%d from %d, %d bytes", n, e.finished[0].ID, e.finishedBytes)
	}
}
