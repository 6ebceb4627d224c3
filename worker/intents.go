package worker

import (
	"errors"
	"time"
)

// Why an intent was not carried out, in words for the operator.
var (
	ErrNoHold     = errors.New("no item with this number is held")
	ErrChanged    = errors.New("this is not what was shown: look at the item again before deciding")
	ErrDecided    = errors.New("this item is already decided")
	ErrNotRunning = errors.New("this item is not running")
	ErrAccepted   = errors.New("the harness has been asked to accept this item, so it cannot be released any more")
	ErrNoGrant    = errors.New("this is asked for every time: it can be approved once, not for a session")
)

// Approve countersigns a hold. digest is View.Digest as it was shown: approval of
// anything else is ErrChanged. by names the operator's way in.
func (e *Engine) Approve(id HoldID, digest, by string) error {
	return e.decideFor(id, digest, answer{decision: Approved, by: by})
}

// Decline declines a hold, with words for the agent or "". digest is as for
// Approve.
func (e *Engine) Decline(id HoldID, digest, words, by string) error {
	return e.decideFor(id, digest, answer{decision: Declined, by: by, words: words})
}

func (e *Engine) decideFor(id HoldID, digest string, a answer) error {
	defer e.Present()
	e.mu.Lock()
	defer e.mu.Unlock()
	h, err := e.shown(id, digest)
	if err == nil {
		h.answer(a)
	}
	return err
}

// shown returns the hold that an operator looks at, where it still is what they
// were shown and awaits an answer. e.mu must be held.
func (e *Engine) shown(id HoldID, digest string) (*hold, error) {
	h := e.find(id)
	switch {
	case h == nil:
		return nil, ErrNoHold
	case h.rec.Digest != digest:
		return nil, ErrChanged
	case !h.awaitsAnswer():
		return nil, ErrDecided
	}
	return h, nil
}

// Release lets a hold go without an answer. The harness hands the item out
// again when its lease has lapsed.
func (e *Engine) Release(id HoldID) error {
	defer e.Present()
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.find(id)
	switch {
	case h == nil:
		return ErrNoHold
	case h.declined():
		return ErrDecided
	case h.phase >= phaseAccepting || h.wasAccepted:
		return ErrAccepted
	}
	h.loseLife(errReleased)
	return nil
}

// Stop stops a running item and what it started. It is reported as stopped.
func (e *Engine) Stop(id HoldID) error {
	defer e.Present()
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.find(id)
	switch {
	case h == nil:
		return ErrNoHold
	case !h.phase.inSlot():
		return ErrNotRunning
	}
	h.stopRun(errOperatorStop)
	return nil
}

// StopEverything stops all that runs and pauses.
func (e *Engine) StopEverything() {
	e.Pause(time.Time{})
	e.mu.Lock()
	for _, h := range e.holds {
		if h.phase.inSlot() {
			h.stopRun(errOperatorStop)
		}
	}
	e.mu.Unlock()
	e.changed()
}

// Pause lets nothing be claimed and nothing start until Resume, or until a
// time that is not zero. What runs goes on, approvals are kept.
func (e *Engine) Pause(until time.Time) {
	e.mu.Lock()
	e.paused, e.pausedUntil = true, until
	if e.pauseTimer != nil {
		e.pauseTimer.Stop()
		e.pauseTimer = nil
	}
	if !until.IsZero() {
		e.awaitResume(until)
	}
	e.mu.Unlock()
	e.changed()
}

// awaitResume ends a pause that was to last until then, and no other. Timers stand
// still while the machine sleeps, so it looks often. e.mu must be held.
func (e *Engine) awaitResume(until time.Time) {
	e.pauseTimer = time.AfterFunc(min(until.Sub(e.clock.Now()), lookEvery), func() {
		e.mu.Lock()
		over := !e.clock.Now().Before(until)
		still := e.paused && e.pausedUntil.Equal(until)
		if still && !over {
			e.awaitResume(until)
		}
		e.mu.Unlock()
		if still && over {
			e.Resume()
		}
	})
}

// forgetPause stops the timer of a pause with an end.
func (e *Engine) forgetPause() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pauseTimer != nil {
		e.pauseTimer.Stop()
	}
}

// Resume ends a pause.
func (e *Engine) Resume() {
	e.mu.Lock()
	e.paused, e.pausedUntil = false, time.Time{}
	if e.pauseTimer != nil {
		e.pauseTimer.Stop()
		e.pauseTimer = nil
	}
	e.signal()
	e.mu.Unlock()
	e.Present()
}

// Present says that the operator is there: claiming goes on if it had stopped
// because nobody answered.
func (e *Engine) Present() {
	e.mu.Lock()
	was := e.away
	e.away, e.expiries = false, 0
	if was {
		e.signal()
	}
	e.mu.Unlock()
	e.changed()
}

// SetRoom changes how many items are held and run at once. What is held or
// runs above a smaller number goes on.
func (e *Engine) SetRoom(maxHeld, maxRunning int) {
	e.mu.Lock()
	e.cfg.MaxHeld, e.cfg.MaxRunning = maxHeld, maxRunning
	e.conn.MaxHeld, e.conn.MaxRunning = maxHeld, maxRunning
	e.signal()
	e.mu.Unlock()
	e.changed()
}

// find returns the open hold with this number. e.mu must be held.
func (e *Engine) find(id HoldID) *hold {
	for _, h := range e.holds {
		if h.rec.ID == id && h.phase != phaseOpening {
			return h
		}
	}
	return nil
}
