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

// accept asks the harness for the right to start (PROTOCOL.md §1 and §3). Only
// a nil return authorizes a start. Every other way, the reason is in the journal,
// nothing ran and nothing is reported.
func (h *hold) accept(ctx context.Context) error {
	e := h.e
	if err := h.move(StepAsking, "", func(f *Facts) { f.Acceptance = Asking }); err != nil {
		return err
	}
	h.beatIf(ctx, func() bool { return h.leaseWithin(0) })
	first := e.clock.Boot()
	reaccepted := false
	for tries := 1; ; tries++ {
		if h.life.Err() != nil {
			return h.refusedByLife()
		}
		sent := e.clock.Boot()
		err := h.request(h.life, e.cfg.Harness.Accept)
		var refused *api.Refused
		switch {
		case h.life.Err() != nil:
			return h.refusedByLife()
		case ctx.Err() != nil:
			return context.Cause(ctx) // still asking in the journal: the next start asks again
		case err == nil:
			h.acceptedAt = sent
			h.renewed(sent)
			return nil
		case errors.As(err, &refused) && refused.Reason == api.LeaseLost && !reaccepted:
			reaccepted = true
			if why := h.whyLost(ctx); why != NoRefusal {
				return h.refused(why, err)
			}
			continue
		case errors.As(err, &refused):
			return h.refused(refusalOf(refused), err)
		}
		h.note(StepAsking, fmt.Sprintf("%s (try %d): %v", AcceptUnconfirmed, tries, err))
		wait := jitter(min(time.Second<<min(tries-1, 3), 5*time.Second))
		if e.clock.Boot()+wait-first > acceptWithin || h.leaseWithin(wait) {
			return h.acceptUnconfirmed()
		}
		sleep(h.life, wait)
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

// refused records that the harness refused the accept, tells the operator, and
// returns an error that says so.
func (h *hold) refused(why Refusal, cause error) error {
	err := h.move(StepRefused, cause.Error(), func(f *Facts) {
		f.Acceptance, f.Refusal, f.Closed = Refused, why, true
	})
	h.tellRefused(why)
	if err != nil {
		return err
	}
	return fmt.Errorf("accept refused (%s): %w", why, cause)
}

func (h *hold) tellRefused(why Refusal) {
	switch why {
	case RefusedStopped:
		h.e.happened(EventSessionStopped, h, false, h.words("the session stopped. Nothing ran."))
	case RefusedLapsed, RefusedNotOurs, RefusedUnknown:
		h.e.happened(EventLeaseLost, h, false, h.words("the lease was lost before it started. Nothing ran."))
	default:
		h.e.happened(EventUnconfirmed, h, false, h.words("the harness refused the start. Nothing ran."))
	}
}

// refusedByLife records a refusal that a heartbeat brought while the accept was
// on its way.
func (h *hold) refusedByLife() error {
	cause := context.Cause(h.life)
	why := RefusedNotOurs
	if errors.Is(cause, errSessionStopped) {
		why = RefusedStopped
	}
	return h.refused(why, cause)
}

// acceptUnconfirmed gives the item up unrun: the harness may have accepted, but
// it did not say so.
func (h *hold) acceptUnconfirmed() error {
	err := h.move(StepRefused, AcceptUnconfirmed+": no answer in time; given up unrun", func(f *Facts) {
		f.Acceptance, f.Closed = Unconfirmed, true
	})
	h.e.happened(EventUnconfirmed, h, false, h.words("the harness did not confirm the start. Nothing ran."))
	if err != nil {
		return err
	}
	return errors.New(AcceptUnconfirmed)
}
