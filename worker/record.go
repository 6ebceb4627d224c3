package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/worker/execute"
)

// change is one step to be written down: what happened, and the facts from then
// on.
type change struct {
	step    Step
	reason  string
	facts   func(*Facts)
	outcome *execute.Outcome // of an execution that has ended
	shown   *Shown           // where the item is shown anew
	edited  json.RawMessage  // with an approval of other work in the item's place
}

// record writes steps down in one commit and, once they are durable, makes them
// so in memory. Only the goroutine that tends the hold calls it.
func (h *hold) record(changes ...change) error {
	moves := plan(h.rec, h.e.clock.Now(), changes)
	if err := h.e.cfg.Journal.Move(context.Background(), h.rec.ID, moves...); err != nil {
		return fmt.Errorf("write down that #%d was %s: %w", h.rec.ID, changes[len(changes)-1].step, err)
	}
	h.e.mu.Lock()
	h.apply(moves)
	h.e.mu.Unlock()
	h.e.changed()
	return nil
}

// plan works out the facts after each of the changes.
func plan(rec Hold, now time.Time, changes []change) []Move {
	moves := make([]Move, len(changes))
	for i, c := range changes {
		c.facts(&rec.Facts)
		after := rec.Facts
		moves[i] = Move{At: now, Step: c.step, Reason: c.reason, Facts: &after, Outcome: c.outcome, Edited: c.edited}
		if c.shown != nil {
			rec.Shown = *c.shown
			moves[i].Shown, moves[i].Digest = c.shown, digest(rec)
		}
	}
	return moves
}

// apply makes moves that are durable so in memory. e.mu must be held.
func (h *hold) apply(moves []Move) {
	for _, m := range moves {
		h.rec.Facts = *m.Facts
		if m.Outcome != nil {
			h.rec.Outcome = m.Outcome
		}
		if m.Shown != nil {
			h.rec.Shown, h.rec.Digest = *m.Shown, m.Digest
		}
		if m.Edited != nil || m.Facts.Decision == Undecided {
			h.rec.Edited = m.Edited
		}
		h.remember(Entry{Hold: h.rec.ID, At: m.At, Step: m.Step, Reason: m.Reason, Facts: *m.Facts})
	}
}

// recordWhenPossible is record that waits for a journal that cannot be written.
// Nothing follows meanwhile, and the hold can still be withdrawn. A step that the
// journal excludes is not tried again.
func (h *hold) recordWhenPossible(ctx context.Context, c change) error {
	ctx, cancel := h.whileAlive(ctx)
	defer cancel(nil)
	for {
		err := h.record(c)
		if err == nil || errors.Is(err, ErrForbidden) {
			return err
		}
		h.e.log.Error("the journal cannot be written; the item waits", "hold", int64(h.rec.ID), "error", err)
		if !sleep(ctx, h.e.cfg.Poll.Longest/3) {
			return context.Cause(ctx)
		}
	}
}

// recordOrAssume is record for what has happened whether or not it can be written
// down: then it is so in memory, and a restart finds out again. An outcome that
// could not be written goes along with the next step that can.
func (h *hold) recordOrAssume(c change) {
	if h.unwritten && c.outcome == nil {
		c.outcome = h.rec.Outcome
	}
	err := h.record(c)
	if err == nil {
		h.unwritten, h.owed = false, nil
		return
	}
	h.logged(err)
	h.e.mu.Lock()
	h.apply(plan(h.rec, h.e.clock.Now(), []change{c}))
	h.unwritten = h.unwritten || c.outcome != nil
	h.e.mu.Unlock()
	h.owed = &change{step: c.step, reason: c.reason, facts: func(*Facts) {}}
}

// writeOwed writes the last step down that could not be before, once the journal
// can be written again. A quit leaves it to the next start.
func (h *hold) writeOwed(ctx context.Context) {
	for h.owed != nil && sleep(ctx, h.e.cfg.Poll.Longest/3) {
		c := *h.owed
		if h.unwritten {
			c.outcome = h.rec.Outcome
		}
		if err := h.record(c); err == nil || errors.Is(err, ErrForbidden) {
			h.owed = nil
		}
	}
}

// logged logs a step that could not be written down and holds all the same.
func (h *hold) logged(err error) {
	if err != nil {
		h.e.log.Error("a step could not be written to the journal", "hold", int64(h.rec.ID), "error", err)
	}
}

const keepSteps = 200

// remember keeps an entry for the window. e.mu must be held.
func (h *hold) remember(entry Entry) {
	if len(h.steps) >= keepSteps { // the first say most, the last are news
		h.steps = append(h.steps[:keepSteps/2], h.steps[keepSteps/2+1:]...)
	}
	h.steps = append(h.steps, entry)
}

// note writes down something that changes no fact. It does not wait for the
// disk: heartbeats come this way.
func (h *hold) note(step Step, reason string) {
	m := Move{At: h.e.clock.Now(), Step: step, Reason: reason}
	h.e.mu.Lock()
	id := h.rec.ID
	h.remember(Entry{Hold: id, At: m.At, Step: step, Reason: reason, Facts: h.rec.Facts})
	h.e.mu.Unlock()
	if id == 0 {
		return // not written down itself yet
	}
	h.e.log.Info("note", "hold", int64(id), "step", string(step), "reason", reason)
	h.e.notes.add(id, m)
}
