package ui

import (
	"slices"
	"strings"

	"countersign/assets"
	"countersign/worker/api/wire"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// The rules that we ship are offered one by one, each off until the operator has
// switched it on. What is switched on is copied into their rule file, with the
// tests that concern it; see policy.Choose.

// shippedRule is one of them.
type shippedRule struct {
	policy.RuleInfo
	set  string // the title of the set that it belongs to
	does string // what it would allow, in plain words
	mind string // what has to be minded; "" for nothing
}

// The sets, by their titles. The second lets the agent run what it may write.
const (
	starterTitle   = "Starter rules: looking around"
	developerTitle = "Developer rules: they run what the agent writes"
)

// shippedWords says what each rule would allow. A test holds it complete.
var shippedWords = map[string]string{
	"sources":                    "Reads and lists the files of the work directory, but for what looks like a secret.",
	"look around":                "Commands that show files and facts: ls, cat, head, tail, wc, stat, du, diff, date.",
	"filter output":              "Commands that sort, cut and count text: sort, uniq, cut, tr, column.",
	"search":                     "Searches files that may be read, and names: grep, rg, find.",
	"git, looking only":          "git commands that change nothing and print no secrets: status, log, blame, diff of files.",
	"Go: test and build":         "go test, build, vet, run, generate and mod tidy; gofmt and linters.",
	"make: known targets":        "make with a usual target: all, build, test, check, lint, fmt, vet, clean.",
	"JavaScript: test and build": "npm, pnpm and yarn: tests and every script of package.json, but no installing.",
	"Python: test and check":     "pytest and unittest, ruff, mypy and black.",
	"Rust: test and build":       "cargo build, check, test, clippy and fmt.",
	"search everything":          "Prints what is in any file or commit, secrets too: grep -r, rg, git grep, diff, show.",
}

// shippedText is the text of all that we ship.
func shippedText() []byte {
	var text []byte
	for _, set := range []string{"starter", "developer"} {
		part, err := assets.Rules(set)
		if err != nil {
			panic(err) // embedded
		}
		text = append(append(text, part...), '\n')
	}
	return text
}

// shippedRules is what can be switched on, in the order of the files.
func shippedRules() []shippedRule {
	var all []shippedRule
	for _, set := range [][2]string{{"starter", starterTitle}, {"developer", developerTitle}} {
		text, err := assets.Rules(set[0])
		if err != nil {
			panic(err) // embedded
		}
		infos, err := policy.RulesIn(text)
		if err != nil {
			panic(err) // a test holds that it does not happen
		}
		for _, info := range infos {
			s := shippedRule{RuleInfo: info, set: set[1], does: shippedWords[info.Name]}
			switch {
			case info.Name == "search everything":
				s.mind = "This reads every file below a directory, secrets included, and lets the agent see the environment of commands."
			case info.RunsCode:
				s.mind = runsCodeWords
			}
			all = append(all, s)
		}
	}
	return all
}

// lines is what the page of a shipped rule says: all that would be written.
func (s shippedRule) lines() []textLine {
	lines := []textLine{{Text: s.does, Style: note}}
	if slices.Contains(s.Kinds, wire.KindExec) && strings.Contains(strings.Join(s.Allow, " "), "<path>") {
		lines = append(lines, textLine{Text: `A command that names a file is allowed only where that file may be read: by the rule "sources", or one of your own.`, Style: note})
	}
	lines = append(lines,
		textLine{Text: "It is off. Nothing is in force before you have switched it on.", Style: note},
		textLine{Text: "What is copied into your rule file then, with the tests that concern it", Style: heading})
	for i, l := range strings.Split(safetext.Block(strings.TrimSuffix(s.Text, "\n")), "\n") {
		lines = append(lines, textLine{Text: l, Style: body, Number: i + 1})
	}
	return lines
}
