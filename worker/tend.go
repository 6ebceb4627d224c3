package worker

import (
	"context"
	"errors"
	"slices"

	"countersign/worker/execute"
	"countersign/worker/policy"
)

// Causes for which a hold ends before it starts, or its command is stopped.
var (
	errSessionStopped = errors.New("the session stopped this work")
	errNotOurs        = errors.New("the item is not ours any more")
	errChangedWork    = errors.New("the harness handed out other work under the same id")
	errReleased       = errors.New("released by the operator")
	errOperatorStop   = errors.New("stopped by the operator")
	errShutdown       = errors.New("stopped because Countersign is quitting")
)

// tend sees one hold through its life: decide, wait for a turn, accept, run,
// report; with the lease renewed beside it. It returns when the hold is closed,
// or when Countersign quits and the journal has what is left to do.
func (e *Engine) tend(ctx context.Context, h *hold) {
	leaseCtx, stopLease := context.WithCancel(context.WithoutCancel(ctx))
	var lease = make(chan struct{})
	go func() {
		defer close(lease)
		h.keepLease(leaseCtx)
	}()
	defer func() {
		stopLease()
		<-lease
		e.close(h)
	}()

	if h.phase == phaseDelivering { // ended before: reported again, never run
		if h.rec.Outcome != nil || h.interrupted() {
			h.deliver(ctx, true)
		}
		return
	}
	if err := h.decide(ctx); err != nil {
		h.endUnstarted(err)
		return
	}
	if h.rec.Decision != Approved {
		h.reportDeclined(ctx)
		return
	}
	if err := h.waitTurn(ctx); err != nil {
		h.endUnstarted(err)
		return
	}
	if h.run(ctx) {
		h.deliver(ctx, false)
	}
}

// decide gets the decision on the hold: what was decided when it was opened, or
// before a restart; what needs no person; or the operator's answer. When it
// returns nil the decision is durable.
func (h *hold) decide(ctx context.Context) error {
	if h.rec.Decision == Undecided {
		a, decided := h.judge()
		if !decided {
			var err error
			h.e.happened(EventWaiting, h, false, h.words("a tool call waits for you."))
			if a, err = h.awaitAnswer(ctx); err != nil {
				return err
			}
		}
		if err := h.recordWhenPossible(ctx, decision(a)); err != nil {
			return err
		}
	}
	h.e.mu.Lock()
	h.phase = phaseInLine
	h.e.mu.Unlock()
	return nil
}

// judge decides what needs no person: work that cannot be done here, and what
// the policy allows or denies.
func (h *hold) judge() (a answer, decided bool) {
	if h.unfit != nil {
		return answer{Declined, ownName, h.unfit.Error()}, true
	}
	switch j := h.e.cfg.Policy.Judge(h.task); j.Verdict {
	case policy.Allow:
		return answer{Approved, j.By, j.Reason}, true
	case policy.Deny:
		return answer{Declined, j.By, j.Reason}, true
	}
	return answer{}, false
}

// decision is the step that makes an answer durable, and with a decline that it
// is to be reported.
func decision(a answer) change {
	return change{step: StepDecided, reason: a.words, facts: func(f *Facts) {
		f.Decision, f.DecidedBy, f.Words = a.decision, a.by, a.words
		if a.decision != Approved {
			f.Delivery = Delivering
		}
	}}
}

// waitTurn waits until the start can follow an accept at once: a running slot is
// free, the item is the head of its session among ours, nothing is paused.
func (h *hold) waitTurn(ctx context.Context) error {
	ctx, cancel := h.whileAlive(ctx)
	defer cancel(nil)
	return h.e.await(ctx, func() bool {
		if !h.e.mayStart(h) {
			return false
		}
		h.phase = phaseAccepting
		return true
	})
}

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
		if h.phase.inSlot() {
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

// run starts the item and waits for its end. It says whether there is a result
// to report: without a successful accept there is none.
func (h *hold) run(ctx context.Context) (ended bool) {
	if err := h.accept(ctx); err != nil {
		return false
	}
	accepted := change{step: StepAccepted, facts: func(f *Facts) { f.Acceptance = Accepted }}
	if ctx.Err() != nil { // quitting: not started, so the next start shows it again
		h.logged(h.record(accepted))
		return false
	}
	err := h.record(accepted, change{step: StepStarting, facts: func(f *Facts) { f.Execution = Starting }})
	switch {
	case errors.Is(err, ErrForbidden):
		h.e.log.Error("the journal refused the start", "hold", int64(h.rec.ID), "error", err)
		return false
	case err != nil:
		h.endInMemory(h.unstarted("the journal could not be written, so it was not started: " + err.Error()))
		return true
	}
	if h.startIsStale(ctx) {
		return false
	}
	h.finish(h.execute())
	return true
}

// startIsStale checks an accept that grew old while the start was being written
// down: the machine slept, or was busy. It is asked again; refused, the item ends
// as could not start, unreported.
func (h *hold) startIsStale(ctx context.Context) bool {
	sent := h.e.clock.Boot()
	if sent-h.acceptedAt <= startWithin {
		return false
	}
	err := h.request(ctx, h.e.cfg.Harness.Accept)
	if err == nil {
		h.renewed(sent)
		return false
	}
	o := h.unstarted("the start was delayed and the harness did not accept it again: " + err.Error())
	h.logged(h.record(change{step: StepRefused, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		f.Execution, f.Acceptance, f.Refusal, f.Closed = CouldNotStart, Refused, RefusedLapsed, true
	}}))
	h.tellRefused(RefusedLapsed)
	return true
}

