package policy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func shippedNames(t *testing.T) []string {
	t.Helper()
	infos, err := RulesIn(shipped(t, "starter", "developer"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range infos {
		names = append(names, r.Name)
	}
	return names
}

func choose(t *testing.T, before string, names ...string) string {
	t.Helper()
	text, err := Choose(shipped(t, "starter", "developer"), names, before)
	if err != nil {
		t.Fatalf("%q: %v", names, err)
	}
	return text
}

func TestEveryShippedRuleCanBeSwitchedOnAloneInPairsAndTogether(t *testing.T) {
	ctx, all := testContext(t), shippedNames(t)
	if len(all) < 10 {
		t.Fatalf("only %q", all)
	}
	sets := [][]string{all}
	for i, a := range all {
		sets = append(sets, []string{a})
		for _, b := range all[i+1:] {
			sets = append(sets, []string{a, b})
		}
	}
	for _, names := range sets {
		text := choose(t, "", names...)
		rules, err := Parse("rules.toml", []byte(text), ctx)
		if err != nil {
			t.Fatalf("%q: %v", names, err)
		}
		var got []string
		for _, c := range rules.Counts() {
			got = append(got, c.Rule)
		}
		if !slices.Equal(got, names) {
			t.Errorf("of %q these came: %q", names, got)
		}
	}
}

func TestTheTestsThatConcernAChosenRuleComeWithIt(t *testing.T) {
	tests := func(text string) int { return strings.Count(text, "[[test]]") }
	if all := shipped(t, "starter", "developer"); tests(choose(t, "", shippedNames(t)...)) != tests(string(all)) {
		t.Error("with every rule chosen a test is missing")
	}
	for name, want := range map[string]struct{ with, without []string }{
		"look around":         {[]string{"ls && rm -rf ~", "cat .env", "cat ../../etc/passwd"}, []string{"git status", "go version", "go test", "1,20p' main.go"}},
		"sources":             {[]string{"deploy/.env.production", `write = "src/main.go"`}, []string{"ls", "git"}},
		"make: known targets": {[]string{"make SHELL=/tmp/x", "make -j4 test"}, []string{"go test", "ls"}},
	} {
		text := choose(t, "", name)
		at := strings.Index(text, "[[test]]")
		if at < 0 {
			t.Fatalf("%s has no test: %s", name, text)
		}
		for _, w := range want.with {
			if !strings.Contains(text[at:], w) {
				t.Errorf("%s: the test %q is missing in %s", name, w, text[at:])
			}
		}
		for _, w := range want.without {
			if strings.Contains(text[at:], w) {
				t.Errorf("%s: the test %q came with it", name, w)
			}
		}
	}
}

func TestAChosenRuleKeepsItsCommentsAndTakesNoOthers(t *testing.T) {
	text := choose(t, "", "search everything")
	if !strings.Contains(text, "# These read every file below a directory") || strings.Contains(text, "# Developer rules") ||
		!strings.HasPrefix(text, "[[rule]]\nname = \"search everything\"\n") {
		t.Error(text)
	}
	if text := choose(t, "", "git, looking only"); strings.Contains(text, "# What these rules say") {
		t.Error("a comment about the tests came with a rule")
	}
}

// A test that would stop an addition because of what the operator's own rules say
// already is not the addition's fault; one that the addition breaks is.
func TestRulesThatWereThereBeforeDecideWhichTestsCome(t *testing.T) {
	const readsSecrets = "[[rule]]\nname = \"mine\"\nkind = \"read\"\nallow-paths = [\"**\"]\n"
	const noGit = "[[rule]]\nname = \"no git\"\nkind = \"exec\"\ndeny = [\"git\"]\n"
	text := choose(t, noGit, "look around", "git, looking only")
	if strings.Contains(text, "git status --short | head") {
		t.Error("what is denied is tested to be allowed")
	}
	if _, err := Parse("r", []byte(noGit+text), testContext(t)); err != nil {
		t.Error(err)
	}
	// cat was asked for before: that it reads .env now is for the operator to know.
	text = choose(t, readsSecrets, "look around")
	if _, err := Parse("r", []byte(readsSecrets+text), testContext(t)); err == nil || !strings.Contains(err.Error(), "cat .env") {
		t.Errorf("switched on beside a rule that lets secrets be read: %v", err)
	}
	if _, err := Choose(shipped(t, "starter"), []string{"nothing"}, ""); err == nil {
		t.Error("a rule that is not there was chosen")
	}
	if _, err := Choose(shipped(t, "starter"), nil, ""); err == nil {
		t.Error("nothing was chosen")
	}
}

func TestShippedRulesAreAddedOneAfterAnother(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	s, b := sourced(t, file, k)
	if err := s.AddRules(allowsTrue); err == nil {
		t.Error("rules were added before it is known which are in force")
	}
	if s.State().Fresh {
		t.Error("nothing is known yet, and said to be fresh")
	}
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); !st.Fresh || st.Mode != ModeRules {
		t.Errorf("no file and no rules: %+v", st)
	}
	told := 0
	s.Follow(func() { told++; s.State() })
	for i, name := range shippedNames(t) {
		if err := s.AddRules(choose(t, s.State().Text, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		st := s.State()
		if len(st.Counts) != i+1 || st.Counts[i].Rule != name || st.Fresh || s.Look() {
			t.Fatalf("after %s: %+v", name, st)
		}
	}
	if told < len(shippedNames(t)) {
		t.Errorf("told %d times", told)
	}
	if verdict(b, "ls -la") != Allow || verdict(b, "sudo ls") == Allow {
		t.Error("what was switched on is not in force")
	}
	if err := s.AddRules(choose(t, "", "look around")); err == nil || !strings.Contains(err.Error(), "too") {
		t.Errorf("the same rule twice: %v", err)
	}
}

func TestRulesAreAddedWholeOrNotAtAll(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	save(t, file, allowsTrue)
	s, b := sourced(t, file, k)
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a test of it fails": allowsFalse + "[[test]]\ncommand = \"false\"\nexpect = \"deny\"\n", "not TOML": allowsFalse + "[[rule"} {
		if err := s.AddRules(text); err == nil || !strings.Contains(err.Error(), "nothing was added") || verdict(b, "false") != Ask || s.Look() {
			t.Errorf("%s: %v, false is %s", name, err, verdict(b, "false"))
		}
	}
	save(t, file, "")
	if err := s.AddRules(allowsFalse); err == nil || !strings.Contains(err.Error(), "outside") {
		t.Errorf("over a change that nobody saw: %v", err)
	}
	s.Look()
	if s.State().Fresh {
		t.Error("a change waits, and starter rules are offered")
	}
}

func TestASourceExplainsByWhatIsInForce(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	save(t, file, allowsTrue)
	s, _ := sourced(t, file, k)
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	item := command("true; false")
	item.Connection = "c"
	e, err := s.Explain(item)
	if err != nil || e.Verdict != Ask || len(e.Parts) != 2 || e.Parts[0].Verdict != Allow || s.State().Counts[0].Matched != 0 {
		t.Errorf("%v, %+v", err, e)
	}
	item.Connection = "another"
	if _, err := s.Explain(item); err == nil {
		t.Error("a connection that is not there was judged for")
	}
}
