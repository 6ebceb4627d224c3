package worker

// mayStart says whether h may ask for its accept now: there is a slot, and nobody
// who was claimed before it can take it. e.mu must be held.
func (e *Engine) mayStart(h *hold) bool {
	if e.paused || e.quitting || e.slotsTaken() >= e.cfg.MaxRunning {
		return false
	}
	for _, other := range e.holds { // in the order of their claims
		if other == h {
			break
		}
		if other.phase == phaseInLine && other.rec.Decision == Approved && e.isHead(other) {
			return false
		}
	}
	return e.isHead(h)
}

func (e *Engine) slotsTaken() (n int) {
	for _, h := range e.holds {
		if h.phase.inSlot() && !h.processEnded {
			n++
		}
	}
	return n
}

// isHead says whether h is the first of its session among ours that has not
// ended.
func (e *Engine) isHead(h *hold) bool {
	for _, other := range e.holds {
		if other != h && other.phase < phaseDelivering && other.before(h) {
			return false
		}
	}
	return true
}

// before says whether h comes before other in one session's order. An item
// without a session has no order.
func (h *hold) before(other *hold) bool {
	a, b := h.rec.Item, other.rec.Item
	if a.SessionID == "" || a.SessionID != b.SessionID {
		return false
	}
	if !a.CreatedAt.Equal(b.CreatedAt) {
		return a.CreatedAt.Before(b.CreatedAt)
	}
	return h.claimed < other.claimed
}
