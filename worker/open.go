package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"countersign/worker/execute"
)

// phase is how far a hold has come, as the engine sees it.
type phase int

const (
	phaseOpening    phase = iota // claimed, not written down yet: nobody sees it
	phaseWaiting                 // undecided
	phaseInLine                  // decided, waiting for its turn
	phaseAccepting               // asking for the accept; holds a running slot
	phaseRunning                 // started; holds a running slot
	phaseDelivering              // ended or declined; being reported
)

// setPhase moves the hold on.
func (h *hold) setPhase(p phase) {
	h.e.mu.Lock()
	h.phase = p
	h.e.signal()
	h.e.mu.Unlock()
	h.e.changed()
}

func (p phase) started() bool { return p >= phaseRunning }
func (p phase) inSlot() bool  { return p == phaseAccepting || p == phaseRunning }

// hold is an open hold. Its facts are moved by the goroutine that tends it and
// by nobody else; what others read or set is guarded by the engine's mutex.
type hold struct {
	e     *Engine
	given execute.Task // what the harness asks for
	unfit error        // why that cannot be done here; nil where it can

	answers  chan answer             // the operator's; holds one
	life     context.Context         // ends when the hold may not start any more
	loseLife context.CancelCauseFunc //
	runCtx   context.Context         // ends when what runs has to stop
	stopRun  context.CancelCauseFunc //
	hurry    chan struct{}           // asks a waiting delivery to try now
	beating  chan struct{}           // held by the heartbeat under way

	// The tender's own.
	recovered  bool          // taken up after a restart
	askedOurs  bool          // and a heartbeat asked whether it still is ours
	unwritten  bool          // the outcome is in memory only
	owed       *change       // the last step, where it could not be written down
	acceptedAt time.Duration // Boot at which the successful accept was sent

	// Guarded by e.mu.
	rec          Hold
	task         execute.Task // what is to run: given, unless the operator changed it
	steps        []Entry
	phase        phase
	turn         chan struct{} // closed when its turn may have come, while it waits for that
	processEnded bool          // it is written down yet, but takes no slot any more
	claimed      int           // the how manieth claim
	answered     bool
	approved     []execute.Fingerprint // the files that it names, as an operator approved them
	doubted      bool                  // rules or grants changed since it was decided
	changed      bool                  // since it was shown: the operator's alone to decide
	wasAccepted  bool                  // and did not start: it cannot be let go any more
	openedAt     time.Duration         // Boot
	age          time.Duration         // of the item at its claim, by the harness's clock
	decideBy     time.Duration         // Boot
	warned       bool
	leaseFrom    time.Duration // Boot at which the last successful renewal was sent
	lastBeat     time.Duration // Boot at which the last renewal was tried
	atRisk       bool
	toldLapsed   bool
	triedLapsed  bool // since it lapsed, before a claim
	toldLost     bool
	reclaimed    bool          // handed out again since it was accepted
	tried        bool          // delivering was tried
	attempted    chan struct{} // closed when the delivery attempt under way has ended
}

// recordOf is the record of a hold of an item that was just claimed.
func (e *Engine) recordOf(item Item) Hold {
	rec := Hold{
		Connection: e.cfg.Name, Origin: e.cfg.Origin, Environment: e.cfg.Environment,
		WorkerID: e.cfg.WorkerID, Item: item, WorkDir: e.cfg.Runner.Dir(),
		OutputPath: e.outputPath(item.ID), OpenedAt: e.clock.Now(),
		Facts: Facts{Decision: Undecided, Acceptance: NotAsked, Execution: NotStarted, Delivery: NothingToDeliver},
	}
	return rec
}

