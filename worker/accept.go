package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/worker/api"
)

const (
	acceptWithin = 60 * time.Second // the most an accept without an answer is asked again
	startWithin  = 5 * time.Second  // an older accept is asked again before the start
)

// notAccepted is an accept that the harness refused, or never confirmed.
type notAccepted struct {
	why   Refusal // NoRefusal: no answer in time
	cause error
}

func (n *notAccepted) Error() string {
	if n.why == NoRefusal {
		return AcceptUnconfirmed + ": no answer in time; given up unrun: " + n.cause.Error()
	}
	return fmt.Sprintf("accept refused (%s): %v", n.why, n.cause)
}

// accept asks the harness for the right to start (PROTOCOL.md §1 and §3). Only
// a nil return authorizes a start. With every other the reason is in the journal,
// nothing ran and nothing is reported; errPaused and errOperatorStop leave the
// hold open, and so does a quit.
func (h *hold) accept(ctx context.Context) error {
	asking := change{step: StepAsking, facts: func(f *Facts) { f.Acceptance = Asking }}
	if err := h.recordWhenPossible(ctx, asking); err != nil {
		return h.unasked(ctx, err)
	}
	err := h.ask(ctx)
	if why, closes := closingRefusal(err); closes {
		h.recordOrAssume(change{step: StepRefused, reason: err.Error(), facts: refusedFacts(why)})
		h.tellRefused(why)
	}
	return err
}

// unasked ends a hold whose accept could not be asked for. What leaves it open is
// returned as it is.
func (h *hold) unasked(ctx context.Context, err error) error {
	if !errors.Is(err, errChangedWork) {
		h.endUnstarted(ctx, err)
	}
	return err
}

// ask sends accepts until one is answered: again while there is no answer, at
// most a minute and while our estimate of the lease holds, and once more where
// the lease had only lapsed. It sends none while paused, stopped or quitting.
func (h *hold) ask(ctx context.Context) error {
	ctx, cancel := h.whileStartable(ctx)
	defer cancel(nil)
	h.beatIf(ctx, func() bool { return h.leaseWithin(0) }) // an accept refuses a lapsed lease
	first := h.e.clock.Boot()
	again := false
	for tries := 1; ; tries++ {
		if tries > 1 && h.e.isPaused() {
			return errPaused
		}
		sent := h.e.clock.Boot()
		err := h.request(ctx, h.e.cfg.Harness.Accept)
		var refused *api.Refused
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			h.acceptedAt = sent
			h.renewed(sent)
			return nil
		case errors.As(err, &refused) && refused.Reason == api.LeaseLost && !again:
			again = true
			why := h.whyLost(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if why != NoRefusal {
				return &notAccepted{why, err}
			}
			continue
		case errors.As(err, &refused):
			return &notAccepted{refusalOf(refused), err}
		}
		h.note(StepAsking, fmt.Sprintf("%s (try %d): %v", AcceptUnconfirmed, tries, err))
		wait := jitter(min(time.Second<<min(tries-1, 3), 5*time.Second))
		if h.e.clock.Boot()+wait-first > acceptWithin || h.leaseWithin(wait) {
			return &notAccepted{NoRefusal, err}
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// whyLost asks, by one heartbeat, what an accept refused as lost meant: the
// session stopped, or the lease had only lapsed and is ours again (NoRefusal).
func (h *hold) whyLost(ctx context.Context) Refusal {
	sent := h.e.clock.Boot()
	err := h.request(ctx, h.e.cfg.Harness.Heartbeat)
	var refused *api.Refused
	switch {
	case err == nil:
		h.renewed(sent)
		return NoRefusal
	case errors.As(err, &refused) && refused.Reason == api.LeaseLost:
		return RefusedStopped
	case errors.As(err, &refused) && refused.Reason == api.NotOurs:
		return RefusedNotOurs
	}
	return RefusedLapsed
}

func refusalOf(r *api.Refused) Refusal {
	switch r.Reason {
	case api.LeaseLost:
		return RefusedLapsed
	case api.NotOurs:
		return RefusedNotOurs
	case api.Unknown:
		return RefusedUnknown
	case api.NoAcceptRoute:
		return RefusedUnsupported
	}
	return RefusedOther
}

// closingRefusal says whether an error of ask ends the hold, and as what: an
// answer of the harness, or what a heartbeat brought meanwhile. NoRefusal then
// means unconfirmed.
func closingRefusal(err error) (why Refusal, closes bool) {
	var n *notAccepted
	switch {
	case errors.As(err, &n):
		return n.why, true
	case errors.Is(err, errSessionStopped):
		return RefusedStopped, true
	case errors.Is(err, errNotOurs):
		return RefusedNotOurs, true
	}
	return NoRefusal, false
}

// refusedFacts are the facts of a hold whose accept was refused or not confirmed.
func refusedFacts(why Refusal) func(*Facts) {
	return func(f *Facts) {
		f.Acceptance, f.Refusal, f.Closed = Refused, why, true
		if why == NoRefusal {
			f.Acceptance = Unconfirmed
		}
	}
}

func (h *hold) tellRefused(why Refusal) {
	switch why {
	case NoRefusal:
		h.e.happened(EventUnconfirmed, h, false, h.words("the harness did not confirm the start. Nothing ran."))
	case RefusedStopped:
		h.e.happened(EventSessionStopped, h, false, h.words("the session stopped. Nothing ran."))
	case RefusedLapsed, RefusedNotOurs, RefusedUnknown:
		h.e.happened(EventLeaseLost, h, false, h.words("the lease was lost before it started. Nothing ran."))
	default:
		h.e.happened(EventUnconfirmed, h, false, h.words("the harness refused the start. Nothing ran."))
	}
}

// confirmAccept asks again for an accept that grew old while the start was being
// written down (the machine slept, or was busy), or that the harness cleared by
// handing the item out once more. Only nil authorizes the start.
func (h *hold) confirmAccept(ctx context.Context) error {
	h.e.mu.Lock()
	fresh := h.e.clock.Boot()-h.acceptedAt <= startWithin && !h.reclaimed
	h.reclaimed = false
	h.e.mu.Unlock()
	switch {
	case h.life.Err() != nil:
		return context.Cause(h.life)
	case fresh:
		return nil
	}
	h.note(StepAsking, "the start was delayed; asking again")
	return h.ask(ctx)
}

// endUnconfirmed ends an item that is written down as starting and may not start
// any more. A refusal closes it, unreported; a stop, a pause or a quit ends it as
// accepted and not run, which is reported.
func (h *hold) endUnconfirmed(err error) error {
	o := h.unstarted(err.Error() + " before it started; nothing ran")
	why, closes := closingRefusal(err)
	if !closes {
		h.finish(o)
		return nil
	}
	refused := refusedFacts(why)
	h.recordOrAssume(change{step: StepRefused, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		refused(f)
		f.Execution = CouldNotStart
	}})
	h.tellRefused(why)
	return err
}
