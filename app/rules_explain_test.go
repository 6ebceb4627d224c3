package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"countersign/app/config"
	"countersign/worker/api/wire"
)

// explain asks what the rules say, and returns the exit code with it.
func (b *bench) explain(c rulesCommand, kind string, payload any) (out string, exit int, err error) {
	b.t.Helper()
	var w bytes.Buffer
	err = c.explain(b.g, &w, kind, payload)
	var coded *exitError
	var invalid *config.Invalid
	switch {
	case errors.As(err, &coded):
		exit = coded.code
	case errors.As(err, &invalid):
		exit = exitUsage
	case err != nil:
		exit = exitFault
	}
	return w.String(), exit, err
}

func (b *bench) explainExec(command string) (out string, exit int) {
	b.t.Helper()
	out, exit, _ = b.explain(rulesCommand{}, wire.KindExec, wire.Exec{Command: command})
	return out, exit
}

const someRules = `
[[rule]]
name = "look"
kind = "exec"
allow = ["ls [-l] <path>...", "cat <path>..."]

[[rule]]
name = "build"
kind = "exec"
runs-code = true
allow = ["make"]
env = ["CI"]

[[rule]]
name = "no deploys"
kind = "exec"
deny = ["make deploy"]

[[rule]]
name = "sources"
kind = ["read", "list"]
allow-paths = ["**"]
deny-paths = ["**/.env"]

[[rule]]
name = "of one session"
kind = "write"
allow-paths = ["notes.txt"]
session = "s1"
connection = "one"
`

func TestExplainGivesTheVerdictItsRuleAndItsExitCode(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.connect("one")
	for command, want := range map[string]struct {
		exit  int
		lines []string
	}{
		"ls -l":                  {0, []string{"verdict         allow: rule \"look\" allows it", "by              rule \"look\" (", "work directory  " + b.work + " (of connection one)"}},
		"make":                   {0, []string{"mind            it runs what is in the work directory", "  allow  make\n         rule \"build\" allows it\n         it runs what is in"}},
		"ls && make x":           {exitAsk, []string{"verdict         ask: ", "  allow  ls\n", "  ask    make x\n"}},
		"ls; make deploy":        {exitDeny, []string{"verdict         deny: rule \"no deploys\" denies", "by              rule \"no deploys\""}},
		"echo $(make deploy)":    {exitDeny, []string{"\n  inside them\n    deny   make deploy\n           rule \"no deploys\"", "marks\n  cannot be understood: "}},
		"rm -r build":            {exitAsk, []string{"\n  removes whole directories: it uses rm"}},
		"cp x ../config/a":       {exitDeny, []string{"by              built-in rule"}},
		"ls 'a\x1b[2J\u202eb'\n": {exitAsk, []string{"‹ESC›[2J‹U+202E›"}},
	} {
		out, exit := b.explainExec(command)
		if exit != want.exit {
			t.Errorf("%q: exit %d", command, exit)
		}
		safe(t, command, out)
		for _, line := range want.lines {
			if !strings.Contains(out, line) {
				t.Errorf("%q: %q is not in:\n%s", command, line, out)
			}
		}
	}
}

func TestExplainJudgesWhatComesWithACommand(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	for _, c := range []struct {
		payload wire.Exec
		exit    int
		line    string
	}{
		{wire.Exec{Command: "make", Env: map[string]string{"CI": "1"}}, 0, "environment     CI=1"},
		{wire.Exec{Command: "make", Env: map[string]string{"X": "1"}}, exitAsk, "X is added to its environment"},
		{wire.Exec{Command: "ls", Cwd: ".."}, exitAsk, "in              .."},
	} {
		out, exit, _ := b.explain(rulesCommand{Workdir: b.work}, wire.KindExec, c.payload)
		if exit != c.exit || !strings.Contains(out, c.line) {
			t.Errorf("%+v: exit %d\n%s", c.payload, exit, out)
		}
	}
}

