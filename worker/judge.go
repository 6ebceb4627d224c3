package worker

import (
	"context"
	"errors"
	"slices"

	"countersign/worker/execute"
	"countersign/worker/policy"
)

// Policy says what may start without asking, and why. *policy.Book is one. Its
// methods are called from several goroutines and must not block.
type Policy interface {
	Judge(policy.Item) policy.Explanation   // decides, and counts what decided
	Explain(policy.Item) policy.Explanation // says what Judge would
	Mode() policy.Mode
	Grants() *policy.Grants // nil where none can be given
}

// Shown is what an operator is told of an item beside the item itself, as it was
// when they could first see it: why it is asked for, and the state of the files
// that it names. What changes from then on brings the item back to them.
type Shown struct {
	Explanation policy.Explanation    `json:"explanation"`
	Files       []execute.Fingerprint `json:"files,omitempty"`
}

// asked is the item as the policy judges it.
func (h *hold) asked() policy.Item {
	return policy.Item{Task: h.task, Connection: h.e.cfg.Name, Session: h.rec.Item.SessionID, From: h.e.from(), Dir: h.rec.WorkDir}
}

// from names the harness and environment whose session ids these are.
func (e *Engine) from() string { return e.cfg.Origin + " " + e.cfg.Environment }

// judge decides what needs no person: work that cannot be done here, and what
// the policy allows or denies.
func (h *hold) judge() (a answer, decided bool, why policy.Explanation) {
	if h.unfit != nil {
		why.Verdict, why.By, why.Reason = policy.Deny, ownName, h.unfit.Error()
		return answer{decision: Declined, by: ownName, words: h.unfit.Error()}, true, why
	}
	why = h.e.cfg.Policy.Judge(h.asked())
	a, decided = answerOf(why)
	return a, decided, why
}

func answerOf(e policy.Explanation) (a answer, decided bool) {
	switch e.Verdict {
	case policy.Allow:
		return answer{decision: Approved, by: e.By, words: e.Reason}, true
	case policy.Deny:
		return answer{decision: Declined, by: e.By, words: e.Reason}, true
	}
	return answer{}, false
}

// look finds what is to be shown of an item that waits for a person: the files
// that it names, as they are now.
func (h *hold) look(ctx context.Context, why policy.Explanation) Shown {
	s := Shown{Explanation: why}
	if why.Verdict == policy.Ask {
		s.Files = h.e.files(ctx, h.asked())
	}
	return s
}

// files are the files that an item names, as they are now. Where there are more
// than can be compared, one that stands for these says so to whoever decides.
func (e *Engine) files(ctx context.Context, i policy.Item) []execute.Fingerprint {
	named, more := policy.NamedFiles(e.cfg.Runner.Dir(), i)
	files := e.cfg.Runner.Fingerprint(ctx, i.Task, named)
	if more {
		files = append(files, execute.Fingerprint{Path: "further files", State: "not compared: the command names too many"})
	}
	return files
}

// asShown is what an edit names, each file as it was shown, where it was.
func asShown(named, shown []execute.Fingerprint) []execute.Fingerprint {
	files := slices.Clone(named)
	for i, f := range files {
		if n := slices.IndexFunc(shown, func(s execute.Fingerprint) bool { return s.Path == f.Path }); n >= 0 {
			files[i] = shown[n]
		}
	}
	return files
}

// changedSince says which of the files that an item names are others than when an
// operator approved it. What a rule or a grant decided was shown to nobody.
func (h *hold) changedSince(ctx context.Context) []string {
	if !byOperator(h.rec.DecidedBy) {
		return nil
	}
	return execute.Changed(h.approved, h.e.files(ctx, h.asked()))
}

// showChanged puts an accepted item that changed since it was shown back before
// the operator, marked. Nothing of it ran.
func (h *hold) showChanged(ctx context.Context, accepted change, names []string) error {
	h.e.mu.Lock()
	h.task = h.given
	h.e.mu.Unlock()
	shown := h.look(ctx, h.e.cfg.Policy.Explain(h.asked()))
	if err := h.record(accepted, change{step: StepChanged, reason: changedWords(names), shown: &shown, facts: undecide}); err != nil {
		h.ended(h.unstarted("the journal could not be written, so it was not started: " + err.Error()))
		return nil
	}
	return h.askAgain(func() { h.changed, h.wasAccepted = true, true })
}

