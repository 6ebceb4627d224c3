package worker

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign/worker/api"
	"countersign/worker/execute"
)

const (
	deliverWithin    = 24 * time.Hour
	longestRedeliver = time.Minute
	shortenedTo      = 16 << 10 // bytes of a report that was too large for the harness
)

// deliver reports the hold's result until the harness has answered for good, or
// for 24 h (PROTOCOL.md §3). It holds no running slot. unanswered says that an
// earlier try may have been recorded. When Countersign quits, each result gets
// one try and otherwise stays in the journal.
func (h *hold) deliver(ctx context.Context, unanswered bool) {
	if h.rec.Delivery != Delivering { // it was not written down with the end
		h.recordOrAssume(change{step: StepDelivering, facts: func(f *Facts) { f.Delivery = Delivering }})
	}
	result, failed := h.report()
	shortened, noted := false, ""
	first := h.e.clock.Boot()
	for failures := 0; ; failures++ {
		err := h.complete(ctx, result, failed)
		var refused *api.Refused
		var lost *api.Unanswered
		switch {
		case err == nil:
			h.delivered(Delivered, "")
			return
		case errors.As(err, &refused) && refused.Reason == api.TooLarge && !shortened && !h.declined():
			shortened = true
			result = execute.Shorten(*h.rec.Outcome, shortenedTo)
			h.note(StepDelivering, "the report was too large for the harness; it is reported again, shorter")
			continue
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			h.conflict(unanswered, refused)
			return
		case errors.As(err, &refused) && isFinal(refused):
			h.delivered(Undelivered, CompletionUndelivered+": "+err.Error())
			return
		case errors.As(err, &lost) && lost.MaybeApplied:
			unanswered = true
			noted = h.noteOnce(noted, CompletionUnconfirmed+": "+err.Error())
		default:
			noted = h.noteOnce(noted, "not delivered yet: "+err.Error())
		}
		if h.e.clock.Boot()-first > deliverWithin {
			h.delivered(Undelivered, CompletionUndelivered+": given up after 24 h: "+err.Error())
			return
		}
		if !h.untilNextTry(ctx, jitter(min(longestRedeliver, time.Second<<min(failures, 6)))) {
			return // quitting: the journal has the result
		}
	}
}

// noteOnce notes why a delivery goes on, unless that was the last reason too: a
// day of retries is not a thousand notes.
func (h *hold) noteOnce(last, reason string) string {
	if reason != last {
		h.note(StepDelivering, reason)
	}
	return reason
}

// report is what complete carries: the words of a decline, or the outcome's
// result.
func (h *hold) report() (result []byte, failed bool) {
	if h.declined() {
		return declinedResult(h.rec)
	}
	return h.rec.Outcome.Result, h.rec.Outcome.Failed
}

// declined says whether this hold was decided against. Its item may have been run
// under another.
func (h *hold) declined() bool {
	return h.rec.Decision == Declined || h.rec.Decision == Expired
}

// complete sends one completion and tells whoever hurried it that it was tried.
// It outlives the cancellation of ctx: a result in hand gets its try.
func (h *hold) complete(ctx context.Context, result []byte, failed bool) error {
	err := h.e.within(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return h.e.cfg.Harness.Complete(ctx, h.rec.Item.ID, h.rec.WorkerID, result, failed)
	})
	h.e.heard(err)
	h.e.mu.Lock()
	h.tried = true
	close(h.attempted)
	h.attempted = make(chan struct{})
	h.e.mu.Unlock()
	return err
}

// isFinal says whether a refusal of complete ends the delivery: 400, 404, 422,
// and 413 once it was shortened. Others may mend themselves.
func isFinal(r *api.Refused) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

// conflict handles a 409: the first try was not recorded; after an unanswered
// one, it may have been.
func (h *hold) conflict(unanswered bool, refused *api.Refused) {
	if unanswered {
		h.delivered(DeliveryUnconfirmed, CompletionUnconfirmed+": "+refused.Error())
		return
	}
	h.delivered(DeliveryRefused, "outcome not recorded by the harness: "+refused.Error())
}

// delivered closes the hold with how its delivery ended, and tells the operator
// of every way but the good one.
func (h *hold) delivered(d Delivery, reason string) {
	h.recordOrAssume(change{step: StepDelivered, reason: reason, facts: func(f *Facts) {
		f.Delivery, f.Closed = d, true
	}})
	switch d {
	case DeliveryRefused:
		h.e.happened(EventUndelivered, h, h.ran(), h.words("the harness did not record the result. It is in the history."))
	case DeliveryUnconfirmed:
		h.e.happened(EventUndelivered, h, h.ran(), h.words("the harness may have recorded the result. It is in the history."))
	case Undelivered:
		h.e.happened(EventUndelivered, h, h.ran(), h.words("the result was not delivered. It is in the history."))
	}
}

// untilNextTry waits for d, or until it is hurried, and says whether to try
// again.
func (h *hold) untilNextTry(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.hurry:
	case <-ctx.Done():
		return false
	}
	return true
}

// hurryDelivery has a delivery tried now and returns a channel that is closed
// when it was; nil where the hold is not delivering.
func (h *hold) hurryDelivery() <-chan struct{} {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	if h.phase != phaseDelivering {
		return nil
	}
	select {
	case h.hurry <- struct{}{}:
	default:
	}
	return h.attempted
}

// reportDeclined reports a decline: without an accept, in words, saying that
// nothing ran.
func (h *hold) reportDeclined(ctx context.Context) {
	h.setPhase(phaseDelivering)
	h.deliver(ctx, h.recovered)
}
