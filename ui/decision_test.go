package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// rules that the explanations of these tests are made with.
const someRules = `
[[rule]]
name = "look around"
kind = "exec"
allow = ["ls [-l -a] <path>...", "cat <path>..."]

[[rule]]
name = "run the tests"
kind = "exec"
runs-code = true
allow = ["go test [-v] <path>..."]

[[rule]]
name = "no deploys"
kind = "exec"
deny = ["kubectl"]
`

// explained gives an item the explanation that the policy has of it.
func explained(t *testing.T, v worker.View) worker.View {
	t.Helper()
	root := t.TempDir()
	rules, err := policy.Parse("rules.toml", []byte(someRules), policy.Context{
		Root: root, SearchPath: "/usr/bin:/bin", Now: time.Now,
		LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	task, err := execute.Decode(v.Item.Kind, v.Item.Payload)
	if err != nil {
		t.Fatal(err)
	}
	v.Shown.Explanation = rules.Explain(policy.Item{Task: task, Connection: v.Connection, Session: v.Item.SessionID})
	v.Grantable = v.Shown.Explanation.Grantable()
	return v
}

// linesOf is the text of lines, with the verdicts that stand beside them.
func linesOf(lines []textLine) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Verdict != "" {
			b.WriteString(string(l.Verdict) + " ")
		}
		b.WriteString(strings.Repeat(" ", l.Indent) + l.Sign + l.Text + "\n")
	}
	return b.String()
}

func (st *stage) whyText() string { return linesOf(st.window.queue.detail.why.lines) }

func TestEachPartOfACommandHasItsVerdictAndItsReason(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(explained(t, execItem(1, "cd src; ls -l && kubectl get pods; for f in $(cat list); do rm $f; done"))))
	got := st.whyText()
	for _, want := range []string{
		"Denied by rule \"no deploys\"",
		"deny rule \"no deploys\" denies",
		"deny kubectl get pods\n",
		"ask     cat list\n      inside: it is found inside another part\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	for _, want := range []string{"deny", "ask"} {
		if !st.shows(want) {
			t.Errorf("%q is not drawn in words", want)
		}
	}
}

func TestAPartThatRunsCodeSaysSo(t *testing.T) {
	st := newStage(t)
	v := execItem(1, "go test -v && make")
	v.Shown.Explanation = policy.Explanation{Verdict: policy.Ask, Reason: "no rule allows make", Parts: []policy.Part{
		{Text: "go test -v", Verdict: policy.Allow, Reason: "rule \"tests\" allows it", Rule: "tests", RunsCode: true},
		{Text: "make", Verdict: policy.Ask, Reason: "no rule allows make"},
	}}
	st.show(waitingItems(v))
	want := "Why it is asked\nask no rule allows make\nallow go test -v\n" +
		"  rule \"tests\" allows it – runs code from the work directory\nask make\n  no rule allows make\n"
	if got := st.whyText(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWhatOnePartSaysIsNotSaidTwice(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(explained(t, execItem(1, "make test"))))
	if got := st.whyText(); got != "Why it is asked\nask no rule allows make\n" {
		t.Errorf("got\n%s", got)
	}
	st.put(waitingItems(explained(t, view(2, "read", map[string]any{"path": "src/main.go"}))))
	if got := st.whyText(); got != "Why it is asked\nask no rule allows to read \"src/main.go\"\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestReasonsThatChangeWhileAnItemWaitsAreDrawnAnew(t *testing.T) {
	st := newStage(t)
	v := explained(t, execItem(1, "make test"))
	st.show(waitingItems(v))
	v.Shown.Explanation.Reason = "rule \"careful\" asks"
	st.put(waitingItems(v))
	if got := st.whyText(); !strings.Contains(got, "careful") {
		t.Errorf("got\n%s", got)
	}
}

func TestWhatWasDecidedSaysByWhat(t *testing.T) {
	st := newStage(t)
	v := explained(t, execItem(1, "ls src/*"))
	asked := asRunning(v)
	asked.DecidedBy = byOperator
	v = explained(t, execItem(2, "ls"))
	byRule := asRunning(v)
	byRule.DecidedBy = v.Shown.Explanation.By
	st.show(func(s *worker.Snapshot) { s.Running = []worker.View{asked, byRule} })
	st.window.queue.selectItem(1)
	if got := st.whyText(); !strings.HasPrefix(got, "Why it was asked\nask ") {
		t.Errorf("an item that the operator decided says\n%s", got)
	}
	st.window.queue.selectItem(2)
	if got := st.whyText(); !strings.HasPrefix(got, "Allowed by rule \"look around\" (") {
		t.Errorf("an item that a rule decided says\n%s", got)
	}
	granted := byRule
	granted.ID, granted.Shown.Explanation.By = 3, "grant ABCDEFGH"
	granted.Shown.Explanation.Rule = ""
	granted.Shown.Explanation.Reason = "granted for this session at 14:00:00"
	st.put(func(s *worker.Snapshot) { s.Running = append(s.Running, granted) })
	st.window.queue.selectItem(3)
	if got := st.whyText(); !strings.HasPrefix(got, "Allowed by a grant\nallow granted for this session at 14:00:00\n") {
		t.Errorf("an item that a grant decided says\n%s", got)
	}
}

func TestRisksAreBadgesWithWordsAndTheirReasonsAreBelow(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(explained(t, execItem(1, "sudo rm -r old > log"))))
	for _, want := range []string{"acts as another user", "removes whole directories", "writes to a file"} {
		if !st.shows(want) {
			t.Errorf("no badge says %q: %q", want, st.window.queue.detail.badges.words)
		}
	}
	if got := st.whyText(); !strings.Contains(got, "Acts as another user: it uses sudo\n") {
		t.Errorf("the reasons are\n%s", got)
	}
	st.put(waitingItems(explained(t, execItem(2, "ls"))))
	if st.window.queue.detail.badges.Visible() {
		t.Errorf("ls has badges: %q", st.window.queue.detail.badges.words)
	}
}

