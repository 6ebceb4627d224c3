package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

// RuleInfo is a rule as it is written, for showing. Its patterns are as they stand
// in the file: whoever may write that wrote them, so they are untrusted.
type RuleInfo struct {
	Name                     string
	Kinds                    []string
	Allow, Ask, Deny         []string
	AllowPaths, DenyPaths    []string
	RunsCode                 bool
	Env                      []string
	Connection, Session, Cwd string
	Until                    time.Time
	Text                     string // the rule with the comments right above and in it
}

// RulesIn returns the rules of a file's text in their order, whether or not it
// could be put into force.
func RulesIn(text []byte) ([]RuleInfo, error) {
	set, err := takeApart(text)
	if err != nil {
		return nil, err
	}
	return set.rules, nil
}

// Choose returns the text that puts some of the rules that we ship into force,
// beside the rules of before: those rules, and the tests that concern them. A test
// that something is allowed is left out where it needs a rule that is not there; of
// the others none is, unless before says otherwise already.
func Choose(shipped []byte, names []string, before string) (string, error) {
	set, err := takeApart(shipped)
	if err != nil {
		return "", err
	}
	var chosen []RuleInfo
	var texts []string
	for _, r := range set.rules {
		if slices.Contains(names, r.Name) {
			chosen, texts = append(chosen, r), append(texts, r.Text)
		}
	}
	if len(chosen) != len(names) || len(names) == 0 {
		return "", fmt.Errorf("of the rules %q only %d are among those that are shipped", names, len(chosen))
	}
	then, err := dryRules(before + "\n\n" + strings.Join(texts, "\n"))
	if err != nil {
		return "", err
	}
	now, err := dryRules(before)
	if err != nil {
		return "", err
	}
	for i, t := range set.tests {
		if !slices.ContainsFunc(chosen, t.concerns) {
			continue
		}
		if t.holds(then) || !slices.Contains(t.Expect, string(Allow)) && t.holds(now) {
			texts = append(texts, set.testTexts[i])
		}
	}
	return strings.Join(texts, "\n"), nil
}

// dryRules reads rules for tests, which look at no file and no program.
func dryRules(text string) (*Rules, error) {
	return Parse("the rules with those that were chosen", []byte(text), Context{
		Root: "/work", Home: "/home", SearchPath: "/bin", LookPath: func(name string) (string, error) { return name, nil },
	})
}

// holds reports whether rules say what the test expects.
func (t rawTest) holds(r *Rules) bool {
	item, err := t.item()
	if err != nil {
		return false
	}
	e := (&judging{r: r, item: item, dry: true}).explain()
	return slices.Contains(t.Expect, string(e.Verdict))
}

// concerns reports whether the test is about what a rule is about: a program that
// it allows, or a file.
func (t rawTest) concerns(r RuleInfo) bool {
	if t.Command == nil {
		return slices.ContainsFunc(r.Kinds, func(k string) bool { return k != wire.KindExec })
	}
	runs := map[string]bool{}
	for _, part := range strings.FieldsFunc(*t.Command, func(c rune) bool { return strings.ContainsRune("\n;|&()", c) }) {
		words := strings.Fields(part)
		for len(words) > 0 && strings.Contains(words[0], "=") { // PATH=. go
			words = words[1:]
		}
		if len(words) > 0 {
			runs[words[0]] = true
		}
	}
	return slices.ContainsFunc(r.Allow, func(p string) bool { program, _, _ := strings.Cut(p, " "); return runs[program] })
}

// takenApart is a rule file in pieces.
type takenApart struct {
	rules     []RuleInfo
	tests     []rawTest
	testTexts []string
}

func takeApart(text []byte) (set takenApart, err error) {
	l := loader{r: &Rules{file: "the rules"}, lines: locate(text)}
	raw, err := l.decode(text)
	if err != nil {
		return set, err
	}
	ruleTexts, testTexts := blocks(string(text))
	if len(ruleTexts) != len(raw.Rules) || len(testTexts) != len(raw.Tests) {
		return set, errors.New("the rules are written in a way in which they cannot be taken apart")
	}
	for i, r := range raw.Rules {
		set.rules = append(set.rules, RuleInfo{
			Name: r.Name, Kinds: r.Kind, Allow: r.Allow, Ask: r.Ask, Deny: r.Deny, AllowPaths: r.AllowPaths, DenyPaths: r.DenyPaths,
			RunsCode: r.RunsCode, Env: r.Env, Connection: r.Connection, Session: r.Session, Cwd: r.Cwd, Until: r.Until.Time,
			Text: ruleTexts[i],
		})
	}
	set.tests, set.testTexts = raw.Tests, testTexts
	return set, nil
}

// blocks cuts a rule file into its rules and its tests, each with the comment that
// stands right above it. Other comments belong to none.
func blocks(text string) (rules, tests []string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		head := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(head, "[[") {
			continue
		}
		from := i
		for from > 0 && strings.HasPrefix(lines[from-1], "#") {
			from--
		}
		to := i + 1 // behind the last line that is neither empty nor a comment
		for next := to; next < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[next]), "[["); next++ {
			if l := strings.TrimSpace(lines[next]); l != "" && !strings.HasPrefix(l, "#") {
				to = next + 1
			}
		}
		block := strings.Join(lines[from:to], "\n") + "\n"
		if strings.HasPrefix(head, "[[rule]]") {
			rules = append(rules, block)
		} else {
			tests = append(tests, block)
		}
		i = to - 1
	}
	return rules, tests
}
