package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"countersign/worker/api"
)

// claimWork asks the harness for work for as long as ctx lasts: never without
// having seen that the harness can accept, never while there is no room, and
// never before what is held with a lapsed lease was tried once (PROTOCOL.md §3).
// It never ends early and never spins.
func (e *Engine) claimWork(ctx context.Context) {
	probed := false
	failures := 0
	for e.awaitRoom(ctx) == nil {
		if look, wait := e.mustLookAgain(); look {
			probed = false
			sleep(ctx, wait)
		}
		if !probed {
			err := e.ready(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				failures++
				probed = false
				e.lostTouch(err)
				e.rest(ctx, e.backoff(failures, err))
				continue
			}
			probed = true
		}
		e.renewLapsed(ctx)
		if !e.isRoom() {
			continue // a pause, say, came meanwhile
		}
		sent := e.clock.Boot()
		item, found, err := e.claim(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			failures++
			probed = false
			e.lostTouch(err)
			e.rest(ctx, e.backoff(failures, err))
		default:
			failures = 0
			e.inTouch()
			fresh := found && e.take(ctx, item, sent)
			if e.cfg.Once {
				if !found {
					e.log.Info("the harness has no work; nothing is waited for, so that this ends")
				}
				return
			}
			if !fresh || e.isEcho() {
				sleep(ctx, e.pollInterval())
			}
		}
	}
}

var (
	errWorkDir = errors.New("the work directory cannot be used")
	errJournal = errors.New("the journal cannot be written")
)

// ready says why nothing may be claimed: the journal cannot be written, the work
// directory cannot be used, or the harness has no accept or does not answer.
func (e *Engine) ready(ctx context.Context) error {
	if err := e.cfg.Journal.Usable(ctx); err != nil {
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	if err := e.cfg.Runner.Usable(); err != nil {
		return fmt.Errorf("%w: %w", errWorkDir, err)
	}
	return e.within(ctx, e.cfg.Harness.Probe)
}

// mustLookAgain says whether, since it was last called, something could not be
// written down or started, and how long to wait before looking.
func (e *Engine) mustLookAgain() (must bool, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	must, e.lookAgain = e.lookAgain, false
	if e.untaken > 0 {
		wait = jitter(min(e.cfg.Poll.Longest, e.cfg.Poll.Idle<<min(e.untaken, 10)))
	}
	return must, wait
}

// mayClaim says whether there is room for one more item. e.mu must be held.
func (e *Engine) mayClaim() bool {
	held, delivering := 0, 0
	for _, h := range e.holds {
		switch {
		case h.phase == phaseDelivering:
			delivering++
		case !h.phase.started():
			held++
		}
	}
	return !e.paused && !e.away && !e.quitting && held < e.cfg.MaxHeld && delivering < maxDelivering
}

func (e *Engine) claim(ctx context.Context) (item Item, found bool, err error) {
	err = e.within(ctx, func(ctx context.Context) error {
		item, found, err = e.cfg.Harness.Claim(ctx, e.cfg.WorkerID)
		return err
	})
	return item, found, err
}

// within bounds one request.
func (e *Engine) within(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	return request(ctx)
}

// take has a claimed item held and tended, unless it is held here already: then
// it is the same hold. sent is the Boot at which the claim was sent, from which
// the lease counts. The next claim does not wait for the journal. It says whether
// the item was not held yet.
func (e *Engine) take(ctx context.Context, item Item, sent time.Duration) (fresh bool) {
	e.mu.Lock()
	e.busyUntil = e.clock.Boot() + activeFor
	same := e.holding(item.ID)
	e.mu.Unlock()
	if same != nil {
		e.offeredAgain(ctx, same, item, sent)
		return false
	}
	h := e.newHold(e.recordOf(item), sent)
	e.add(h)
	e.tending.Go(func() { e.tend(ctx, h) })
	return true
}

// isEcho says whether, since it was last called, the harness handed out what had
// been held here before. Such answers are not asked for without a pause.
func (e *Engine) isEcho() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	echo := e.echo
	e.echo = false
	return echo
}

