package worker

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"countersign/worker/execute"
	"countersign/worker/policy"
)

// Snapshot returns the engine's state as it is now.
func (e *Engine) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Snapshot{
		At: e.clock.Now(), Connections: []ConnectionView{e.conn},
		Paused: e.paused, PausedUntil: e.pausedUntil, Away: e.away, ApproveAll: e.conn.ApproveAll,
	}
	for _, h := range e.holds {
		if h.phase == phaseOpening {
			continue
		}
		v := h.view()
		switch {
		case h.phase == phaseDelivering:
			s.Finished = append(s.Finished, v)
		case h.phase.inSlot():
			s.Running = append(s.Running, v)
		default:
			s.Waiting = append(s.Waiting, v)
		}
	}
	slices.Reverse(s.Finished)
	for _, v := range slices.Backward(e.finished) {
		s.Finished = append(s.Finished, v)
	}
	return s
}

// remember keeps a finished hold for the window: the last few, and not more of
// them than fits in keepBytes. e.mu must be held.
func (e *Engine) remember(v View) {
	e.finished = append(e.finished, v)
	e.finishedBytes += v.bytes()
	for n := len(e.finished); n > keepFinished || n > 1 && e.finishedBytes > keepBytes; n-- {
		e.finishedBytes -= e.finished[0].bytes()
		e.finished[0] = View{} // what it holds goes at once, its place with the next that is made
		e.finished = e.finished[1:]
	}
}

// bytes is how much of memory a view takes, of what may be large.
func (v View) bytes() int {
	n := len(v.Item.Payload)
	if v.Outcome != nil {
		n += len(v.Outcome.Result)
	}
	return n
}

// view is the hold as it is now. e.mu must be held.
func (h *hold) view() View {
	now := h.e.clock.Boot()
	v := View{
		Hold: h.rec, Word: h.word(), Age: h.age + now - h.openedAt,
		Lease: h.leaseLeft(), LeaseWindow: h.e.cfg.Lease, AtRisk: h.atRisk,
		Steps: slices.Clone(h.steps), Changed: h.changed, Grantable: h.phase == phaseWaiting && h.rec.Shown.Explanation.Grantable(),
	}
	if h.phase == phaseRunning {
		v.Execution = Running
	}
	if h.phase == phaseWaiting && !h.rec.Closed {
		v.DecisionLeft = max(0, h.decideBy-now)
	}
	return v
}

// word is the live accept status. e.mu must be held.
func (h *hold) word() string {
	if h.rec.Closed {
		return h.rec.Status()
	}
	switch h.phase {
	case phaseWaiting:
		switch {
		case h.atRisk:
			return WordAtRisk
		case h.changed:
			return WordChanged
		case h.rec.Returned:
			return WordReturned
		}
	case phaseInLine:
		if h.e.paused {
			return WordPaused
		}
	case phaseRunning:
		switch {
		case h.runCtx.Err() != nil:
			return WordStopping
		case h.atRisk:
			return WordAtRisk
		}
		return WordRunning
	}
	return h.rec.Status()
}

// merge adds another engine's snapshot to s. Paused means that all are.
func (s *Snapshot) merge(o Snapshot) {
	s.Connections = append(s.Connections, o.Connections...)
	s.Waiting = append(s.Waiting, o.Waiting...)
	s.Running = append(s.Running, o.Running...)
	s.Finished = append(s.Finished, o.Finished...)
	s.Paused = s.Paused && o.Paused
	s.Away = s.Away || o.Away
	s.ApproveAll = s.ApproveAll || o.ApproveAll
	oldestFirst := func(a, b View) int { return int(a.ID - b.ID) }
	slices.SortStableFunc(s.Waiting, oldestFirst)
	slices.SortStableFunc(s.Running, oldestFirst)
	slices.SortStableFunc(s.Finished, func(a, b View) int { return int(b.ID - a.ID) })
}

// Desk is all connections together, as a window or a socket sees them. It has
// the intents of an Engine and passes each to the engine that holds the item.
type Desk struct{ engines []*Engine }

// NewDesk joins engines. Their journals must be one, so that numbers are unique,
// and so must their grants.
func NewDesk(engines ...*Engine) *Desk { return &Desk{engines} }

