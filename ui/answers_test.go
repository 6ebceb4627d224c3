package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
	"countersign/worker/policy"
)

// grantable makes items that can be approved for their session.
func grantable(views ...worker.View) func(*worker.Snapshot) {
	for i := range views {
		views[i].Grantable = true
	}
	return waitingItems(views...)
}

func readItem(id int, path string) worker.View {
	return view(id, "read", map[string]any{"path": path})
}

// fakeRulebook allows what a rule with "allow" in it says.
type fakeRulebook struct {
	fakeRules
	desk *fakeDesk
	try  error
	add  error
}

func (b *fakeRulebook) Try(_ worker.HoldID, rule string) (policy.Explanation, error) {
	if strings.Contains(rule, "allow") {
		return policy.Explanation{Verdict: policy.Allow, Reason: "rule allows it", RunsCode: true}, b.try
	}
	return policy.Explanation{Verdict: policy.Ask, Reason: "no rule allows make"}, b.try
}

func (b *fakeRulebook) Add(id worker.HoldID, rule string) error {
	if b.add != nil {
		return b.add
	}
	return b.desk.note("add for %d %s", id, rule)
}

func newStageWithRules(t *testing.T) (*stage, *fakeRulebook) {
	book := &fakeRulebook{}
	st := newStage(t, func(o *Options) { o.Rulebook = book })
	book.desk = st.desk
	return st, book
}

// write puts text into the field that has the focus.
func (st *stage) write(text string) {
	st.t.Helper()
	f, ok := st.window.win.Canvas().Focused().(*field)
	if !ok {
		st.t.Fatal("no field has the focus")
	}
	f.SetText(text)
}

// textIsThere reports whether a dialog has the text that is to be changed in it.
func (st *stage) textIsThere() bool {
	f, ok := st.window.win.Canvas().Focused().(*field)
	return ok && f.Text != "" && !f.Disabled()
}