func (e *Engine) isRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mayClaim()
}

func (e *Engine) isPaused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paused
}

// notTaken lets an item go that could not be written down: nothing ran and
// nothing will, its lease lapses and the harness hands it out again. Nothing more
// is claimed before the journal can be written.
func (e *Engine) notTaken(h *hold, err error) {
	e.log.Error("a claimed item could not be written to the journal; it is let go unrun",
		"item", h.rec.Item.ID, "error", err)
	e.mu.Lock()
	e.drop(h)
	e.lookAgain = true
	e.untaken++
	e.signal()
	e.mu.Unlock()
}

// holding returns the open hold of an item. e.mu must be held.
func (e *Engine) holding(itemID string) *hold {
	for _, h := range e.holds {
		if h.rec.Item.ID == itemID {
			return h
		}
	}
	return nil
}

// offeredAgain handles an item that the harness handed out while it is held
// here. It starts nothing. A reclaim clears the harness's accept, so a running
// item is accepted again.
func (e *Engine) offeredAgain(ctx context.Context, h *hold, item Item, sent time.Duration) {
	if !sameWork(h.rec.Item, item) {
		h.loseLife(errChangedWork)
		return
	}
	h.renewed(sent)
	e.mu.Lock()
	phase := h.phase
	h.reclaimed = phase == phaseAccepting
	e.mu.Unlock()
	h.note(StepOffered, "the harness handed this item out again while it is held here")
	if phase != phaseRunning {
		return
	}
	e.tending.Go(func() {
		sent := e.clock.Boot()
		if err := h.request(ctx, e.cfg.Harness.Accept); err != nil {
			h.note(StepLease, "accepting the running item again failed: "+err.Error())
			return
		}
		h.renewed(sent)
	})
}

// inTouch records a usable answer.
func (e *Engine) inTouch() {
	e.mu.Lock()
	e.conn.LastContact = e.clock.Now()
	was := e.conn.State
	told := e.toldFailing
	e.failingFrom, e.toldFailing = 0, false
	changed := was != Connected || e.conn.Detail != ""
	e.conn.State, e.conn.Detail = Connected, ""
	e.mu.Unlock()
	if told {
		e.happened(EventReachable, nil, false, "The harness answers again.")
	}
	if changed {
		e.log.Info("connected", "harness", e.cfg.Origin)
		e.changed()
	}
}

// lostTouch records a failed probe or claim and tells the operator what it
// means: at once where only they can mend it, after 30 s where it may mend itself.
func (e *Engine) lostTouch(err error) {
	state, detail := describeFailure(err)
	e.mu.Lock()
	news := e.conn.State != state
	now := e.clock.Boot()
	if e.failingFrom == 0 {
		e.failingFrom = now
	}
	tellUnreachable := state == Unreachable && !e.toldFailing && now-e.failingFrom >= 30*time.Second
	e.toldFailing = e.toldFailing || tellUnreachable
	e.mu.Unlock()
	e.setConnection(state, detail)

	switch {
	case tellUnreachable:
		e.happened(EventUnreachable, nil, false, "The harness has not answered for 30 s. Countersign keeps trying.")
	case news && state == CredentialsRejected:
		e.happened(EventCredentials, nil, false, "The harness rejected the credentials. Nothing is claimed.")
	case news && state == ClaimsRefused:
		e.happened(EventClaimsRefused, nil, false, "The harness refuses to hand out work. Countersign keeps trying.")
	case news && state == CannotAccept:
		e.happened(EventCannotAccept, nil, false, "This harness cannot accept a start, so nothing is claimed.")
	}
	if news {
		e.log.Warn("not connected", "state", string(state), "error", err)
	}
	if u := (*api.Unanswered)(nil); errors.As(err, &u) && u.MaybeApplied && u.Op == "claim" {
		e.log.Info(ClaimUnconfirmed, "error", err)
	}
}

