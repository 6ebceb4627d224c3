package worker

import "testing"

// TestADoubtOutlivesAnotherChangeOfTheRules has one that was in line when the rules
// changed, and has its turn but has not looked yet when they change again.
func TestADoubtOutlivesAnotherChangeOfTheRules(t *testing.T) {
	e := &Engine{}
	h := &hold{e: e, phase: phaseInLine}
	e.holds = []*hold{h}
	e.Rejudge()
	h.phase = phaseAccepting
	e.Rejudge()
	if !h.isDoubted() {
		t.Error("what the first change put in doubt is forgotten")
	}
	if h.isDoubted() {
		t.Error("it is looked at again and again")
	}
}
