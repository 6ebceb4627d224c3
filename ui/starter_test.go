package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
	"countersign/worker/policy"
)

func fresh() policy.RulesState {
	return policy.RulesState{File: "/home/op/.config/countersign/rules.toml", Mode: policy.ModeRules, Fresh: true}
}

func TestEveryShippedRuleIsOfferedInPlainWords(t *testing.T) {
	all := shippedRules()
	if len(all) < 10 {
		t.Fatalf("only %d", len(all))
	}
	for _, s := range all {
		if s.does == "" || len(s.does) > 100 {
			t.Errorf("%s is said to do %q", s.Name, s.does)
		}
		if s.RunsCode != (s.mind != "") {
			t.Errorf("%s: runs code %v, and to be minded is %q", s.Name, s.RunsCode, s.mind)
		}
		if s.RunsCode != (s.set == developerTitle) {
			t.Errorf("%s, which runs code: %v, is of the %s", s.Name, s.RunsCode, s.set)
		}
	}
	if len(shippedWords) != len(all) {
		t.Errorf("words for %d rules, %d are shipped", len(shippedWords), len(all))
	}
}

func TestStarterRulesAreOffUntilTheyAreSwitchedOn(t *testing.T) {
	st, book := newStageOfRules(t, fresh())
	r := st.window.rules
	drawn := make(chan struct{})
	book.adding = func(text string) {
		book.mu.Lock()
		book.state.Fresh, book.state.Hash, book.state.Text = false, strings.Repeat("1", 64), text
		book.mu.Unlock()
		book.follow()
		<-drawn
	}
	st.picture("starter")
	if got := r.selected; got != "shipped/sources" {
		t.Errorf("selected is %q", got)
	}
	if !st.shows("no such file yet, and no rule is in force: everything is asked for") || !st.shows(starterTitle) || !st.shows(developerTitle) {
		t.Error("it is not said what is in force and what is offered")
	}
	st.press(fyne.KeyReturn, ctrl) // nothing is chosen
	st.press(fyne.KeyX, 0)
	st.press(fyne.KeyJ, 0)
	st.press(fyne.KeyX, 0)
	st.press(fyne.KeyX, 0) // and not
	st.press(fyne.KeyJ, 0)
	st.press(fyne.KeyX, 0)
	if got := r.chosenNames(); !slices.Equal(got, []string{"sources", "filter output"}) {
		t.Fatalf("chosen are %q", got)
	}
	if len(book.added) > 0 {
		t.Fatal("what was only chosen is in force")
	}
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.until("they are in force", func() bool { return r.index("rule/sources") >= 0 })
	close(drawn) // it is answered only after that
	st.until("the answer", func() bool { return !r.sending && !r.reading && !r.again })
	infos, err := policy.RulesIn([]byte(book.added[0]))
	if err != nil || len(infos) != 2 || infos[0].Name != "sources" || infos[1].Name != "filter output" || !strings.Contains(book.added[0], "[[test]]") {
		t.Errorf("%v, added was %s", err, book.added[0])
	}
	if r.selected != "rule/sources" || r.pointed != r.selected {
		t.Errorf("what was switched on is not selected: %q, %q", r.selected, r.pointed)
	}
	if r.index("rule/sources") < 0 || r.index("shipped/sources") >= 0 || r.index("shipped/search") < 0 || len(r.chosen) > 0 {
		t.Errorf("the list is %v", r.entries)
	}
}

func TestWhatWouldHappenCanBeAskedBeforeThereIsARuleFile(t *testing.T) {
	for _, size := range sizes {
		st, book := newStageOfRules(t, fresh())
		st.window.win.Resize(size)
		st.wgIdle()
		if !st.shows("What would happen to…") {
			t.Errorf("in %v it is out of sight: %v", size, st.window.rules.entries)
		}
		book.explain = func(policy.Item) (policy.Explanation, error) {
			return policy.Explanation{Verdict: policy.Ask, Reason: "no rule allows make"}, nil
		}
		st.press(fyne.KeyE, ctrl)
		st.write("make")
		st.until("the answer", func() bool { return st.shows("You would be asked") && st.shows("no rule allows make") })
		st.press(fyne.KeyEscape, 0)
		st.press(fyne.KeyJ, 0)
		if got := st.window.rules.selected; got != "shipped/sources" {
			t.Errorf("in %v %q is behind it", size, got)
		}
	}
}

func TestARuleIsSwitchedWithThePointerToo(t *testing.T) {
	st, book := newStageOfRules(t, fresh())
	r := st.window.rules
	st.pump()
	tapped := false
	walk(r.root, func(o fyne.CanvasObject) {
		if row, ok := o.(*ruleRow); ok && row.shown.name == "Go: test and build" {
			test.Tap(row.icon)
			tapped = true
		}
	})
	if !tapped || !r.chosen["Go: test and build"] || r.selected != "shipped/Go: test and build" || !st.shows("The agent can write there") {
		t.Errorf("tapped %v, chosen %v, selected %q", tapped, r.chosen, r.selected)
	}
	st.picture("starter-developer")
	test.Tap(r.page.choose)
	if len(r.chosen) > 0 {
		t.Error("it is still chosen")
	}
	test.Tap(r.page.choose)
	st.pass(time.Second)
	book.mu.Lock()
	book.refuse = policy.ErrOtherRules
	book.mu.Unlock()
	test.Tap(r.page.act)
	st.until("the refusal", func() bool { return st.shows("The rule file is not what was shown") })
	if !r.chosen["Go: test and build"] {
		t.Error("what was chosen is forgotten, and not in force")
	}
}

func TestTheStarterRulesAreOfferedOnceWhereEverythingIsAskedFor(t *testing.T) {
	st, book := newStageWithRules(t)
	st.show(func(*worker.Snapshot) {})
	st.changed(book, func(s *policy.RulesState) { *s = fresh() })
	const words = "Everything is asked for. Starter rules can be switched on in Rules (Ctrl+3)."
	st.until("the offer", func() bool { return st.shows(words) })
	st.press(fyne.Key3, ctrl)
	if st.shows(words) {
		t.Error("it is offered where it is")
	}
	st.press(fyne.Key1, ctrl)
	if !st.shows(words) {
		t.Error("the offer is gone")
	}
	test.Tap(st.window.notNow)
	st.press(fyne.Key2, ctrl)
	st.press(fyne.Key1, ctrl)
	if st.shows(words) {
		t.Error("it was declined, and is made again")
	}
	st.changed(book, func(s *policy.RulesState) { s.Pending = pending(1) })
	if !st.shows("The rule file was changed outside Countersign") {
		t.Error("what waits is not said any more either")
	}
}

func TestNothingIsOfferedInARunThatIgnoresRules(t *testing.T) {
	st, book := newStageWithRules(t)
	st.show(func(*worker.Snapshot) {})
	st.changed(book, func(s *policy.RulesState) { *s = fresh(); s.Mode = policy.ModeAsk })
	if st.shows("Starter rules can be switched on") {
		t.Error("it is")
	}
}
