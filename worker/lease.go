package worker

import (
	"context"
	"errors"
	"time"

	"countersign/worker/api"
)

// keepLease renews the hold's lease every third of its window until ctx ends.
// A beat waits for its own answer and for nothing else: no disk, no command, no
// window. What an answer obliges us to do is in PROTOCOL.md §3.
func (h *hold) keepLease(ctx context.Context) {
	every := h.e.cfg.Lease / 3
	// Timers stand still while the machine sleeps, the lease does not: look often.
	for sleep(ctx, min(h.untilBeat(every), 2*time.Second)) {
		h.beatIf(ctx, func() bool { return h.untilBeat(every) <= 0 })
	}
}

// beatIf sends a heartbeat if one is due once none is under way any more.
func (h *hold) beatIf(ctx context.Context, due func() bool) {
	select {
	case h.beating <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-h.beating }()
	if due() {
		h.beat(ctx)
	}
}

// untilBeat is how long until the next heartbeat is due: sooner after one that
// was not confirmed.
func (h *hold) untilBeat(every time.Duration) time.Duration {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	if h.atRisk {
		every /= 4
	}
	return h.lastBeat + every - h.e.clock.Boot()
}

// beat sends one heartbeat and does what its answer asks for.
func (h *hold) beat(ctx context.Context) {
	e := h.e
	sent := e.clock.Boot()
	e.mu.Lock()
	h.lastBeat = sent
	e.mu.Unlock()
	err := h.request(ctx, e.cfg.Harness.Heartbeat)
	if ctx.Err() != nil {
		return
	}
	var refused *api.Refused
	switch {
	case err == nil:
		h.renewed(sent)
	case !errors.As(err, &refused):
		h.suspect(sent, err)
	case refused.Reason == api.LeaseLost:
		h.sessionStopped()
	case refused.Reason == api.NotOurs, refused.Reason == api.Unknown:
		h.lostToAnother(refused)
	default:
		h.suspect(sent, err)
	}
}

// request sends an accept or a heartbeat for this hold, bounded in time.
func (h *hold) request(ctx context.Context, send func(ctx context.Context, itemID, workerID string) error) error {
	err := h.e.within(ctx, func(ctx context.Context) error {
		return send(ctx, h.rec.Item.ID, h.rec.WorkerID)
	})
	h.e.heard(err)
	return err
}

// renewed restarts our estimate of the lease from the moment the request that
// renewed it was sent.
func (h *hold) renewed(sent time.Duration) {
	e := h.e
	e.mu.Lock()
	h.leaseFrom = max(h.leaseFrom, sent)
	h.lastBeat = max(h.lastBeat, sent)
	was := h.atRisk
	h.atRisk, h.toldLapsed, h.triedLapsed = false, false, false
	e.mu.Unlock()
	if was {
		h.note(StepLease, "the lease is renewed again")
		e.changed()
	}
}

// leaseLeft is our estimate of what is left of the lease. e.mu must be held.
func (h *hold) leaseLeft() time.Duration {
	return h.leaseFrom + h.e.cfg.Lease - h.e.clock.Boot()
}

// suspect handles a heartbeat without a usable answer: the item is kept, in
// every state, and the operator is told of the risk before the loss. One that was
// sent before the last renewal says nothing.
func (h *hold) suspect(sent time.Duration, err error) {
	e := h.e
	e.mu.Lock()
	if h.leaseFrom > sent {
		e.mu.Unlock()
		return
	}
	first := !h.atRisk
	h.atRisk = true
	lapsed := h.leaseLeft() <= 0 && !h.toldLapsed
	h.toldLapsed = h.toldLapsed || lapsed
	ran := h.phase.started()
	unseen := h.phase == phaseOpening || h.phase == phaseDelivering
	e.mu.Unlock()
	if first {
		h.note(StepLease, HeartbeatUnconfirmed+": "+err.Error())
		if !unseen {
			e.happened(EventLeaseAtRisk, h, ran, h.words("the lease could not be renewed. Countersign keeps trying."))
		}
	}
	if lapsed {
		h.note(StepLease, "by our estimate the lease has lapsed")
		if !unseen {
			e.happened(EventLeaseLost, h, ran, h.words("the lease has probably lapsed. "+ranWords(ran)))
		}
	}
	e.changed()
}

// sessionStopped handles a heartbeat that says the session stopped this work:
// what waits is withdrawn, what runs is stopped.
func (h *hold) sessionStopped() {
	e := h.e
	e.mu.Lock()
	switch h.phase {
	case phaseDelivering: // the completion's answer decides
	case phaseRunning:
		h.stopRun(errSessionStopped)
	default:
		h.loseLife(errSessionStopped)
	}
	e.mu.Unlock()
	e.changed()
}

// lostToAnother handles a heartbeat that says someone else holds the item, or
// nobody knows it: what waits is withdrawn; what runs goes on, and is told of.
func (h *hold) lostToAnother(refused *api.Refused) {
	e := h.e
	e.mu.Lock()
	tell := false
	switch h.phase {
	case phaseDelivering: // the completion's answer decides
	case phaseRunning:
		tell = !h.toldLost
		h.toldLost, h.atRisk = true, true
	default:
		h.loseLife(errNotOurs)
	}
	e.mu.Unlock()
	if tell {
		h.note(StepLease, "another worker holds the lease; the command keeps running: "+refused.Error())
		e.happened(EventLeaseLost, h, true, h.words("the lease is lost to another worker. The command keeps running."))
	}
	e.changed()
}

// leaseWithin says whether our estimate of the lease ends within d.
func (h *hold) leaseWithin(d time.Duration) bool {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	return h.leaseLeft() <= d
}
