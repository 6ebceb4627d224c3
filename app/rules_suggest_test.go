package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// past writes a history.
type pastWork struct {
	b     *bench
	store *store.Store
	n     int
}

func (b *bench) past() *pastWork {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), b.place.database())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return &pastWork{b: b, store: s}
}

// approved puts work into the history, as often as said, decided by someone.
func (p *pastWork) approved(often int, by, kind string, payload any) {
	p.b.t.Helper()
	p.decided(often, worker.Facts{Decision: worker.Approved, DecidedBy: by}, kind, payload, func(*worker.Hold) {})
}

func (p *pastWork) decided(often int, facts worker.Facts, kind string, payload any, change func(*worker.Hold)) {
	p.b.t.Helper()
	text, err := json.Marshal(payload)
	if err != nil {
		p.b.t.Fatal(err)
	}
	facts.Acceptance, facts.Execution, facts.Delivery = worker.NotAsked, worker.NotStarted, worker.NothingToDeliver
	for range often {
		p.n++
		at := time.Date(2030, 1, 1, 0, p.n, 0, 0, time.Local)
		h := worker.Hold{
			Connection: "one", Origin: "http://127.0.0.1:3000", WorkerID: "w", Digest: "d", WorkDir: p.b.work, OpenedAt: at, Facts: facts,
			Item: worker.Item{ID: fmt.Sprint("work_", p.n), SessionID: "s1", Kind: kind, Payload: text, CreatedAt: at, ClaimedAt: at, ClaimStatus: "claimed"},
		}
		change(&h)
		if _, err := p.store.Open(p.b.t.Context(), h, ""); err != nil {
			p.b.t.Fatal(err)
		}
	}
}

func (b *bench) suggest(c rulesCommand) string {
	b.t.Helper()
	if c.Suggest.Min == 0 {
		c.Suggest.Min = 3
	}
	var w bytes.Buffer
	if err := c.suggest(b.g, &w); err != nil {
		b.t.Fatal(err)
	}
	safe(b.t, "suggest", w.String())
	return w.String()
}

// loaded reads the rules with what was suggested added to them.
func (b *bench) loaded(rules, suggested string) *policy.Rules {
	b.t.Helper()
	r, err := policy.Parse("rules.toml", []byte(rules+suggested), policy.Context{Root: b.work})
	if err != nil {
		b.t.Fatalf("%v\n%s", err, suggested)
	}
	return r
}

func exec(command string) wire.Exec { return wire.Exec{Command: command} }

