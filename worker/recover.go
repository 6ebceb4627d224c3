package worker

import "context"

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
	var taken []*hold
	for _, rec := range left {
		rec.Connection = e.cfg.Name
		// By our estimate the lease has lapsed: it is renewed before anything else.
		h := e.newHold(rec, e.clock.Boot()-e.cfg.Lease)
		h.recovered = true
		h.steps = []Entry{{Hold: rec.ID, At: rec.OpenedAt, Step: StepClaimed, Facts: rec.Facts}}
		switch {
		case rec.Execution != NotStarted:
			h.phase = phaseDelivering
		case rec.Decision == Declined, rec.Decision == Expired:
			h.phase = phaseInLine
		default:
			if err := h.showAgain(); err != nil {
				return err
			}
		}
		taken = append(taken, h)
	}
	for _, h := range taken {
		e.add(h)
		e.tending.Go(func() { e.tend(ctx, h) })
	}
	return nil
}

// showAgain puts a hold that had not started back to undecided: an approval
// belongs to the run of Countersign in which it was given.
func (h *hold) showAgain() error {
	h.phase = phaseWaiting
	return h.move(StepRecovered, "Countersign was restarted before this started; nothing ran", func(f *Facts) {
		f.Decision, f.DecidedBy, f.Words = Undecided, "", ""
		f.Acceptance, f.Refusal = NotAsked, NoRefusal
	})
}

// interrupted records that the item was found started and without an outcome.
// It says whether that is to be reported: only where the harness would hand the
// item to someone else to run. Elsewhere it is left to lapse to unknown.
func (h *hold) interrupted() (report bool) {
	e := h.e
	o := interruptedOutcome(h.rec, e.clock.Now())
	report = h.rec.Item.ClaimStatus != "queued" || h.rec.Returned
	h.logged(h.record(change{step: StepRecovered, reason: o.Reason, outcome: &o, facts: func(f *Facts) {
		f.Execution, f.Closed = Interrupted, !report
		if report {
			f.Delivery = Delivering
		}
	}}))
	e.happened(EventInterrupted, h, true, h.words("Countersign was ended while this ran. It may have run wholly, partly or not at all."))
	return report
}
