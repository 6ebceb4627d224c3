package worker

import (
	"context"
	"errors"
	"slices"

	"countersign/worker/execute"
)

// Causes for which a hold ends before it starts, or its command is stopped.
var (
	errSessionStopped = errors.New("the session stopped this work")
	errNotOurs        = errors.New("the item is not ours any more")
	errChangedWork    = errors.New("the harness handed out other work under the same id")
	errStartedBefore  = errors.New("the item was started before and its end is not known here; it is not run again")
	errReleased       = errors.New("released by the operator")
	errLetGoPaused    = errors.New("let go: nobody answered while Countersign was paused")
	errLetGoAway      = errors.New("let go: nobody answered twice in a row")
	errOperatorStop   = errors.New("stopped by the operator")
	errShutdown       = errors.New("stopped because Countersign is quitting")
	errPaused         = errors.New("paused")
)

// tend sees one hold through its life, with its lease renewed beside it. It
// returns when the hold is closed, or when Countersign quits and the journal has
// what is left to do.
func (e *Engine) tend(ctx context.Context, h *hold) {
	defer h.writeOwed(ctx)
	defer e.close(h)
	if h.isInterrupted() && !h.interrupted() {
		return // left to lapse
	}
	leaseCtx, stopLease := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		h.keepLease(leaseCtx)
	}()
	h.live(ctx)
	stopLease()
	<-kept
	if errors.Is(context.Cause(h.life), errSessionStopped) || errors.Is(context.Cause(h.runCtx), errSessionStopped) ||
		h.rec.Refusal == RefusedStopped {
		h.endGrants()
	}
}

// live is one item's life: write it down, decide, wait for a turn, accept, run,
// report.
func (h *hold) live(ctx context.Context) {
	if h.phase == phaseOpening {
		if err := h.open(context.WithoutCancel(ctx)); err != nil {
			h.e.notTaken(h, err)
			return
		}
	}
	if h.phase == phaseDelivering { // ended before: reported again, never run
		h.deliver(ctx, true)
		return
	}
	for {
		if err := h.decide(ctx); err != nil {
			h.endUnstarted(ctx, err)
			return
		}
		if h.rec.Decision != Approved {
			h.reportDeclined(ctx)
			return
		}
		if err := h.waitTurn(ctx); err != nil {
			h.endUnstarted(ctx, err)
			return
		}
		switch err := h.run(ctx); {
		case err == nil:
			h.deliver(ctx, false)
		case errors.Is(err, errPaused):
			h.e.mu.Lock()
			h.wasAccepted = true // for all we know
			h.e.mu.Unlock()
			h.setPhase(phaseInLine)
			continue
		case errors.Is(err, errAskedAgain):
			continue
		case errors.Is(err, errOperatorStop):
			h.declineUnstarted(ctx, ByOperator, "stopped before it started")
		case errors.Is(err, errChangedWork):
			h.declineUnstarted(ctx, ownName, err.Error())
		}
		return
	}
}

// decide gets the decision on the hold: what was decided when it was opened; what
// needs no person; or the operator's answer. When it returns nil the decision is
// durable.
func (h *hold) decide(ctx context.Context) error {
	if h.recovered && !h.askedOurs {
		h.askedOurs = true
		h.beatIf(ctx, func() bool { return h.leaseWithin(0) }) // is it still ours?
	}
	switch {
	case h.life.Err() != nil:
		return context.Cause(h.life)
	case h.rec.Decision != Undecided:
		return nil
	}
	h.e.happened(EventWaiting, h, false, h.words("a tool call waits for you."+h.whyAgain()))
	a, err := h.awaitAnswer(ctx)
	if err != nil {
		return err
	}
	if err := h.recordWhenPossible(ctx, decision(a)); err != nil {
		return err
	}
	h.take(a)
	return nil
}

// take moves a decided hold into line, with the work that the operator put in
// the item's place.
func (h *hold) take(a answer) {
	h.e.mu.Lock()
	h.changed = false
	h.phase = phaseInLine
	h.approved = h.rec.Shown.Files
	if a.edited != nil {
		h.task, h.approved = a.task, asShown(a.files, h.rec.Shown.Files)
	}
	h.e.signal()
	h.e.mu.Unlock()
	h.e.changed()
}

// decision is the step that makes an answer durable, and with a decline that it
// is to be reported.
func decision(a answer) change {
	return change{step: StepDecided, reason: a.words, edited: a.edited, facts: func(f *Facts) {
		f.Decision, f.DecidedBy, f.Words = a.decision, a.by, a.words
		if a.decision != Approved {
			f.Delivery = Delivering
		}
	}}
}