// Snapshot merges the snapshots of all engines.
func (d *Desk) Snapshot() Snapshot {
	if len(d.engines) == 0 {
		return Snapshot{At: time.Now()}
	}
	s := d.engines[0].Snapshot()
	for _, e := range d.engines[1:] {
		s.merge(e.Snapshot())
	}
	return s
}

// Approve is Engine.Approve.
func (d *Desk) Approve(id HoldID, digest, by string) error {
	return d.route(func(e *Engine) error { return e.Approve(id, digest, by) })
}

// ApproveForSession is Engine.ApproveForSession.
func (d *Desk) ApproveForSession(id HoldID, digest, by string) error {
	return d.route(func(e *Engine) error { return e.ApproveForSession(id, digest, by) })
}

// AllowReads is Engine.AllowReads.
func (d *Desk) AllowReads(id HoldID, digest, dir string, within time.Duration, by string) error {
	return d.route(func(e *Engine) error { return e.AllowReads(id, digest, dir, within, by) })
}

// ApproveEdited is Engine.ApproveEdited.
func (d *Desk) ApproveEdited(id HoldID, digest string, payload json.RawMessage, by string) error {
	return d.route(func(e *Engine) error { return e.ApproveEdited(id, digest, payload, by) })
}

// Decline is Engine.Decline.
func (d *Desk) Decline(id HoldID, digest, words, by string) error {
	return d.route(func(e *Engine) error { return e.Decline(id, digest, words, by) })
}

// Release is Engine.Release.
func (d *Desk) Release(id HoldID) error {
	return d.route(func(e *Engine) error { return e.Release(id) })
}

// Stop is Engine.Stop.
func (d *Desk) Stop(id HoldID) error {
	return d.route(func(e *Engine) error { return e.Stop(id) })
}

// Preview is Engine.Preview.
func (d *Desk) Preview(ctx context.Context, id HoldID) (p execute.Preview, err error) {
	err = d.route(func(e *Engine) (err error) { p, err = e.Preview(ctx, id); return err })
	return p, err
}

// NarrowRule is Engine.NarrowRule.
func (d *Desk) NarrowRule(id HoldID) (rule string, err error) {
	err = d.route(func(e *Engine) (err error) { rule, err = e.NarrowRule(id); return err })
	return rule, err
}

// Asked is Engine.Asked.
func (d *Desk) Asked(id HoldID) (item policy.Item, err error) {
	err = d.route(func(e *Engine) (err error) { item, err = e.Asked(id); return err })
	return item, err
}

// Grants returns the grants in force of all connections, oldest first.
func (d *Desk) Grants() []policy.Grant {
	if len(d.engines) == 0 || d.engines[0].cfg.Policy.Grants() == nil {
		return nil
	}
	return d.engines[0].cfg.Policy.Grants().List() // one list, of all of them
}

// Revoke ends a grant at once. It waits for the disk.
func (d *Desk) Revoke(grant string) error {
	defer d.Rejudge()
	for _, e := range d.engines {
		if g := e.cfg.Policy.Grants(); g != nil {
			return g.Revoke(grant)
		}
	}
	return nil
}

// Rejudge is Engine.Rejudge on all.
func (d *Desk) Rejudge() { d.each((*Engine).Rejudge) }

// route tries each engine until one knows the item.
func (d *Desk) route(intent func(*Engine) error) error {
	for _, e := range d.engines {
		if err := intent(e); err != ErrNoHold {
			return err
		}
	}
	return ErrNoHold
}

// StopEverything is Engine.StopEverything on all.
func (d *Desk) StopEverything() { d.each((*Engine).StopEverything) }

// Pause is Engine.Pause on all.
func (d *Desk) Pause(until time.Time) { d.each(func(e *Engine) { e.Pause(until) }) }

// Resume is Engine.Resume on all.
func (d *Desk) Resume() { d.each((*Engine).Resume) }

// Present is Engine.Present on all.
func (d *Desk) Present() { d.each((*Engine).Present) }

func (d *Desk) each(intent func(*Engine)) {
	for _, e := range d.engines {
		intent(e)
	}
}