func describeFailure(err error) (ConnectionState, string) {
	switch {
	case errors.Is(err, errWorkDir):
		return WorkDirUnusable, "Nothing is claimed: " + err.Error()
	case errors.Is(err, errJournal):
		return JournalUnwritable, "Nothing is claimed: " + err.Error() + ". Is the disk full?"
	}
	var refused *api.Refused
	if errors.As(err, &refused) {
		switch refused.Reason {
		case api.Credentials:
			if refused.Keyless {
				return CredentialsRejected, fmt.Sprintf("The harness wants a key, and this connection has none (status %d). "+
					"Nothing is claimed. Give it one and start Countersign again: keys are read at its start.", refused.Status)
			}
			return CredentialsRejected, fmt.Sprintf("The harness rejected the credentials (status %d). "+
				"Nothing is claimed. Check the API key and the environment key, and start Countersign again: they are read at its start.", refused.Status)
		case api.NoAcceptRoute:
			return CannotAccept, "This harness has no accept route, so it cannot authorize a start. " +
				"Nothing is claimed or run. Update the harness."
		}
		return ClaimsRefused, fmt.Sprintf("The harness refuses to hand out work (status %d); trying again. "+
			"Check the environment id and its key.", refused.Status)
	}
	return Unreachable, "No usable answer from the harness; trying again. " + err.Error()
}

func (e *Engine) setConnection(state ConnectionState, detail string) {
	e.mu.Lock()
	changed := e.conn.State != state || e.conn.Detail != detail
	e.conn.State, e.conn.Detail = state, detail
	e.mu.Unlock()
	if changed {
		e.changed()
	}
}

// backoff is how long to wait after so many failures in a row. Rejected
// credentials and a harness that cannot accept do not mend themselves quickly.
func (e *Engine) backoff(failures int, err error) time.Duration {
	longest := e.cfg.Poll.Longest
	if state, _ := describeFailure(err); state != Unreachable && state != ClaimsRefused {
		return jitter(longest)
	}
	return jitter(min(longest, e.cfg.Poll.Active<<min(failures, 10)))
}

// rest waits after a failure, but no longer than until the harness answers
// another request.
func (e *Engine) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.answers:
	case <-ctx.Done():
	}
}

// heard takes in how a request about a hold ended: whoever cannot reach the
// harness need not wait until it is time to try again.
func (e *Engine) heard(err error) {
	if refused := (*api.Refused)(nil); err != nil && !errors.As(err, &refused) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn.State != Unreachable {
		return
	}
	select {
	case e.answers <- struct{}{}:
	default: // it is told already
	}
}

// jitter spreads d over [d/2, d], so that many workers do not ask in step.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// pollInterval is short while a session is active: something of it is held, or
// was a moment ago.
func (e *Engine) pollInterval() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clock.Boot() < e.busyUntil {
		return e.cfg.Poll.Active
	}
	for _, h := range e.holds {
		if h.phase != phaseDelivering {
			return e.cfg.Poll.Active
		}
	}
	return e.cfg.Poll.Idle
}

// renewLapsed tries to renew each hold whose lease, by our estimate, has lapsed,
// and to complete each that is finished; once for each lapse. A claim can make a
// harness give up lapsed work for good, so this comes before the next one
// (DESIGN.md).
func (e *Engine) renewLapsed(ctx context.Context) {
	var tries sync.WaitGroup
	e.mu.Lock()
	for _, h := range e.holds {
		lapsed := h.leaseLeft() <= 0 && !h.triedLapsed
		owed := h.recovered && h.phase == phaseDelivering && !h.tried
		if lapsed || owed {
			h.triedLapsed = true
			tries.Go(func() { h.renewOrComplete(ctx) })
		}
	}
	e.mu.Unlock()
	tries.Wait()
}

func (h *hold) renewOrComplete(ctx context.Context) {
	attempted := h.hurryDelivery()
	if attempted == nil {
		h.beatIf(ctx, func() bool { return h.leaseWithin(0) })
		return
	}
	select {
	case <-attempted:
	case <-ctx.Done():
	}
}
