package harness

import (
	"net/http"
	"time"
)

// Generation says which harness of PROTOCOL.md §6 is spoken. The older ones exist
// so that a worker can be tried against them.
type Generation int

// The generations.
const (
	Newest     Generation = iota // an accepted item whose lease lapsed is unknown
	WithAccept                   // an accepted item whose lease lapsed is handed out again
	Old                          // no accept, no heartbeat, no lease, environment keys ignored
)

// lease is the window of a claim. The old harness has none: what was handed out
// once is never handed out again.
func (g Generation) lease(configured time.Duration) time.Duration {
	if g == Old {
		return 100 * 365 * 24 * time.Hour
	}
	return configured
}

// claimable is the list of statuses that a claim takes once no lease holds them,
// as SQL text.
func (g Generation) claimable() string {
	if g == Newest {
		return "'queued'"
	}
	return "'queued', 'accepted'"
}

// sweeps reports whether accepted items become unknown when their lease lapses.
func (g Generation) sweeps() bool { return g == Newest }

// word spells a status as this generation does. The older ones name the hold, the
// newest one the commitment.
func (g Generation) word(status string, held bool) string {
	switch {
	case g == Newest:
		return status
	case status == statusQueued && !held:
		return "pending"
	case status == statusQueued, status == statusAccepted:
		return "claimed"
	case status == statusApplied:
		return "done"
	}
	return status
}

// holdRoutes adds accept and heartbeat, or their absence.
func (h *Harness) holdRoutes(mux *http.ServeMux, accept, heartbeat string) {
	if h.options.Generation == Old {
		mux.HandleFunc(accept, http.NotFound)
		mux.HandleFunc(heartbeat, http.NotFound)
		return
	}
	mux.HandleFunc(accept, h.handleHold(h.accept))
	mux.HandleFunc(heartbeat, h.handleHold(h.heartbeat))
}
