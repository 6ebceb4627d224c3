package worker

import "slices"

// mayStart says whether h may ask for its accept now. e.mu must be held.
func (e *Engine) mayStart(h *hold) bool { return slices.Contains(e.next(), h) }

// giveTurns wakes those who may start. e.mu must be held.
func (e *Engine) giveTurns() {
	for _, h := range e.next() {
		h.wake()
	}
}

// next returns those who may ask for their accept now: for each there is a slot, and
// nobody who was claimed before it can take it. e.mu must be held.
func (e *Engine) next() (next []*hold) {
	if e.paused || e.quitting {
		return nil
	}
	free := e.cfg.MaxRunning - e.slotsTaken()
	for _, h := range e.holds { // in the order of their claims
		if len(next) >= free {
			break
		}
		if h.phase == phaseInLine && h.rec.Decision == Approved && h.life.Err() == nil && e.isHead(h) {
			next = append(next, h)
		}
	}
	return next
}

// wake has a hold that waits for its turn look whether it has come. e.mu must be
// held.
func (h *hold) wake() {
	if h.turn != nil {
		close(h.turn)
		h.turn = nil
	}
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
