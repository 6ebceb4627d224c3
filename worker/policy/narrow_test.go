package policy

import (
	"strings"
	"testing"

	"countersign/worker/execute"
)

func TestANarrowRuleAllowsItsItemAndNoOther(t *testing.T) {
	const files = "[[rule]]\nname = \"sources\"\nkind = \"read\"\nallow-paths = [\"**\"]\n"
	ctx := testContext(t)
	for c, others := range map[string][]string{
		"make deploy":                      {"make", "make deploy x", "make -n deploy"},
		"other -x 'a b' \"it's\" <main.go": {"other -x 'a  b' \"it's\"", "other -x", "other a -x"},
		"cd src && go test ./... | other":  {"cd src && go test ./..", "go test", "other x"},
		"CI=1 other '[x]' '<path>' '*'":    {"CI=1 other x main.go x", "X=1 other '[x]' '<path>' '*'"},
		"git commit -m 'one two'":          {"git commit -m one", "git commit"},
		"other -- -x ''":                   {"other -- -x", "other -x ''"},
		"sudo other":                       {"sudo", "sudo x"},
	} {
		item := inSession(command(c), "s")
		if e := rulesOf(t, ctx, files).Explain(item); e.Verdict != Ask {
			t.Fatalf("%q is %s before", c, e.Verdict)
		}
		text, err := Narrow("narrow", item)
		if err != nil {
			t.Errorf("%q: %v", c, err)
			continue
		}
		r, err := Parse("rules.toml", []byte(files+text), ctx)
		if err != nil {
			t.Errorf("%q: %v\n%s", c, err, text)
			continue
		}
		if e := r.Explain(item); e.Verdict != Allow {
			t.Errorf("%q is %s after: %s\n%s", c, e.Verdict, e.Reason, text)
		}
		for _, o := range others {
			if e := r.Explain(inSession(command(o), "s")); e.Verdict != Ask {
				t.Errorf("%q is %s too\n%s", o, e.Verdict, text)
			}
		}
	}
}

func TestANarrowRuleIsForTheDirectoryItWasMadeIn(t *testing.T) {
	ctx := testContext(t)
	in := func(cwd, text string) Item {
		i := command(text)
		i.Cwd = cwd
		return i
	}
	for _, c := range []struct {
		asked  Item
		others []Item
	}{
		{command("sh run.sh"), []Item{command("cd docs && sh run.sh"), in("docs", "sh run.sh"), command("cd docs/../src && sh run.sh || true")}},
		{command("cd sub && sh run.sh"), []Item{command("sh run.sh"), command("cd docs && sh run.sh"), command("cd sub/deep && sh run.sh"), in("sub/deep", "sh run.sh"), command("cd sub && cd deep && sh run.sh")}},
		{command("cd " + ctx.Root + "/sub && sh run.sh"), []Item{command("sh run.sh"), in("docs", "sh run.sh"), command("cd sub/deep && sh run.sh")}},
		{in("sub", "cd deep && sh run.sh"), []Item{in("sub", "sh run.sh"), command("sh run.sh"), command("cd docs && sh run.sh")}},
		{in("/sub/", "sh run.sh"), []Item{command("sh run.sh"), in("docs", "sh run.sh"), in("sub/deep", "sh run.sh")}},
		{command("cd sub && cd .. && sh run.sh | other"), []Item{in("sub", "sh run.sh"), in("sub", "other")}},
	} {
		text, err := Narrow("n", c.asked)
		if err != nil {
			t.Errorf("%q in %q: %v", c.asked.Command, c.asked.Cwd, err)
			continue
		}
		r := rulesOf(t, ctx, text)
		if e := r.Explain(c.asked); e.Verdict != Allow {
			t.Errorf("%q in %q is %s after: %s\n%s", c.asked.Command, c.asked.Cwd, e.Verdict, e.Reason, text)
		}
		for _, o := range c.others {
			if e := r.Explain(o); e.Verdict == Allow {
				t.Errorf("always for %q in %q also allows %q in %q:\n%s", c.asked.Command, c.asked.Cwd, o.Command, o.Cwd, text)
			}
		}
	}
	for _, i := range []Item{command("cd sub; sh run.sh"), command("cd sub && sh run.sh; sh x.sh"), command("sh x.sh && cd sub && sh run.sh"), command("cd .. && sh run.sh"), in("..", "sh run.sh"), command("cd - && sh run.sh"), command("cd && sh run.sh"), command("cd -P sub && sh run.sh"), command("cd sub | sh run.sh"), command("cd sub || sh run.sh")} {
		if text, err := Narrow("n", i); err == nil || !strings.HasPrefix(err.Error(), "no rule can allow this: ") {
			t.Errorf("%q in %q: %v\n%s", i.Command, i.Cwd, err, text)
		}
	}
}

func TestANarrowRuleForAPathIsForThatPath(t *testing.T) {
	ctx := testContext(t)
	item := Item{Task: execute.Task{Kind: "write", Path: "/src/new.go"}}
	text, err := Narrow("n", item)
	if err != nil {
		t.Fatal(err)
	}
	r := rulesOf(t, ctx, text)
	if e := r.Explain(item); e.Verdict != Allow {
		t.Errorf("%s\n%s", e.Reason, text)
	}
	item.Path = "src/other.go"
	if e := r.Explain(item); e.Verdict != Ask {
		t.Errorf("another path is %s", e.Verdict)
	}
}

func TestWhatIsNotUnderstoodHasNoNarrowRule(t *testing.T) {
	for _, c := range []string{"ls $(id)", "eval ls", "./x", "LD_PRELOAD=x ls", "ls 'a\nb'", "cd x && cd y", "'a b' c"} {
		if text, err := Narrow("n", command(c)); err == nil || !strings.HasPrefix(err.Error(), "no rule can allow") {
			t.Errorf("%q: %v\n%s", c, err, text)
		}
	}
	if _, err := Narrow("n", Item{Task: execute.Task{Kind: "read", Path: "a*"}}); err == nil {
		t.Error("a path with a wildcard")
	}
}