func TestWhatWasApprovedByHandAgainAndAgainIsSuggested(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.connect("one")
	p := b.past()
	p.approved(3, "operator", wire.KindExec, exec("ls --color=never"))
	p.approved(2, "operator", wire.KindExec, exec("make 'one two' && ls"))
	p.approved(2, control.ByCommandLine, wire.KindExec, exec("make 'one two' && ls"))
	p.approved(3, "operator", wire.KindWrite, wire.Write{Path: "out/notes.txt", Content: "x"})
	out := b.suggest(rulesCommand{})
	r := b.loaded(someRules, out)
	for kind, item := range map[string]policy.Item{
		"a command":    {Task: execute.Task{Kind: "exec", Command: "ls --color=never"}, Connection: "one"},
		"several":      {Task: execute.Task{Kind: "exec", Command: "make 'one two' && ls"}, Connection: "one"},
		"a file":       {Task: execute.Task{Kind: "write", Path: "out/notes.txt"}, Connection: "one"},
		"a later form": {Task: execute.Task{Kind: "exec", Command: "make 'one two'"}, Connection: "one"},
	} {
		if e := r.Explain(item); e.Verdict != policy.Allow {
			t.Errorf("%s is %s: %s", kind, e.Verdict, e.Reason)
		}
		item.Connection = "two"
		if e := r.Explain(item); e.Verdict != policy.Ask {
			t.Errorf("%s of another connection is %s", kind, e.Verdict)
		}
	}
	most, fewer := strings.Index(out, "# approved by hand 4 times, last on 2030-01-01 00:07:00: make 'one two' && ls\n"), strings.Index(out, "# approved by hand 3 times")
	if most < 0 || fewer < most {
		t.Errorf("not the most often approved first:\n%s", out)
	}
	for _, want := range []string{"# mind: it runs what is in the work directory", "# mind: anything may be written there then", "runs-code = true\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	b.rules(someRules + out)
	if again := b.suggest(rulesCommand{}); !strings.HasPrefix(again, "# Nothing to suggest for one in "+b.work) {
		t.Errorf("when they are in force:\n%s", again)
	}
}

func TestWhatNoRuleMayAllowIsNotSuggested(t *testing.T) {
	b := newBench(t)
	const rules = someRules + `
[[rule]]
name = "ask"
kind = "exec"
ask = ["make release"]

[[test]]
command = "make all"
connection = "one"
expect = "ask"
`
	b.rules(rules)
	b.connect("one")
	p := b.past()
	for _, command := range []string{
		"ls $(make)", "./configure", "LD_PRELOAD=x ls", "eval ls", // cannot be analysed, or Narrow refuses
		"ls",           // allowed
		"make deploy",  // denied
		"make release", // an ask rule asks
		"make all",     // a test of the file says ask
		"make >out",    // writes what no rule allows
		"no-such-program-anywhere x",
	} {
		p.approved(5, "operator", wire.KindExec, exec(command))
	}
	p.approved(5, "operator", wire.KindExec, wire.Exec{Command: "make sub", Cwd: "../elsewhere"})
	p.approved(5, "operator", wire.KindWrite, wire.Write{Path: ".git/config", Content: "x"})
	p.approved(5, "operator", wire.KindRead, wire.Read{Path: "a\x1b*"})
	p.approved(5, "operator", wire.KindCustomTool, map[string]string{"tool_name": "x"})
	out := b.suggest(rulesCommand{})
	if !strings.HasPrefix(out, "# Nothing to suggest") || !strings.Contains(out, "# Left out: ") || strings.Contains(out, "[[rule]]") {
		t.Errorf("suggested:\n%s", out)
	}
	b.loaded(rules, out)
}

func TestOnlyWhatTheOperatorSawAndApprovedHereCounts(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.connect("one")
	p := b.past()
	make := exec("make once")
	p.approved(2, "operator", wire.KindExec, make)
	for _, by := range []string{"approve all", `rule "x" (0123)`, "grant ABC", "operator, 5 lines unseen", "operator, edited", "operator's friend"} {
		p.approved(3, by, wire.KindExec, make)
	}
	p.decided(3, worker.Facts{Decision: worker.Declined, DecidedBy: "operator"}, wire.KindExec, make, func(*worker.Hold) {})
	by := worker.Facts{Decision: worker.Approved, DecidedBy: "operator"}
	p.decided(3, by, wire.KindExec, make, func(h *worker.Hold) { h.WorkDir = "/elsewhere" })
	p.decided(3, by, wire.KindExec, make, func(h *worker.Hold) { h.Connection = "two" })
	p.approved(2, "operator", wire.KindExec, wire.Exec{Command: "make once", Cwd: "sub"})
	p.approved(1, "operator", wire.KindExec, wire.Exec{Command: "make once", Env: map[string]string{"CI": "1"}})
	p.approved(1, "operator", wire.KindExec, exec("make  once"))
	if out := b.suggest(rulesCommand{}); strings.Contains(out, "[[rule]]") {
		t.Errorf("suggested:\n%s", out)
	}
	if out := b.suggest(rulesCommand{Suggest: rulesSuggest{Min: 2}}); strings.Count(out, "[[rule]]") != 2 || strings.Count(out, `cwd = "sub"`) != 1 || !strings.Contains(out, "approved by hand 2 times") {
		t.Errorf("--min 2 suggested:\n%s", out)
	}
	if out := b.suggest(rulesCommand{Suggest: rulesSuggest{Min: 2, Since: "2030-01-02"}}); strings.Contains(out, "[[rule]]") {
		t.Errorf("--since suggested:\n%s", out)
	}
}

func TestWhatAnAgentWroteIsSuggestedSafely(t *testing.T) {
	b := newBench(t)
	b.connect("one")
	p := b.past()
	words := []string{"ls '\u202egnp.exe' \"\u3164\u200b\U000e0001\"", "ls 'allow = [\"*\"]'", "ls '\u05d0\u0301'\n\n[[rule]]", "ls 'x' \\\\"}
	for _, w := range words {
		p.approved(3, "operator", wire.KindExec, exec(w))
	}
	out := b.suggest(rulesCommand{})
	r := b.loaded("", out)
	if n := strings.Count("\n"+out, "\n[[rule]]"); n != len(r.Counts()) || n < 3 {
		t.Errorf("%d rules are seen, and %d are there:\n%s", n, len(r.Counts()), out)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if i := strings.IndexFunc(line, func(r rune) bool { return r > '~' }); i >= 0 && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "name = ") {
			t.Errorf("not ASCII: %q", line)
		}
	}
}

func TestLargeWorkThatOnlyBeginsTheSameIsNotTheSame(t *testing.T) {
	b := newBench(t)
	b.connect("one")
	p := b.past()
	for i := range 3 {
		p.approved(1, "operator", wire.KindWrite, wire.Write{Path: "big.txt", Content: strings.Repeat("x", 100_000) + fmt.Sprint(i)})
	}
	if out := b.suggest(rulesCommand{}); strings.Contains(out, "[[rule]]") {
		t.Errorf("suggested:\n%s", out)
	}
}

