package worker

import (
	"context"
	"encoding/json"
	"time"

	"countersign/worker/execute"
)

// answer is a decision and whose it is.
type answer struct {
	decision  Decision
	by, words string
	edited    json.RawMessage       // with an approval: the payload to run in the item's place
	task      execute.Task          // and what it says
	files     []execute.Fingerprint // that it names, as they were when it was approved
}

const (
	warnBefore = time.Minute
	atLeast    = time.Minute     // a decision has at least this long once shown
	lookEvery  = 5 * time.Second // how often a wait looks whether the machine slept
	gapOver    = 3 * time.Second // a timer this late means that it did
)

// awaitAnswer waits for the operator, warns before the limit, and answers for
// them past it.
func (h *hold) awaitAnswer(ctx context.Context) (answer, error) {
	ctx, cancel := h.whileAlive(ctx)
	defer cancel(nil)
	for {
		left := h.decisionLeft()
		if left <= 0 {
			return h.expire()
		}
		asleep := h.e.clock.Boot()
		next := min(left, lookEvery)
		timer := time.NewTimer(next)
		select {
		case a := <-h.answers:
			timer.Stop()
			h.e.answeredInTime()
			return a, nil
		case <-ctx.Done():
			timer.Stop()
			return answer{}, context.Cause(ctx)
		case <-timer.C:
			h.grantAfterGap(h.e.clock.Boot() - asleep - next)
		}
	}
}

// decisionLeft is how long the operator has. It warns them once.
func (h *hold) decisionLeft() time.Duration {
	h.e.mu.Lock()
	left := h.decideBy - h.e.clock.Boot()
	warn := left > 0 && left <= warnBefore && !h.warned
	h.warned = h.warned || warn
	h.e.mu.Unlock()
	if warn {
		h.e.happened(EventExpiring, h, false, h.words("a decision is due within a minute."))
	}
	return left
}

func (e *Engine) answeredInTime() {
	e.mu.Lock()
	e.expiries = 0
	e.mu.Unlock()
}

// grantAfterGap gives the operator a minute where the machine slept through the
// time they had.
func (h *hold) grantAfterGap(late time.Duration) {
	if late <= gapOver {
		return
	}
	h.e.mu.Lock()
	h.decideBy = max(h.decideBy, h.e.clock.Boot()+atLeast)
	h.warned = false
	h.e.mu.Unlock()
}

// expire answers for an operator who did not: the item is declined in words, or
// released where they had paused. Two in a row mean that they are away.
func (h *hold) expire() (answer, error) {
	e := h.e
	e.mu.Lock()
	if h.answered { // at the last moment
		e.mu.Unlock()
		return <-h.answers, nil
	}
	h.answered = true
	if (e.paused || e.away) && !h.wasAccepted { // an accepted one would lapse to unknown
		defer e.mu.Unlock()
		if e.paused {
			return answer{}, errLetGoPaused
		}
		return answer{}, errLetGoAway
	}
	e.expiries++
	away := e.expiries >= 2
	e.away = away
	if away {
		for _, other := range e.holds {
			if other != h && other.phase == phaseWaiting && !other.answered && !other.wasAccepted {
				other.loseLife(errLetGoAway)
			}
		}
		e.signal()
	}
	e.mu.Unlock()
	e.happened(EventExpired, h, false, h.words("nobody answered in time. It was declined; nothing ran."))
	if away {
		e.happened(EventAway, nil, false, "Two decisions in a row expired, so claiming stopped. It resumes when you are back.")
	}
	return answer{decision: Expired, by: ownName, words: "nobody answered in time"}, nil
}
