package worker

import (
	"context"
	"time"
)

// recover takes up the holds that an earlier run left open (DESIGN.md,
// write-ahead rule 3). What had not started is shown again, undecided, and its
// first heartbeat tells whether it is still ours. What had ended, or was
// declined, is delivered. What had started without an outcome is interrupted:
// shown, never run again.
func (e *Engine) recover(ctx context.Context) error {
	left, err := e.cfg.Journal.Unfinished(ctx, e.cfg.Origin, e.cfg.Environment)
	if err != nil {
		return err
	}
	newest := map[string]HoldID{}
	for _, rec := range left {
		newest[rec.Item.ID] = max(newest[rec.Item.ID], rec.ID)
	}
	var taken []*hold
	for _, rec := range left {
		rec.Connection = e.cfg.Name
		h, err := e.takeUp(ctx, rec)
		if err != nil {
			return err
		}
		switch {
		case newest[rec.Item.ID] != rec.ID:
			h.letGo("the same item is held again under a later number")
		case h.declined(), rec.Execution != NotStarted:
			h.phase = phaseDelivering
			taken = append(taken, h)
		case rec.WorkDir != e.cfg.Runner.Dir():
			h.letGo("it was shown with the work directory " + rec.WorkDir + ", which is not the connection's any more")
		default:
			if err := h.showAgain(ctx); err != nil {
				return err
			}
			taken = append(taken, h)
		}
	}
	for _, h := range taken {
		e.add(h) // all of them before one can start: sessions have an order
	}
	for _, h := range taken {
		e.tending.Go(func() { e.tend(ctx, h) })
	}
	return nil
}

// takeUp makes the memory of a hold that the journal has. By our estimate its
// lease has lapsed: it is renewed before anything else.
func (e *Engine) takeUp(ctx context.Context, rec Hold) (*hold, error) {
	steps, err := e.cfg.Journal.Entries(ctx, rec.ID)
	if err != nil {
		return nil, err
	}
	h := e.newHold(rec, e.clock.Boot()-e.cfg.Lease)
	h.recovered = true
	h.age += max(0, e.clock.Now().Sub(rec.OpenedAt).Round(time.Millisecond))
	h.limitDecision()
	for _, step := range steps {
		h.remember(step)
		h.wasAccepted = h.wasAccepted || step.Facts.Acceptance == Accepted || step.Facts.Acceptance == Asking
		switch step.Step {
		case StepChanged:
			h.changed = true
		case StepDecided:
			h.changed = false
		}
	}
	return h, nil
}

// showAgain puts a hold that had not started back to undecided: an operator's
// approval belongs to the run of Countersign in which it was given. What needs no
// person is decided anew.
func (h *hold) showAgain(ctx context.Context) error {
	a, decided, why := h.judge()
	shown := h.look(ctx, why)
	changes := []change{{step: StepRecovered, reason: "Countersign was restarted before this started; nothing ran", shown: &shown,
		facts: func(f *Facts) {
			f.Decision, f.DecidedBy, f.Words = Undecided, "", ""
			f.Acceptance, f.Refusal, f.Delivery = NotAsked, NoRefusal, NothingToDeliver
		}}}
	h.phase = phaseWaiting
	if decided && !h.changed { // what changed since it was shown stays the operator's
		h.phase = phaseInLine
		changes = append(changes, decision(a))
	}
	return h.record(changes...)
}

// letGo closes a hold that is not taken up. The harness hands the item out again
// when its lease has lapsed.
func (h *hold) letGo(why string) {
	h.recordOrAssume(change{step: StepRecovered, reason: why, facts: func(f *Facts) {
		f.Decision, f.Words, f.Closed = Released, why, true
	}})
}

// isInterrupted says whether the item was found started and without an outcome.
func (h *hold) isInterrupted() bool {
	return h.phase == phaseDelivering && h.rec.Outcome == nil && !h.declined()
}

// interrupted records that. It says whether it is to be reported: only where the
// harness would hand the item to someone else to run. Elsewhere it is left to
// lapse to unknown.
func (h *hold) interrupted() (report bool) {
	o := interruptedOutcome(h.rec, h.e.clock.Now())
	report = h.rec.Item.ClaimStatus != "queued"
	h.recordOrAssume(change{step: StepRecovered, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		f.Execution, f.Closed = Interrupted, !report
		if report {
			f.Delivery = Delivering
		}
	}})
	h.e.happened(EventInterrupted, h, true, h.words("Countersign was ended while this ran. It may have run wholly, partly or not at all."))
	return report
}
