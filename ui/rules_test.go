package ui

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
	"countersign/worker/policy"
)

// fakeRules are rules in force without a file.
type fakeRules struct {
	mu      sync.Mutex
	state   policy.RulesState
	refuse  error
	states  int
	added   []string
	taken   []string
	follow  func()
	adding  func(text string) // nil, or what AddRules does before it returns
	explain func(policy.Item) (policy.Explanation, error)
}

func (f *fakeRules) State() policy.RulesState {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states++
	return f.state
}

func (f *fakeRules) Accept(hash string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = append(f.taken, hash)
	return f.refuse
}

func (f *fakeRules) AddRules(text string) error {
	f.mu.Lock()
	err := f.refuse
	if err == nil {
		f.added = append(f.added, text)
	}
	f.mu.Unlock()
	if f.adding != nil {
		f.adding(text)
	}
	return err
}

func (f *fakeRules) Follow(changed func()) { f.follow = changed }

func (f *fakeRules) Explain(i policy.Item) (policy.Explanation, error) {
	if f.explain == nil {
		return policy.Explanation{Verdict: policy.Ask, Reason: "no rule allows it"}, nil
	}
	return f.explain(i)
}

func (f *fakeRules) accepted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.taken...)
}

const ruled = `[[rule]]
name = "tests"
kind = "exec"
runs-code = true
allow = ["go test [-v] <path>...", "go vet <path>..."]
deny = ["kubectl"]
env = ["CI"]
`

// newStageOfRules is a stage whose window is open at the rules.
func newStageOfRules(t *testing.T, state policy.RulesState) (*stage, *fakeRulebook) {
	t.Helper()
	st, book := newStageWithRules(t)
	st.show(func(*worker.Snapshot) {})
	st.changed(book, func(s *policy.RulesState) { *s = state })
	st.press(fyne.Key3, ctrl)
	st.pass(time.Second)
	return st, book
}

// changed changes what is in force and waits until that is shown.
func (st *stage) changed(book *fakeRulebook, change func(*policy.RulesState)) {
	st.t.Helper()
	book.mu.Lock()
	change(&book.state)
	before := book.states
	book.mu.Unlock()
	book.follow()
	st.until("the rules are read", func() bool {
		book.mu.Lock()
		defer book.mu.Unlock()
		r := st.window.rules
		return book.states > before && !r.reading && !r.again
	})
}

func inForce() policy.RulesState {
	return policy.RulesState{File: "/home/op/.config/countersign/rules.toml", Hash: strings.Repeat("ab12", 16), Text: ruled, Mode: policy.ModeRules,
		Since:  time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC),
		Counts: []policy.Count{{Rule: "tests", Matched: 3, Last: time.Date(2026, 3, 1, 13, 30, 0, 0, time.UTC)}}}
}

// linesOf is the text beside the list.
func (st *stage) linesOf(v *textView) string {
	var all []string
	for _, l := range v.lines {
		all = append(all, l.Sign+l.Text)
	}
	return strings.Join(all, "\n")
}

func (st *stage) page() string { return st.linesOf(st.window.rules.page.view) }

func TestTheRulesInForceAreShownWithWhatTheyDidLast(t *testing.T) {
	st, _ := newStageOfRules(t, inForce())
	st.window.rules.selectEntry("rule/tests")
	for _, want := range []string{"rules.toml", "ab12ab12ab12ab12", "tests", "used 3 times", "runs code · allows go test, go vet · denies kubectl", "The agent can write there"} {
		if !st.shows(want) {
			t.Errorf("%q is not shown", want)
		}
	}
	for _, want := range []string{"go test [-v] <path>...", "kubectl", "CI", "used 3 times, last at"} {
		if !strings.Contains(st.page(), want) {
			t.Errorf("%q is not in %s", want, st.page())
		}
	}
	st.picture("rules-in-force")
}

// pending is a change with so many lines.
func pending(lines int) *policy.Change {
	var diff strings.Builder
	fmt.Fprintf(&diff, "--- in force\n+++ rules.toml\n@@ -1,2 +1,%d @@\n [[rule]]\n-name = \"old\"\n", lines)
	for i := range lines {
		fmt.Fprintf(&diff, "+# line %d \x1b[31m\n", i)
	}
	return &policy.Change{Hash: strings.Repeat("c", 64), Diff: diff.String()}
}