// execute runs the task. It is the only place from which anything starts. What
// a heartbeat brought up to here stops it; what comes later stops the command.
func (h *hold) execute() execute.Outcome {
	h.e.mu.Lock()
	h.phase = phaseRunning
	if h.life.Err() != nil {
		h.stopRun(context.Cause(h.life))
	}
	h.startedAt = h.e.clock.Now()
	h.e.mu.Unlock()
	h.e.changed()
	if h.runCtx.Err() != nil {
		return h.unstarted(context.Cause(h.runCtx).Error() + " before it started; nothing ran")
	}
	return h.e.cfg.Runner.Run(h.runCtx, h.task, h.rec.OutputPath)
}

// finish makes the outcome durable, and with it that it is to be delivered, and
// frees the running slot. An outcome that cannot be committed is delivered from
// memory; Starting already forbids a second run.
func (h *hold) finish(o execute.Outcome) {
	err := h.record(change{step: StepFinished, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		f.Execution, f.Delivery = executionOf(o), Delivering
	}})
	if err != nil {
		h.logged(err)
		h.e.mu.Lock()
		h.rec.Execution, h.unwritten = executionOf(o), true
		h.e.mu.Unlock()
	}
	h.endInMemory(o)
	if errors.Is(context.Cause(h.runCtx), errSessionStopped) {
		ran := o.How != execute.CouldNotStart
		h.e.happened(EventSessionStopped, h, ran, h.words("the session stopped. "+stoppedWords(ran)))
	}
}

// endInMemory moves the hold on to its delivery.
func (h *hold) endInMemory(o execute.Outcome) {
	h.e.mu.Lock()
	h.rec.Outcome = &o
	h.phase = phaseDelivering
	h.e.lookAgain = h.e.lookAgain || o.How == execute.CouldNotStart
	h.e.signal()
	h.e.mu.Unlock()
	h.e.changed()
}

func executionOf(o execute.Outcome) Execution {
	switch o.How {
	case execute.Stopped:
		return Stopped
	case execute.CouldNotStart:
		return CouldNotStart
	case execute.Lost:
		return Interrupted
	}
	return Finished
}

// endUnstarted closes a hold that ended before anything could start. Nothing is
// reported: nothing ran. A quit leaves it open in the journal.
func (h *hold) endUnstarted(cause error) {
	ended, words := Withdrawn, ""
	switch {
	case errors.Is(cause, errReleased):
		ended, words = Released, "released"
	case errors.Is(cause, errSessionStopped):
		words = "session stopped"
	case errors.Is(cause, errNotOurs):
		words = "not ours any more"
	case errors.Is(cause, errChangedWork):
		words = "the harness changed the work under this id"
	default:
		return
	}
	h.logged(h.move(StepDecided, cause.Error(), func(f *Facts) {
		f.Decision, f.Words, f.Closed = ended, words, true
	}))
	switch {
	case errors.Is(cause, errSessionStopped):
		h.e.happened(EventSessionStopped, h, false, h.words("the session stopped. Nothing ran."))
	case errors.Is(cause, errNotOurs), errors.Is(cause, errChangedWork):
		h.e.happened(EventLeaseLost, h, false, h.words("another worker has the item. Nothing ran."))
	}
}

// drop takes a hold off the list. e.mu must be held.
func (e *Engine) drop(h *hold) {
	e.holds = slices.DeleteFunc(e.holds, func(other *hold) bool { return other == h })
}

// close takes the hold off the engine's list and frees its session and slot.
func (e *Engine) close(h *hold) {
	h.loseLife(errNotOurs)
	h.stopRun(errShutdown)
	e.mu.Lock()
	e.drop(h)
	if h.rec.Closed {
		e.finished = append([]View{h.view()}, e.finished[:min(len(e.finished), keepFinished-1)]...)
	}
	close(h.attempted) // whoever waits for a delivery waits no longer
	e.busyUntil = e.clock.Boot() + activeFor
	e.signal()
	e.mu.Unlock()
	if h.rec.Closed {
		e.happened(EventFinished, h, h.rec.Execution != NotStarted, h.words("ended: "+h.rec.Status()+"."))
	}
	e.changed()
}
