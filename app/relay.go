package main

import (
	"sync/atomic"

	"countersign/worker"
)

// relay passes what the engines tell on to the window, which is made after
// them, and to whoever keeps the pause across restarts.
type relay struct {
	to      atomic.Pointer[worker.Observer]
	changed chan struct{} // holds one
	waiting atomic.Pointer[string]
	told    atomic.Bool // that something waits, since nothing did
}

func newRelay(waiting string) *relay {
	r := &relay{changed: make(chan struct{}, 1)}
	r.waiting.Store(&waiting)
	return r
}

// Changed implements worker.Observer.
func (r *relay) Changed() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
	if o := r.to.Load(); o != nil {
		(*o).Changed()
	}
}

// Happened implements worker.Observer. What is configured not to be told stays
// here.
func (r *relay) Happened(e worker.Event) {
	o := r.to.Load()
	if o == nil {
		return
	}
	if e.Kind == worker.EventWaiting {
		already := r.told.Swap(true)
		switch mode := *r.waiting.Load(); {
		case mode == "off", mode == "first" && already:
			(*o).Changed()
			return
		}
	}
	(*o).Happened(e)
}

// seen takes note of a snapshot: once nothing waits, the next item is the first.
func (r *relay) seen(s worker.Snapshot) {
	if len(s.Waiting) == 0 {
		r.told.Store(false)
	}
}