func TestExplainIsForFilesToo(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.connect("one")
	for _, c := range []struct {
		kind, path, session string
		exit                int
	}{
		{wire.KindRead, "main.go", "", 0}, {wire.KindRead, "a/.env", "", exitDeny}, {wire.KindList, "", "", 0}, {wire.KindRead, "../x", "", exitAsk},
		{wire.KindWrite, "notes.txt", "", exitAsk}, {wire.KindWrite, "notes.txt", "s1", 0}, {wire.KindWrite, "../data/x", "s1", exitDeny},
	} {
		out, exit, err := b.explain(rulesCommand{Explain: rulesExplain{Session: c.session}}, c.kind, wire.Read{Path: c.path})
		if c.kind == wire.KindWrite {
			out, exit, err = b.explain(rulesCommand{Explain: rulesExplain{Session: c.session}}, c.kind, wire.Write{Path: c.path})
		}
		if exit != c.exit {
			t.Errorf("%+v: exit %d, %v\n%s", c, exit, err, out)
		}
	}
}

func TestWithoutRulesExplainSaysThatEverythingIsAskedFor(t *testing.T) {
	b := newBench(t)
	out, exit := b.explainExec("ls")
	if exit != exitAsk || !strings.Contains(out, "none: there is no "+b.place.rulesFile()+"; everything is asked for") ||
		!strings.Contains(out, "(the current directory; --workdir names another)") {
		t.Errorf("exit %d\n%s", exit, out)
	}
	out, exit, _ = b.explain(rulesCommand{Workdir: b.work}, wire.KindExec, wire.Exec{Command: "cp x ../config/rules.toml"})
	if exit != exitDeny {
		t.Errorf("a built-in deny: exit %d\n%s", exit, out)
	}
}

func TestExplainSaysNothingOfRulesThatCannotBeUsed(t *testing.T) {
	b := newBench(t)
	b.rules("[[rule]]\n")
	if out, exit := b.explainExec("ls"); exit != exitFault || out != "" {
		t.Errorf("exit %d\n%s", exit, out)
	}
	out, exit, err := b.explain(rulesCommand{File: "no-such.toml"}, wire.KindExec, wire.Exec{Command: "ls"})
	if exit != exitFault || out != "" {
		t.Errorf("a file that was named and is not there: exit %d, %v\n%s", exit, err, out)
	}
	b.rules("")
	b.connect("one", "two")
	for _, c := range []rulesCommand{{}, {Connection: "three"}} {
		if out, exit, err := b.explain(c, wire.KindExec, wire.Exec{Command: "ls"}); exit != exitUsage || !strings.Contains(err.Error(), "one, two") {
			t.Errorf("exit %d, %v\n%s", exit, err, out)
		}
	}
	if out, exit, err := b.explain(rulesCommand{Connection: "one"}, wire.KindExec, wire.Exec{Command: " "}); exit != exitUsage {
		t.Errorf("no command: exit %d, %v\n%s", exit, err, out)
	}
}

func TestExplainAsJSONIsASCIIAndHasItAll(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.connect("one")
	c := rulesCommand{Explain: rulesExplain{JSON: true, Session: "s\u202e"}}
	out, exit, _ := b.explain(c, wire.KindExec, wire.Exec{Command: nasty + "; $(make deploy) > x"})
	if i := strings.IndexFunc(out, func(r rune) bool { return r < ' ' && r != '\n' || r > '~' }); i >= 0 {
		t.Errorf("printed %q", out[i:])
	}
	var got explainedJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if exit != exitDeny || got.Verdict != "deny" || got.Rule != "no deploys" || len(got.Parts) == 0 || len(got.Risks) == 0 || got.Kind != "exec" ||
		got.Connection != "one" || got.Session != "s\u202e" || got.WorkDir != b.work || got.File != b.place.rulesFile() || len(got.Hash) != 64 {
		t.Errorf("exit %d: %+v", exit, got)
	}
}

func TestExplainLooksForProgramsWithTheLoginEnvironment(t *testing.T) {
	b := newBench(t)
	b.rules(someRules)
	b.login("/nowhere")
	out, exit := b.explainExec("ls")
	if exit != exitAsk || !strings.Contains(out, "the program ls cannot be used") {
		t.Errorf("exit %d\n%s", exit, out)
	}
}

func TestExplainSaysOnWhosePATHProgramsAreLookedFor(t *testing.T) {
	b := newBench(t)
	b.login("/only/here:/and/there")
	if out, _ := b.explainExec("ls"); !strings.Contains(out, "\nprograms        looked for on the PATH of your login shell, which commands get too: /only/here:/and/there\n") {
		t.Error(out)
	}
}