func TestAChangeFromOutsideComesIntoForceOnlyOnceAllOfItWasOnScreen(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	st.changed(book, func(s *policy.RulesState) { s.Pending = pending(300) })
	if got := st.window.railRules.label; got != "Rules (1)" {
		t.Errorf("the rail says %q", got)
	}
	st.press(fyne.Key3, ctrl) // leads to it
	st.pass(time.Second)
	if !st.shows("The rule file was changed outside Countersign") || st.window.rules.selected != "change" {
		t.Fatal("it is not led to the change")
	}
	if page := st.page(); !strings.Contains(page, "−name = \"old\"") || !strings.Contains(page, "+# line 299 ‹ESC›") || !strings.Contains(page, book.state.Pending.Hash) {
		t.Errorf("the change is drawn as %s", page)
	}
	st.picture("rules-change")
	act := st.window.rules.page.act
	if !act.disabled || !strings.Contains(act.label, "unseen") {
		t.Errorf("the button says %q, disabled %v", act.label, act.disabled)
	}
	st.press(fyne.KeyReturn, ctrl)
	test.Tap(act)
	for range 40 {
		st.press(fyne.KeyPageDown, 0)
	}
	st.pump()
	if got := book.accepted(); len(got) > 0 {
		t.Fatalf("accepted unseen: %q", got)
	}
	if act.disabled || act.label != "Put this into force" {
		t.Fatalf("the button says %q, disabled %v", act.label, act.disabled)
	}
	st.press(fyne.KeyReturn, ctrl)
	st.until("it is accepted", func() bool { return len(book.accepted()) == 1 })
	if got := book.accepted()[0]; got != strings.Repeat("c", 64) {
		t.Errorf("accepted %s", got)
	}
	st.changed(book, func(s *policy.RulesState) { s.Pending = nil })
	if st.window.railRules.label != "Rules" || st.shows("changed outside") {
		t.Error("it is still said that something waits")
	}
}

func TestAnotherChangeHasToBeSeenAnew(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	st.changed(book, func(s *policy.RulesState) { s.Pending = pending(3) })
	st.window.rules.selectEntry("change")
	st.wgIdle()
	st.pass(time.Second)
	other := pending(300)
	other.Hash = strings.Repeat("d", 64)
	st.changed(book, func(s *policy.RulesState) { s.Pending = other })
	st.press(fyne.KeyReturn, ctrl)
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.wgIdle()
	if got := book.accepted(); len(got) > 0 {
		t.Errorf("accepted unseen: %q", got)
	}
	short := pending(2)
	short.Hash = strings.Repeat("e", 64)
	st.changed(book, func(s *policy.RulesState) { s.Pending = short })
	st.window.rules.view().scroll(doTop)
	st.window.rules.enable()
	st.press(fyne.KeyReturn, ctrl) // nobody can have read it yet
	st.wgIdle()
	if got := book.accepted(); len(got) > 0 {
		t.Errorf("accepted before it can have been read: %q", got)
	}
}

func TestARefusedAcceptIsSaidInWords(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	st.changed(book, func(s *policy.RulesState) { s.Pending = pending(2) })
	st.window.rules.selectEntry("change")
	st.pass(time.Second)
	book.mu.Lock()
	book.refuse = policy.ErrOtherRules
	book.mu.Unlock()
	st.window.rules.enable()
	st.press(fyne.KeyReturn, ctrl)
	st.until("the words", func() bool { return st.shows("The rule file is not what was shown") })
}

func TestAFileThatCannotBeUsedIsSaidWithItsLines(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	st.changed(book, func(s *policy.RulesState) { s.Broken = "/r.toml:3: first\n/r.toml:9: second \u202e" })
	if !st.shows("cannot be used. What was in force before still is.") {
		t.Error("the window does not say so")
	}
	st.window.rules.selectEntry("broken")
	if page := st.page(); !strings.Contains(page, "/r.toml:3: first\n") || !strings.Contains(page, "/r.toml:9: second ‹") {
		t.Errorf("the page says %s", page)
	}
	st.picture("rules-broken")
}

