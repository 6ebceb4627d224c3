package main

import (
	"testing"

	"countersign/worker"
)

// told notes the events that reach the window.
type told struct{ events []worker.EventKind }

func (t *told) Changed()                { t.events = append(t.events, "changed") }
func (t *told) Happened(e worker.Event) { t.events = append(t.events, e.Kind) }

func waitingEvents(mode string, tell func(*relay)) (n int) {
	r, to := newRelay(mode), &told{}
	observer := worker.Observer(to)
	r.to.Store(&observer)
	tell(r)
	for _, kind := range to.events {
		if kind == worker.EventWaiting {
			n++
		}
	}
	return n
}

func TestWaitingItemsAreToldAsConfigured(t *testing.T) {
	twice := func(r *relay) {
		r.Happened(worker.Event{Kind: worker.EventWaiting})
		r.Happened(worker.Event{Kind: worker.EventWaiting})
	}
	again := func(r *relay) {
		twice(r)
		r.seen(worker.Snapshot{Waiting: []worker.View{{}}}) // one still waits
		twice(r)
		r.seen(worker.Snapshot{}) // none does
		twice(r)
	}
	for _, c := range []struct {
		mode string
		tell func(*relay)
		want int
	}{
		{"off", twice, 0}, {"first", twice, 1}, {"every", twice, 2},
		{"off", again, 0}, {"first", again, 2}, {"every", again, 6},
	} {
		if got := waitingEvents(c.mode, c.tell); got != c.want {
			t.Errorf("%s: told %d times, want %d", c.mode, got, c.want)
		}
	}
}

func TestOtherEventsAreToldWhateverIsConfigured(t *testing.T) {
	r, to := newRelay("off"), &told{}
	r.Happened(worker.Event{Kind: worker.EventLeaseLost}) // before there is a window: no panic
	observer := worker.Observer(to)
	r.to.Store(&observer)
	r.Happened(worker.Event{Kind: worker.EventLeaseLost})
	if len(to.events) != 1 || to.events[0] != worker.EventLeaseLost {
		t.Errorf("told %v", to.events)
	}
}