// errAskedAgain sends an item back to where it is decided on.
var errAskedAgain = errors.New("it is decided on once more")

// stillAllowed judges what no person decided once more, now that it could start:
// the rule or the grant that allowed it may be gone, another may deny it, and a path
// may lead elsewhere. soFar is what is to be written down with an answer that is
// another: that the harness accepted it.
func (h *hold) stillAllowed(ctx context.Context, soFar ...change) error {
	if byOperator(h.rec.DecidedBy) {
		return nil
	}
	why := h.e.cfg.Policy.Explain(h.asked())
	if why.Verdict == policy.Allow {
		return nil
	}
	shown := h.look(ctx, why)
	changes := append(soFar, change{step: StepDecided, reason: "what allowed it does not any more; nothing ran", shown: &shown, facts: undecide})
	a, denied := answerOf(why)
	if denied {
		changes = append(changes, decision(a))
	}
	if err := h.record(changes...); err != nil {
		h.logged(err)
		h.setPhase(phaseInLine)
		if !sleep(ctx, h.e.cfg.Poll.Longest/3) {
			return context.Cause(ctx)
		}
		return errAskedAgain // the decision that is written down still stands, and is judged again
	}
	if denied {
		h.setPhase(phaseInLine)
		return errAskedAgain
	}
	return h.askAgain(func() { h.wasAccepted = h.wasAccepted || len(soFar) > 0 })
}

// isDoubted reports whether rules or grants changed while the hold was in line.
func (h *hold) isDoubted() bool {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	was := h.doubted
	h.doubted = false
	return was
}

func undecide(f *Facts) { f.Decision, f.DecidedBy, f.Words = Undecided, "", "" }

// askAgain has the operator decide anew. A stop that came meanwhile is carried
// out instead.
func (h *hold) askAgain(mark func()) error {
	e := h.e
	e.mu.Lock()
	mark()
	stopped := context.Cause(h.runCtx)
	if stopped == nil {
		h.phase, h.answered, h.warned = phaseWaiting, false, false
		h.decideBy = max(h.decideBy, e.clock.Boot()+atLeast)
	}
	e.signal()
	e.mu.Unlock()
	e.changed()
	if stopped != nil {
		return stopped
	}
	return errAskedAgain
}

// Rejudge judges what waits for a person once more, after a grant was given or
// other rules came into force, and has what is in line judged before it is
// accepted. What changed since it was shown stays theirs.
func (e *Engine) Rejudge() {
	items := map[*hold]policy.Item{}
	e.mu.Lock()
	for _, h := range e.holds {
		h.doubted = h.doubted || h.phase == phaseInLine // whoever has its turn may not have looked yet
		if h.awaitsAnswer() && !h.changed {
			items[h] = h.asked()
		}
	}
	e.mu.Unlock()
	for h, item := range items {
		h.rejudge(item, e.cfg.Policy.Explain(item))
	}
	e.changed()
}

func (h *hold) rejudge(item policy.Item, why policy.Explanation) {
	a, decided := answerOf(why)
	h.e.mu.Lock()
	open := h.awaitsAnswer() && !h.changed
	decided = decided && open
	if open {
		h.rec.Shown.Explanation = why
	}
	if decided {
		h.answer(a)
	}
	h.e.mu.Unlock()
	if decided {
		h.e.cfg.Policy.Judge(item) // so that it counts
	}
}

// awaitsAnswer reports whether a person can decide on the hold. e.mu must be
// held.
func (h *hold) awaitsAnswer() bool {
	return h.phase == phaseWaiting && !h.answered && h.life.Err() == nil
}

// answer decides a hold that awaits it. e.mu must be held.
func (h *hold) answer(a answer) {
	h.answered = true
	h.answers <- a // holds one, and only the first gets here
}