func TestGrantsAreListedAndRevoked(t *testing.T) {
	st, book := newStageWithRules(t)
	st.show(func(*worker.Snapshot) {})
	st.changed(book, func(s *policy.RulesState) { *s = inForce() })
	st.desk.mu.Lock()
	st.desk.grants = []policy.Grant{
		{ID: "G1", Session: "sess_A", Connection: "demo", Exactly: "x", Text: "make\x1b test", Made: st.now(), Matched: 2},
		{ID: "G2", Session: "sess_B", Connection: "demo", Under: "src", Text: "read and list src", Made: st.now(), Until: st.now().Add(time.Minute)},
	}
	st.desk.mu.Unlock()
	st.pass(time.Second)
	st.press(fyne.Key3, ctrl)
	st.until("the grants", func() bool { return st.shows("make‹ESC› test") && st.shows("read and list src") })
	st.window.rules.selectEntry("grant/G2")
	st.picture("rules-grant")
	st.press(fyne.KeyD, ctrl)
	st.didNothing() // nobody can have read it yet
	st.pass(time.Second)
	st.press(fyne.KeyD, ctrl)
	st.did("revoke G2")
	if !strings.Contains(st.page(), "read and list src") || !strings.Contains(st.page(), "sess_B") {
		t.Errorf("the page says %s", st.page())
	}
}

func TestTheTesterSaysWhatWouldHappenPartByPart(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	book.explain = func(i policy.Item) (policy.Explanation, error) {
		if i.Connection != "demo" {
			return policy.Explanation{}, errors.New("the item's connection is not served any more")
		}
		if i.Kind != "exec" {
			return policy.Explanation{Verdict: policy.Allow, By: "rule x", Reason: "rule x allows to " + i.Kind + " " + i.Path}, nil
		}
		return policy.Explanation{Verdict: policy.Deny, By: "rule x", Reason: "rule x denies b",
			Parts: []policy.Part{{Text: "a", Verdict: policy.Allow, Reason: "allowed it is"}, {Text: "b", Verdict: policy.Deny, Reason: "rule x denies b"}}}, nil
	}
	st.press(fyne.KeyE, ctrl)
	st.write("a && b")
	st.press(fyne.KeyT, ctrl)
	try := st.window.rules.try
	st.until("the verdict", func() bool { return strings.Contains(st.linesOf(try.view), "It would be declined") })
	for _, want := range []string{"allowed it is", "rule x denies b"} {
		if !strings.Contains(st.linesOf(try.view), want) {
			t.Errorf("%q is missing in %s", want, st.linesOf(try.view))
		}
	}
	st.picture("rules-tester")
	st.press(fyne.KeyEscape, 0)
	st.press(fyne.KeyX, 0) // now as a path to read
	st.until("the verdict", func() bool { return strings.Contains(st.linesOf(try.view), "rule x allows to read a && b") })
	st.press(fyne.KeyE, ctrl)
	st.press(fyne.KeyReturn, ctrl) // decides nothing
	st.didNothing()
}

func TestTheRulesCostNothingWhileTheyAreNotOnScreen(t *testing.T) {
	st, book := newStageOfRules(t, inForce())
	st.press(fyne.Key1, ctrl)
	st.wgIdle()
	book.mu.Lock()
	before := book.states
	book.mu.Unlock()
	for range 5 {
		st.pass(10 * time.Second)
		st.wgIdle()
	}
	book.mu.Lock()
	defer book.mu.Unlock()
	if book.states != before {
		t.Errorf("read %d times", book.states-before)
	}
	if st.window.rules.endFollow != nil {
		t.Error("it is still followed")
	}
}

func TestWithoutRulesThereIsNoPlaceForThem(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	st.press(fyne.Key3, ctrl)
	if st.window.rules.root.Visible() || st.window.railRules.Visible() {
		t.Error("there is")
	}
}

func TestAChangeIsNotifiedToSomebodyWhoDoesNotLook(t *testing.T) {
	n, book := &fakeNotifier{}, &fakeRulebook{}
	st := newStage(t, func(o *Options) { o.Notifier, o.Rulebook = n, book })
	st.show(func(*worker.Snapshot) {})
	st.changed(book, func(s *policy.RulesState) { *s = inForce() })
	st.changed(book, func(s *policy.RulesState) { s.Pending = pending(1) })
	st.changed(book, func(s *policy.RulesState) { s.Pending = nil })
	st.hide()
	if said := n.all(); said != "" {
		t.Errorf("to somebody who looks it was said %q", said)
	}
	st.changed(book, func(s *policy.RulesState) { s.Broken = "/home/op/r.toml:3: $(touch x)" })
	st.until("the notification", func() bool { return n.all() != "" })
	if said := n.all(); said != "Rules were changed|The rule file was changed and cannot be used. What was in force before still is." {
		t.Errorf("it was said %q", said)
	}
}
