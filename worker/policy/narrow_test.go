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
