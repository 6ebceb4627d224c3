package worker

import (
	"context"
	"errors"

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
	return policy.Item{Task: h.task, Connection: h.e.cfg.Name, Session: h.rec.Item.SessionID}
}

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
		s.Files = h.e.cfg.Runner.Fingerprint(ctx, h.task, policy.NamedFiles(h.rec.WorkDir, h.asked()))
	}
	return s
}

// errChangedSince sends an item back to the operator (APPROVALS.md, "The traps").
var errChangedSince = errors.New("what it names changed since it was shown")

// changedSince says which of the files that an operator was shown with an item
// are others now. What a rule or a grant decided was shown to nobody.
func (h *hold) changedSince(ctx context.Context) []string {
	if !byOperator(h.rec.DecidedBy) || len(h.rec.Shown.Files) == 0 {
		return nil
	}
	return execute.Changed(h.rec.Shown.Files, h.look(ctx, policy.Explanation{Verdict: policy.Ask}).Files)
}

// showChanged puts an accepted item that changed since it was shown back before
// the operator, marked. Nothing of it ran.
func (h *hold) showChanged(ctx context.Context, accepted change, names []string) error {
	e := h.e
	e.mu.Lock()
	h.task = h.given
	e.mu.Unlock()
	shown := h.look(ctx, e.cfg.Policy.Explain(h.asked()))
	back := change{step: StepChanged, reason: changedWords(names), shown: &shown, facts: func(f *Facts) {
		f.Decision, f.DecidedBy, f.Words = Undecided, "", ""
	}}
	if err := h.record(accepted, back); err != nil {
		h.ended(h.unstarted("the journal could not be written, so it was not started: " + err.Error()))
		return nil
	}
	e.mu.Lock()
	h.phase, h.answered, h.changed, h.wasAccepted = phaseWaiting, false, true, true
	h.decideBy = max(h.decideBy, e.clock.Boot()+atLeast)
	h.warned = false
	e.signal()
	e.mu.Unlock()
	e.changed()
	return errChangedSince
}

// Rejudge judges what waits for a person once more, after a grant was given or
// other rules came into force. What changed since it was shown stays theirs.
func (e *Engine) Rejudge() {
	items := map[*hold]policy.Item{}
	e.mu.Lock()
	for _, h := range e.holds {
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
	decided = decided && h.awaitsAnswer()
	if h.awaitsAnswer() {
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