func TestWhatHidesInATextIsABadge(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(explained(t, execItem(1, "echo '\u202e\u200b\u200b c\u0430t'"))))
	for _, want := range []string{"1 character that changes the direction of writing", "2 invisible characters", "1 word mixing Latin and Cyrillic"} {
		if !st.shows(want) {
			t.Errorf("no badge says %q: %q", want, st.window.queue.detail.badges.words)
		}
	}
	st.put(waitingItems(view(2, "write", map[string]any{"path": "a\u200bb", "content": "x\u200by\r\n"})))
	if got := st.window.queue.detail.badges.words; len(got) != 1 || got[0] != "2 invisible characters" {
		t.Errorf("the badges of a write are %q", got)
	}
}

func TestNothingPushesTheCommandOffTheScreen(t *testing.T) {
	st := newStage(t)
	v := explained(t, execItem(1, strings.Repeat("sudo rm -r a > /dev/sda && ", 300)+"curl x | sh"))
	v.Changed = true
	v.Steps = append(v.Steps, worker.Entry{Step: worker.StepChanged, Reason: strings.Repeat("many words ", 200)})
	st.show(waitingItems(v))
	for _, size := range []fyne.Size{{Width: 1180, Height: 760}, {Width: 800, Height: 500}} {
		st.window.win.Resize(size)
		st.wgIdle()
		d := st.window.queue.detail
		at := st.App.Driver().AbsolutePositionForObject(d.doc)
		if h := d.doc.Size().Height; h < 3*d.doc.rowHeight() || at.Y+h > size.Height {
			t.Errorf("in %v the command has %.0f, from %.0f on", size, h, at.Y)
		}
		buttons := st.App.Driver().AbsolutePositionForObject(d.release)
		if end := buttons.Y + d.release.Size().Height; end > size.Height {
			t.Errorf("in %v the buttons end at %.0f", size, end)
		}
		st.picture(fmt.Sprintf("crowded-%.0f", size.Width))
	}
}

func TestTheReasonsScrollWithTheKeyboard(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(explained(t, execItem(1, strings.Repeat("make && ", 300)+"make"))))
	d := st.window.queue.detail
	for range 200 {
		st.press(fyne.KeyPageDown, 0)
	}
	if !d.doc.atEnd() || !d.why.atEnd() {
		t.Errorf("Page Down came to the end of the command: %v, of the reasons: %v", d.doc.atEnd(), d.why.atEnd())
	}
	for range 200 {
		st.press(fyne.KeyPageUp, 0)
	}
	if d.doc.GetScrollOffset() != 0 || d.why.GetScrollOffset() != 0 {
		t.Error("Page Up did not come back to the beginning")
	}
}

func TestAnItemThatChangedSinceItWasShownSaysWhatChangedAndThatNothingRan(t *testing.T) {
	st := newStage(t)
	v := explained(t, execItem(1, "sh tools/audit.sh"))
	st.show(waitingItems(v))
	v.Changed, v.Word, v.Digest = true, worker.WordChanged, "digest1b"
	v.Steps = append(v.Steps, worker.Entry{Step: worker.StepChanged,
		Reason: "what it names changed since it was shown; nothing ran: tools/audit.sh\u202e"})
	st.put(waitingItems(v))
	for _, want := range []string{"Approved, but not run", "nothing ran: tools/audit.sh‹U+202E›", worker.WordChanged} {
		if !st.shows(want) {
			t.Errorf("%q is not shown: %q", want, st.texts())
		}
	}
	st.put(waitingItems(execItem(2, "ls")))
	if st.shows("Approved, but not run") {
		t.Error("the banner stays for another item")
	}
}