// waitTurn waits until the start can follow an accept at once: a running slot is
// free, the item is the head of its session among ours, nothing is paused. With
// nil the slot is taken.
func (h *hold) waitTurn(ctx context.Context) error {
	ctx, cancel := h.whileAlive(ctx)
	defer cancel(nil)
	for ctx.Err() == nil {
		turn := h.takeTurn()
		if turn == nil {
			return nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// takeTurn takes a slot, or returns what is closed when there may be one.
func (h *hold) takeTurn() <-chan struct{} {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	if h.e.mayStart(h) {
		h.phase = phaseAccepting
		return nil
	}
	h.turn = make(chan struct{})
	return h.turn
}

// run gets the harness's accept, starts the item and waits for its end. Nil means
// that there is a result to report. errPaused and errOperatorStop mean that it is
// ours and has not started, and so does errChangedWork; errAskedAgain, that it is to be
// decided on once more; every other error, that all is said and written.
func (h *hold) run(ctx context.Context) error {
	if h.isDoubted() { // else it is judged once more after the accept: better before than after
		if err := h.stillAllowed(ctx); err != nil {
			return err
		}
	}
	if err := h.accept(ctx); err != nil {
		return err
	}
	accepted := change{step: StepAccepted, facts: func(f *Facts) { f.Acceptance = Accepted }}
	if ctx.Err() != nil { // quitting: not started, so the next start shows it again
		h.logged(h.record(accepted))
		return context.Cause(ctx)
	}
	if err := h.stillAllowed(ctx, accepted); err != nil {
		return err
	}
	if names := h.changedSince(ctx); len(names) > 0 {
		return h.showChanged(ctx, accepted, names)
	}
	err := h.record(accepted, change{step: StepStarting, facts: func(f *Facts) { f.Execution = Starting }})
	switch {
	case errors.Is(err, ErrForbidden):
		h.startForbidden(err)
		return err
	case err != nil:
		h.ended(h.unstarted("the journal could not be written, so it was not started: " + err.Error()))
		return nil
	}
	if err := h.confirmAccept(ctx); err != nil {
		return h.endUnconfirmed(err)
	}
	h.finish(h.execute())
	return nil
}

// execute runs the task. It is the only place from which anything starts. What
// came up to here stops it unstarted; what comes later stops the command.
func (h *hold) execute() execute.Outcome {
	e := h.e
	e.mu.Lock()
	h.phase = phaseRunning
	switch {
	case h.life.Err() != nil:
		h.stopRun(context.Cause(h.life))
	case e.quitting:
		h.stopRun(errShutdown)
	}
	e.signal() // what runs is not held any more: there is room to claim
	e.mu.Unlock()
	e.changed()
	if h.runCtx.Err() != nil {
		return h.unstarted(context.Cause(h.runCtx).Error() + " before it started; nothing ran")
	}
	o := h.toldOfEdit(e.cfg.Runner.Run(h.runCtx, h.task, h.rec.OutputPath))
	e.mu.Lock()
	h.processEnded = true
	e.signal()
	e.mu.Unlock()
	return o
}

// finish makes the outcome durable, and with it that it is to be delivered, and
// frees the running slot. An outcome that cannot be committed is delivered from
// memory; Starting already forbids a second run.
func (h *hold) finish(o execute.Outcome) {
	h.recordOrAssume(change{step: StepFinished, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		f.Execution, f.Delivery = executionOf(o), Delivering
	}})
	h.ended(o)
	if errors.Is(context.Cause(h.runCtx), errSessionStopped) {
		h.e.happened(EventSessionStopped, h, h.ran(), h.words("the session stopped. "+stoppedWords(h.ran())))
	}
}

// ended moves the hold on to its delivery.
func (h *hold) ended(o execute.Outcome) {
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

// ran says whether the item's execution had started, for all we know.
func (h *hold) ran() bool {
	return h.rec.Execution != NotStarted && h.rec.Execution != CouldNotStart
}

// declineUnstarted reports an item that is ours, has not started and will not.
func (h *hold) declineUnstarted(ctx context.Context, by, words string) {
	h.recordOrAssume(decision(answer{decision: Declined, by: by, words: words}))
	h.reportDeclined(ctx)
}

// endUnstarted closes a hold that ended before anything could start. Nothing is
// reported: nothing ran. Other work under its id is declined; a quit leaves it
// open in the journal.
func (h *hold) endUnstarted(ctx context.Context, cause error) {
	result, words := Withdrawn, ""
	switch {
	case errors.Is(cause, errChangedWork):
		h.declineUnstarted(ctx, ownName, cause.Error())
		return
	case errors.Is(cause, errReleased), errors.Is(cause, errLetGoPaused), errors.Is(cause, errLetGoAway):
		result = Released
	case errors.Is(cause, errSessionStopped):
		words = "session stopped"
	case errors.Is(cause, errNotOurs):
		words = "not ours any more"
	case errors.Is(cause, errStartedBefore):
		words = cause.Error()
	default:
		return
	}
	h.recordOrAssume(change{step: StepDecided, reason: cause.Error(), facts: func(f *Facts) {
		f.Decision, f.Words, f.Closed = result, words, true
	}})
	switch {
	case errors.Is(cause, errSessionStopped):
		h.e.happened(EventSessionStopped, h, false, h.words("the session stopped. Nothing ran."))
	case errors.Is(cause, errNotOurs):
		h.e.happened(EventLeaseLost, h, false, h.words("another worker has the item. Nothing ran."))
	}
}

// startForbidden closes a hold whose item the journal knows as started.
func (h *hold) startForbidden(err error) {
	h.recordOrAssume(change{step: StepRefused, reason: err.Error(), facts: func(f *Facts) {
		f.Decision, f.Words, f.Closed = Withdrawn, errStartedBefore.Error(), true
	}})
	h.e.happened(EventUnconfirmed, h, false, h.words("it was started once before, so it was not started again."))
}

// close takes the hold off the engine's list and frees its session and slot.
func (e *Engine) close(h *hold) {
	h.loseLife(errNotOurs)
	h.stopRun(errShutdown)
	e.mu.Lock()
	e.drop(h)
	if h.rec.Closed {
		e.remember(h.view())
	}
	close(h.attempted) // whoever waits for a delivery waits no longer
	e.busyUntil = e.clock.Boot() + activeFor
	e.signal()
	e.mu.Unlock()
	if h.rec.Closed {
		e.happened(EventFinished, h, h.ran(), h.words("ended: "+h.rec.Status()+"."))
	}
	e.changed()
}

// drop takes a hold off the list. e.mu must be held.
func (e *Engine) drop(h *hold) {
	e.holds = slices.DeleteFunc(e.holds, func(other *hold) bool { return other == h })
}