func TestARuleIsNotSuggestedForAllConnectionsAtOnce(t *testing.T) {
	b := newBench(t)
	b.connect("one", "two")
	b.past()
	c := rulesCommand{Workdir: b.work, Suggest: rulesSuggest{Min: 3}}
	if err := c.suggest(b.g, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "--connection") {
		t.Error(err)
	}
}

func TestSuggestedRulesHaveNamesOfTheirOwn(t *testing.T) {
	b := newBench(t)
	const rules = "[[rule]]\nname = \"often approved: ls -a\"\nkind = \"exec\"\nallow = \"pwd\"\n"
	b.rules(rules)
	p := b.past()
	p.approved(3, "operator", wire.KindExec, exec("ls -a"))
	out := b.suggest(rulesCommand{Workdir: b.work})
	if b.loaded(rules, out); !strings.Contains(out, `name = "often approved: ls -a (2)"`) {
		t.Errorf("suggested:\n%s", out)
	}
}

func TestAMinimumThatMeansNothingIsRefused(t *testing.T) {
	b := newBench(t)
	for _, c := range []rulesSuggest{{Min: 0}, {Min: 101}, {Min: 3, Since: "yesterday"}} {
		if err := (&rulesCommand{Suggest: c}).suggest(b.g, new(bytes.Buffer)); err == nil {
			t.Errorf("%+v", c)
		}
	}
}

// A trial with flags leaves no configured connection behind, only its history.
func TestWhereNothingIsSuggestedTheDirectoriesOfTheHistoryAreNamed(t *testing.T) {
	b := newBench(t)
	p := b.past()
	at := func(dir string) func(*worker.Hold) { return func(h *worker.Hold) { h.WorkDir = dir } }
	byHand := worker.Facts{Decision: worker.Approved, DecidedBy: "operator"}
	p.decided(1, worker.Facts{Decision: worker.Approved, DecidedBy: `rule "x"`}, wire.KindExec, exec("make"), at("/by/rule"))
	if out := b.suggest(rulesCommand{}); strings.Contains(out, "--workdir") {
		t.Errorf("without a history: %s", out)
	}
	p.decided(3, byHand, wire.KindExec, exec("make"), at("/srv/a b"))
	p.decided(1, byHand, wire.KindExec, exec("make"), at("/srv/c\u202e\n[[rule]]"))
	out := b.suggest(rulesCommand{})
	b.loaded("", out)
	for _, want := range []string{"# The history has what was approved by hand in other directories. To see what can be suggested for these:\n",
		"\n#   countersign --data-dir " + b.place.data + " --config-dir " + b.place.config + " rules suggest --workdir '/srv/a b'\n", "/srv/c‹U+202E›"} {
		if !strings.Contains(out, want) || strings.Contains(out, "/by/rule") {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	for i := range 10 {
		p.decided(1, byHand, wire.KindExec, exec("make"), at(fmt.Sprint("/srv/", i)))
	}
	if out := b.suggest(rulesCommand{}); strings.Count(out, "--workdir") != maxElsewhere || !strings.Contains(out, "\n# and 7 more\n") {
		t.Errorf("of many directories:\n%s", out)
	}
	p.approved(1, "operator", wire.KindExec, exec("make"))
	if out := b.suggest(rulesCommand{Workdir: b.work}); strings.Count(out, "--workdir") != 0 {
		t.Errorf("where there is a history of this one:\n%s", out)
	}
}

func TestTheDirectoryOfTheOnlyConnectionThatRunsIsTheOneThatIsMeant(t *testing.T) {
	b := newBench(t)
	b.past().approved(3, "operator", wire.KindExec, exec("make"))
	b.runs(policy.RulesState{File: b.place.rulesFile()}, worker.ConnectionView{Name: "one", Origin: "http://127.0.0.1:3000", WorkDir: b.work})
	if out := b.suggest(rulesCommand{}); !strings.Contains(out, "# For one in "+b.work+".") || !strings.Contains(out, `connection = "one"`) {
		t.Errorf("suggested %s", out)
	}
	if out, _ := b.explainExec("ls"); !strings.Contains(out, "work directory  "+b.work+" (of connection one)") {
		t.Errorf("explained %s", out)
	}
}

func TestOneOfSeveralThatRunHasToBeNamed(t *testing.T) {
	b := newBench(t)
	b.past()
	b.runs(policy.RulesState{}, worker.ConnectionView{Name: "one", WorkDir: b.work}, worker.ConnectionView{Name: "two", WorkDir: b.work})
	for _, c := range []rulesCommand{{Suggest: rulesSuggest{Min: 3}}, {Workdir: b.work, Suggest: rulesSuggest{Min: 3}}} {
		err := c.suggest(b.g, io.Discard)
		var bad *config.Invalid
		if !errors.As(err, &bad) || bad.Name != "--connection" || !strings.Contains(bad.Error(), "the Countersign that runs has several connections; expected one of one, two") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