func TestEveryAnswerCanBeGivenWithTheKeyboardAlone(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.show(grantable(execItem(1, "one"), readItem(2, "src/a.go"), execItem(3, "make"), execItem(4, "make"),
		execItem(5, "five"), execItem(6, "six"), execItem(7, "seven"), execItem(8, "eight")))
	next := func(id worker.HoldID) {
		t.Helper()
		st.until(fmt.Sprintf("item %d", id), func() bool { return st.window.queue.selected == id })
		st.pass(time.Second)
	}

	st.press(fyne.KeyReturn, ctrlShift)
	st.did("approve 1 digest1 for the session by operator")
	next(2)
	st.press(fyne.KeyG, ctrl)
	st.did("allow reads under src for 15m0s with 2 digest2 by operator")
	next(3)
	st.press(fyne.KeyE, ctrl)
	st.write("make -n")
	st.press(fyne.KeyReturn, ctrl)
	st.did(`approve 3 digest3 as {"command":"make -n"} by operator`)
	next(4)
	st.press(fyne.KeyL, ctrl)
	st.until("the rule", st.textIsThere)
	st.press(fyne.KeyT, ctrl)
	st.until("the test", func() bool { return st.shows("With this rule the item would still be asked for: no rule allows make") })
	st.write("allow make")
	st.press(fyne.KeyReturn, ctrl)
	st.did("add for 4 allow make")
	st.did("approve 4 digest4 by operator, always")
	next(5)
	st.press(fyne.KeyX, 0)
	st.press(fyne.KeyJ, 0)
	st.pass(time.Second)
	st.press(fyne.KeyX, 0)
	if got := st.window.queue.detail.approve.label; got != "Approve 2 marked" {
		t.Errorf("the button says %q", got)
	}
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 5 digest5 by operator, 2 at once")
	st.did("approve 6 digest6 by operator, 2 at once")
	next(7)
	st.press(fyne.KeyD, ctrl)
	st.write("not now")
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 7 digest7 "not now" by operator`)
	next(8)
	st.press(fyne.KeyR, ctrl)
	st.did("release 8")
}

func TestNoAnswerIsGivenToWhatNobodyCanHaveRead(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.Show()
	st.put(grantable(execItem(1, "one")))
	st.pass(readingTime - time.Millisecond)
	for _, n := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyG} {
		st.press(n, ctrl)
	}
	st.press(fyne.KeyReturn, ctrlShift)
	st.press(fyne.KeyX, 0)
	if len(st.window.queue.marked) > 0 {
		t.Error("a mark was made")
	}
	st.didNothing()
}

func TestAKeyHeldFromADialogDoesNotMeetTheNextItem(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyD, ctrl)
	st.press(fyne.KeyReturn, ctrl)
	st.did(`decline 1 digest1 "" by operator`)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
	for range 50 {
		st.pass(time.Second)
		st.repeat(fyne.KeyReturn, ctrl)
	}
	st.wgIdle()
	if got := st.desk.intents(); len(got) != 1 {
		t.Errorf("the held key decided: %q", got)
	}
}

func TestWhatIsAlwaysAskedCannotBeApprovedForASession(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	if !st.shows("Not for a session: always asked") || !st.window.queue.detail.session.disabled {
		t.Error("the button does not say why it is disabled")
	}
	st.press(fyne.KeyReturn, ctrlShift)
	if !st.shows("It can be approved once, not for a session") && !st.shows("it can be approved once, not for a session") {
		t.Errorf("the key does not say why it does nothing: %q", st.texts())
	}
	test.Tap(st.window.queue.detail.session)
	st.didNothing()
}

func TestReadsOfferTheirDirectoryFirst(t *testing.T) {
	for _, c := range []struct{ kind, path, dir, label string }{
		{"read", "src/deep/a.go", "src/deep", "Allow reads under src/deep, 15 min"},
		{"read", "README.md", ".", "Allow all reads here, 15 min"},
		{"read", "/src/a.go", "src", "Allow reads under src, 15 min"},
		{"read", "../../etc/passwd", "etc", "Allow reads under etc, 15 min"},
		{"list", "src", "src", "Allow reads under src, 15 min"},
		{"list", ".", ".", "Allow all reads here, 15 min"},
		{"list", "a\u202eb/./", "a\u202eb", "Allow reads under a‹U+202E›b, 15 min"},
	} {
		if got := readsUnder(c.kind, c.path); got != c.dir {
			t.Errorf("%s %s is below %q, want %q", c.kind, c.path, got, c.dir)
		}
		if got := readsLabel(c.dir); got != c.label {
			t.Errorf("%s %s says %q, want %q", c.kind, c.path, got, c.label)
		}
	}
	st := newStage(t)
	st.show(grantable(readItem(1, "src/a.go"), execItem(2, "ls")))
	d := st.window.queue.detail
	if !d.reads.Visible() || d.reads.Position().Y > 0 || d.reads.Position().X >= d.approve.Position().X && d.approve.Position().Y == 0 {
		t.Errorf("the button is at %v, Approve at %v", d.reads.Position(), d.approve.Position())
	}
	st.window.queue.selectItem(2)
	if d.reads.Visible() {
		t.Error("a command offers to allow reads")
	}
}

func TestAnEditedCommandKeepsEverythingElse(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(view(1, "exec", map[string]any{
		"command": "go test ./...", "cwd": "api", "env": map[string]any{"CI": "1"}, "timeout": 1000, "note": "<b>"})))
	st.press(fyne.KeyE, ctrl)
	if f := st.window.win.Canvas().Focused().(*field); f.Text != "go test ./..." {
		t.Errorf("the field holds %q", f.Text)
	}
	st.write("go test -run 'A<B' ./api && true")
	st.press(fyne.KeyReturn, ctrl)
	st.until("the approval", func() bool { return len(st.desk.intents()) > 0 })
	got := st.desk.intents()[0]
	payload, _, _ := strings.Cut(strings.TrimPrefix(got, "approve 1 digest1 as "), " by operator")
	var members map[string]any
	if err := json.Unmarshal([]byte(payload), &members); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	want := map[string]any{"command": "go test -run 'A<B' ./api && true", "cwd": "api",
		"env": map[string]any{"CI": "1"}, "timeout": 1000.0, "note": "<b>"}
	if fmt.Sprint(members) != fmt.Sprint(want) {
		t.Errorf("approved %v, want %v", members, want)
	}
}

func TestWhatTheEngineSaysOfAnEditStaysInTheDialog(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(view(1, "write", map[string]any{"path": "a.txt", "content": "one\n"}), execItem(2, "two")))
	st.press(fyne.KeyE, ctrl)
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool { return st.shows("Nothing was changed: go back and approve it as it is.") })
	st.desk.refuse = errors.New("the edited text is denied by built-in rule: no\x1b[2K")
	st.write("two\n")
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool { return st.shows("The edited text is denied by built-in rule: no‹ESC›[2K.") })
	if !st.window.sheets.open() {
		t.Fatal("the dialog is gone, and with it what was written")
	}
	st.desk.refuse = nil
	st.press(fyne.KeyReturn, ctrl)
	st.until("the dialog closes", func() bool { return !st.window.sheets.open() })
	st.did(`approve 1 digest1 as {"content":"two\n","path":"a.txt"} by operator`)
	st.until("the next item", func() bool { return st.window.queue.selected == 2 })
}

func TestWhatAFieldWouldNotShowIsNotEdited(t *testing.T) {
	for text, why := range map[string]string{
		strings.Repeat("\n", editableLines):  "2,001 lines",
		"ls\u202e":                           "changes the direction of writing",
		"ls\u200b":                           "invisible character",
		"ls\x1b[2K":                          "control character",
		"a\r\nb":                             "carriage return",
		"a\xff":                              "not text",
		"a\u00a0b":                           "unusual space",
		strings.Repeat("x", editableBytes+1): "a field here holds",
		strings.Repeat("x", editableLine+1):  "lines of",
	} {
		if got := uneditable(text); !strings.Contains(got, why) {
			t.Errorf("%.20q: %q, want %q", text, got, why)
		}
	}
	for _, text := range []string{"ls -l", "if a; then\n\tb   \nfi\n", "echo 'привет'", strings.Repeat("x\n", 1000)} {
		if got := uneditable(text); got != "" {
			t.Errorf("%.20q: %q", text, got)
		}
	}
	st := newStage(t)
	st.show(waitingItems(execItem(1, "ls \x1b[2K"), execItem(2, "ls")))
	st.press(fyne.KeyE, ctrl)
	if !st.shows("cannot be edited here: there is 1 control character in it") {
		t.Errorf("the window says %q", st.texts())
	}
	st.press(fyne.KeyEscape, 0)
	st.press(fyne.KeyJ, 0)
	st.pass(time.Second)
	st.press(fyne.KeyE, ctrl)
	st.write("ls\u202e")
	st.press(fyne.KeyReturn, ctrl)
	if !st.shows("Nothing was sent: there is 1 character that changes the direction of writing") {
		t.Errorf("the dialog says %q", st.texts())
	}
	st.didNothing()
}

func TestReadsAreNotEdited(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(readItem(1, "a")))
	st.press(fyne.KeyE, ctrl)
	if !st.shows("Read #1 cannot be edited") || st.window.queue.detail.editing.Visible() {
		t.Error("a read can be edited")
	}
}

func TestARuleThatDoesNotAllowTheItemIsNotSaved(t *testing.T) {
	st, book := newStageWithRules(t)
	st.show(waitingItems(execItem(1, "make")))
	st.press(fyne.KeyL, ctrl)
	st.until("the rule", st.textIsThere)
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool { return st.shows("Nothing was saved: with this rule the item would still be asked for") })
	book.try = errors.New("line 2: unknown key")
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool { return st.shows("Nothing was saved: line 2: unknown key.") })
	book.try, book.add = nil, errors.New("disk full")
	st.write("allow")
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool { return st.shows("Nothing was approved: disk full.") })
	st.didNothing()
	st.press(fyne.KeyEscape, 0)
	if st.window.sheets.open() {
		t.Error("Escape did not leave the dialog")
	}
	st.didNothing()
}

func TestARuleThatApprovedTheItemAtOnceIsNoTrouble(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.show(waitingItems(execItem(1, "make")))
	st.press(fyne.KeyL, ctrl)
	st.until("the rule", st.textIsThere)
	st.write("allow")
	st.desk.refuseApproval = worker.ErrDecided
	st.press(fyne.KeyReturn, ctrl)
	st.until("the dialog closes", func() bool { return !st.window.sheets.open() })
}

func TestWhereThereAreNoRulesNoneIsOffered(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "make")))
	st.press(fyne.KeyL, ctrl)
	if st.window.queue.detail.ever.Visible() {
		t.Error("the button is there")
	}
	st.didNothing()
}

func TestWhyThereCanBeNoRuleIsSaid(t *testing.T) {
	st, _ := newStageWithRules(t)
	st.desk.refuse = errors.New("no rule can allow this: it is a loop")
	st.show(waitingItems(execItem(1, "for i in a; do b; done")))
	st.press(fyne.KeyL, ctrl)
	st.until("words", func() bool { return st.shows("No rule can allow this: it is a loop.") })
}

func TestOnlyWhatWasReadWholeCanBeMarked(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, strings.Repeat("make\n", 300)+"make"), execItem(2, "two")))
	st.press(fyne.KeyX, 0)
	if len(st.window.queue.marked) > 0 || !st.shows("#1 cannot be marked") {
		t.Errorf("marked %v, and the window says %q", st.window.queue.marked, st.texts())
	}
	st.pass(time.Second)
	for range 40 {
		st.press(fyne.KeyPageDown, 0)
	}
	st.press(fyne.KeyX, 0)
	if st.window.queue.marked[1] != "digest1" || !st.shows("marked · ") {
		t.Errorf("marked %v after it was read", st.window.queue.marked)
	}
	st.press(fyne.KeyX, 0)
	if len(st.window.queue.marked) > 0 {
		t.Error("a second X did not take the mark away")
	}
}

func TestAMarkVanishesWithWhatWasMarked(t *testing.T) {
	st := newStage(t)
	one, two, three := execItem(1, "one"), execItem(2, "two"), execItem(3, "three")
	st.show(waitingItems(one, two, three))
	for range 3 {
		st.pass(time.Second)
		st.press(fyne.KeyX, 0)
		st.press(fyne.KeyJ, 0)
	}
	if got := st.window.queue.detail.approve.label; got != "Approve 3 marked" {
		t.Fatalf("the button says %q", got)
	}
	one.Digest = "another"
	two.Decision = worker.Approved
	st.put(waitingItems(one, two, three))
	if got := st.window.queue.marked; len(got) != 1 || got[3] == "" {
		t.Errorf("marked are %v, want 3 alone", got)
	}
	st.put(func(s *worker.Snapshot) { s.Waiting, s.Running = []worker.View{one}, []worker.View{asRunning(three)} })
	if got := st.window.queue.marked; len(got) != 0 {
		t.Errorf("marked are %v, want none", got)
	}
}

func TestApprovingSeveralSaysWhichWereRefused(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	for range 2 {
		st.pass(time.Second)
		st.press(fyne.KeyX, 0)
		st.press(fyne.KeyJ, 0)
	}
	st.desk.refuse = worker.ErrChanged
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.until("words", func() bool {
		return st.shows("#1: this is not what was shown") && st.shows("#2: this is not what was shown")
	})
}

func TestTheLargestTextThatCanBeEditedOpens(t *testing.T) {
	st := newStage(t)
	line := strings.Repeat("word ", editableLine/5)
	st.show(waitingItems(view(1, "write", map[string]any{"path": "a", "content": strings.Repeat(line+"\n", editableBytes/len(line)-1)}),
		view(2, "write", map[string]any{"path": "a", "content": strings.Repeat(strings.Repeat("x", editableBytes/editableLines-2)+"\n", editableLines-1)})))
	for range 2 {
		st.until("the text", func() bool { return st.window.queue.detail.ready })
		st.pass(time.Second)
		start := time.Now()
		st.press(fyne.KeyE, ctrl)
		opened := time.Since(start)
		if !st.window.sheets.open() {
			t.Fatal("the dialog did not open")
		}
		st.window.win.Canvas().Focused().TypedRune('y')
		t.Logf("opened in %v, a letter typed in %v", opened, time.Since(start)-opened)
		st.press(fyne.KeyEscape, 0)
		st.press(fyne.KeyJ, 0)
		st.pass(time.Second)
	}
}