// open learns what is known of the item, decides what needs no person, and writes
// both down. The lease is kept meanwhile.
func (h *hold) open(ctx context.Context) error {
	e := h.e
	last, known, err := e.cfg.Journal.Last(ctx, h.rec.Origin, h.rec.Item.ID)
	if err != nil {
		return err
	}
	rec, next, then := h.rec, phaseWaiting, []change(nil)
	rec.Returned = known
	if known {
		rec.Execution = last.Execution
	}
	a, decided, why := h.judge()
	rec.Shown = h.look(ctx, why)
	rec.Digest = digest(rec)
	switch {
	case known && !sameWork(last.Item, rec.Item):
		then = append(then, decision(answer{decision: Declined, by: ownName, words: errChangedWork.Error()}))
	case known && last.Execution != NotStarted && last.Outcome == nil:
		h.loseLife(errStartedBefore)
	case known && last.Execution != NotStarted:
		rec.Outcome, next = last.Outcome, phaseDelivering
	case known && last.Decision == Declined:
		then = append(then, decision(answer{decision: Declined, by: last.DecidedBy, words: last.Words}))
	case decided:
		then = append(then, decision(a))
	}
	if then != nil {
		next = phaseInLine
	}
	moves := plan(rec, e.clock.Now(), then)
	if rec.ID, err = e.cfg.Journal.Open(ctx, rec, returnedWords(rec), moves...); err != nil {
		return err
	}
	e.mu.Lock()
	h.rec.ID, h.rec.Returned, h.rec.Execution, h.rec.Outcome = rec.ID, rec.Returned, rec.Execution, rec.Outcome
	h.rec.Shown, h.rec.Digest = rec.Shown, rec.Digest
	h.phase = next
	e.echo = e.echo || known
	e.untaken = 0
	h.remember(Entry{Hold: rec.ID, At: rec.OpenedAt, Step: StepClaimed, Reason: returnedWords(rec), Facts: rec.Facts})
	h.apply(moves)
	e.signal()
	e.mu.Unlock()
	e.changed()
	return nil
}

// newHold makes the memory of a hold whose lease counts from sent. What the
// journal says has ended is only to be delivered.
func (e *Engine) newHold(rec Hold, sent time.Duration) *hold {
	h := &hold{
		e: e, rec: rec,
		answers: make(chan answer, 1), hurry: make(chan struct{}, 1), beating: make(chan struct{}, 1), attempted: make(chan struct{}),
		leaseFrom: sent, lastBeat: sent, openedAt: e.clock.Boot(),
	}
	h.life, h.loseLife = context.WithCancelCause(context.Background())
	h.runCtx, h.stopRun = context.WithCancelCause(context.Background())
	if h.given, h.unfit = execute.Decode(rec.Item.Kind, rec.Item.Payload); h.unfit == nil {
		h.unfit = e.cfg.Runner.Check(h.given)
	}
	h.task = h.given
	if !rec.Item.CreatedAt.IsZero() && !rec.Item.ClaimedAt.IsZero() {
		h.age = max(0, rec.Item.ClaimedAt.Sub(rec.Item.CreatedAt))
	}
	h.limitDecision()
	return h
}

// limitDecision sets how long the operator has: from the item's creation, and a
// minute at least, unless a shorter limit is configured.
func (h *hold) limitDecision() {
	limit := h.e.cfg.DecisionTimeout
	if limit >= atLeast {
		limit = max(limit-h.age, atLeast)
	}
	h.decideBy = h.openedAt + limit
	h.warned = limit <= warnBefore // being asked is the warning
}

// add puts a hold on the list, behind those that were claimed before it.
func (e *Engine) add(h *hold) {
	e.mu.Lock()
	e.claims++
	h.claimed = e.claims
	e.holds = append(e.holds, h)
	e.mu.Unlock()
	e.changed()
}

// outputPath names an item's transcript. An item runs at most once, so its name
// is enough; ids are any string, so the name is a hash.
func (e *Engine) outputPath(itemID string) string {
	if e.cfg.OutputDir == "" {
		return "" // nothing is kept
	}
	sum := sha256.Sum256([]byte(e.cfg.Origin + "\x00" + itemID))
	return filepath.Join(e.cfg.OutputDir, hex.EncodeToString(sum[:16]))
}

// digest is the hash of exactly what the operator is shown: the raw item, where
// it comes from, the directory it runs in, and the state of the files that it
// names. A decision carries it.
func digest(h Hold) string {
	sum := sha256.New()
	parts := []string{h.Origin, h.Environment, h.Item.ID, h.Item.SessionID,
		h.Item.Kind, string(h.Item.Payload), h.WorkDir}
	for _, f := range h.Shown.Files {
		parts = append(parts, f.String())
	}
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		_, _ = io.WriteString(sum, part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func sameWork(a, b Item) bool {
	return a.Kind == b.Kind && string(a.Payload) == string(b.Payload)
}

// whileAlive is ctx that also ends, with its cause, when the hold's life does.
func (h *hold) whileAlive(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	return endingWith(ctx, h.life)
}

// whileStartable is whileAlive that also ends when what runs has to stop.
func (h *hold) whileStartable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	alive, endAlive := h.whileAlive(ctx)
	both, end := endingWith(alive, h.runCtx)
	return both, func(cause error) {
		end(cause)
		endAlive(cause)
	}
}

// endingWith is ctx that also ends, with its cause, when other does.
func endingWith(ctx, other context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if other.Err() != nil {
		cancel(context.Cause(other))
	}
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}
