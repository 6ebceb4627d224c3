package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// aboutRules says which file that is and what of it is in force.
func aboutRules(s policy.RulesState, snap worker.Snapshot, now time.Time) string {
	if len(snap.Connections) == 0 {
		return "No connection is set up, so no rules are in force."
	}
	if s.Mode == "" {
		return "The rules are being read."
	}
	words := safetext.Line(s.File)
	switch {
	case s.Fresh:
		words += " – there is no such file yet, and no rule is in force: everything is asked for, but what is always denied."
	case s.Hash == "":
		words += " – no rule is in force: everything is asked for, but what is always denied."
	default:
		words += " – in force since " + when(s.Since, now) + ", SHA-256 " + s.Hash[:16]
	}
	switch s.Mode {
	case policy.ModeAsk:
		words += " In this run nothing is allowed by a rule (--approve ask)."
	case policy.ModeAll:
		words += " In this run what would be asked for is approved (--approve all)."
	}
	return words
}

// wordsOfTrouble says that a change waits, or that the file cannot be used.
func wordsOfTrouble(s policy.RulesState) string {
	still := "What was in force before still is"
	if s.Hash == "" {
		still = "No rule is in force, so everything is asked for"
	}
	switch {
	case s.Broken != "":
		return "The rule file was changed and cannot be used. " + still + "."
	case s.Pending != nil:
		return "The rule file was changed outside Countersign. " + still + ", until you have seen the change and put it into force."
	}
	return ""
}

func firstOf(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return kinds[0]
}

func usedWords(n int64) string {
	if n == 0 {
		return "not used yet"
	}
	return "used " + countWords(int(n), "time", "times")
}

// ruleLine says in one line what a rule does. It is for rows: patterns are
// shortened to their programs, and many are counted.
func ruleLine(info policy.RuleInfo) string {
	var parts []string
	if info.RunsCode {
		parts = append(parts, "runs code")
	}
	say := func(what string, patterns []string, short func(string) string) {
		var names []string
		for _, p := range patterns {
			if s := short(p); !slices.Contains(names, s) {
				names = append(names, s)
			}
		}
		if len(names) > 0 {
			parts = append(parts, what+" "+someOf(names))
		}
	}
	whole := func(p string) string { return p }
	files := slices.DeleteFunc(slices.Clone(info.Kinds), func(k string) bool { return k == wire.KindExec })
	say("allows", info.Allow, literalWords)
	say("allows to "+strings.Join(files, " and "), info.AllowPaths, whole)
	say("asks for", info.Ask, whole)
	say("denies", info.Deny, whole)
	say("denies to "+strings.Join(files, " and "), info.DenyPaths, whole)
	return safetext.Clip(strings.Join(parts, " · "), 300)
}

// literalWords is what a pattern begins with, up to its first option or choice.
func literalWords(pattern string) string {
	words := strings.Fields(pattern)
	for i, w := range words {
		if i > 0 && strings.ContainsAny(w, "[<") {
			words = words[:i]
			break
		}
	}
	return strings.Join(words, " ")
}

// someOf names the first of many.
func someOf(names []string) string {
	const most = 6
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// ruleLines is a rule in force, whole.
func ruleLines(info policy.RuleInfo, c policy.Count, now time.Time) []textLine {
	var lines []textLine
	say := func(words string) { lines = append(lines, textLine{Text: words, Style: note}) }
	used := usedWords(c.Matched)
	if !c.Last.IsZero() {
		used += ", last at " + when(c.Last, now)
	}
	say("Since it was loaded: " + used + ".")
	say("Kind: " + safetext.Line(strings.Join(info.Kinds, ", ")) + ".")
	for _, bound := range [][2]string{{"connection", info.Connection}, {"session", info.Session}, {"directory", info.Cwd}} {
		if bound[1] != "" {
			say("Only for the " + bound[0] + " " + safetext.Line(bound[1]) + ".")
		}
	}
	if !info.Until.IsZero() {
		say("Until " + when(info.Until, now) + ".")
	}
	patterns := func(title string, v policy.Verdict, texts []string) {
		if len(texts) == 0 {
			return
		}
		lines = append(lines, textLine{Text: title, Style: heading})
		for _, t := range texts {
			lines = append(lines, textLine{Text: safetext.Line(t), Style: body, Verdict: v})
		}
	}
	patterns("Denies commands", policy.Deny, info.Deny)
	patterns("Denies paths", policy.Deny, info.DenyPaths)
	patterns("Asks for commands", policy.Ask, info.Ask)
	patterns("Allows commands", policy.Allow, info.Allow)
	patterns("Allows paths", policy.Allow, info.AllowPaths)
	if len(info.Env) > 0 {
		lines = append(lines, textLine{Text: "Environment that may be set", Style: heading},
			textLine{Text: safetext.Line(strings.Join(info.Env, ", ")), Style: body})
	}
	return lines
}

const runsCodeWords = "This runs what is in the work directory. The agent can write there, so it can have anything run."

// untilWords says when a grant ends.
func untilWords(g policy.Grant, now time.Time) string {
	if g.Until.IsZero() {
		return "until its session ends"
	}
	return "until " + when(g.Until, now)
}

// grantLines is a grant, whole.
func grantLines(g policy.Grant, now time.Time) []textLine {
	used := usedWords(g.Matched)
	if !g.Last.IsZero() {
		used += ", last at " + when(g.Last, now)
	}
	lines := []textLine{
		{Text: "Granted at " + when(g.Made, now) + ", " + untilWords(g, now) + ".", Style: note},
		{Text: sentence(used), Style: note},
		{Text: "For the session", Style: heading}, {Text: safetext.Line(g.Session), Style: body},
		{Text: "Of the connection", Style: heading}, {Text: safetext.Line(g.Connection), Style: body},
	}
	what := "For exactly this, with the same directory, environment and content"
	if g.Exactly == "" {
		what = "For reads and lists, but what rules deny"
	}
	lines = append(lines, textLine{Text: what, Style: heading})
	return append(lines, numbered(g.Text, body)...)
}

// brokenLines is all that is wrong with a rule file, one error a line.
func brokenLines(s policy.RulesState) []textLine {
	lines := []textLine{
		{Text: wordsOfTrouble(s), Style: note},
		{Text: "What is wrong, by its line in the file", Style: heading},
	}
	for _, l := range strings.Split(safetext.Block(s.Broken), "\n") {
		lines = append(lines, textLine{Text: l, Style: body, Inks: markInks(l)})
	}
	return append(lines, textLine{Text: "Mend the file and save it: it is read again at once, and the change is shown here.", Style: note})
}

// changeLines draws a unified difference. Removed lines have the numbers that they
// had, the others those that they get. Its time goes by the size of the difference.
func changeLines(diff string) []textLine {
	raw := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if len(raw) > 2 && strings.HasPrefix(raw[0], "--- ") && strings.HasPrefix(raw[1], "+++ ") {
		raw = raw[2:] // the names are in our own words already
	}
	rest := make([]string, len(raw))
	for i, l := range raw {
		if l != "" {
			rest[i] = l[1:]
		}
	}
	safe := strings.Split(safetext.Block(strings.Join(rest, "\n")), "\n")
	lines := make([]textLine, 0, len(raw)+2)
	was, is := 0, 0
	for i, l := range raw {
		t := textLine{Text: safe[i], Style: body, Sign: " ", Inks: markInks(safe[i])}
		switch {
		case strings.HasPrefix(l, "+"):
			t.Style, t.Sign, t.Number = added, "+", is
			is++
		case strings.HasPrefix(l, "-"):
			t.Style, t.Sign, t.Number = removed, "−", was
			was++
		case strings.HasPrefix(l, "@@"):
			fmt.Sscanf(l, "@@ -%d", &was)
			if _, after, ok := strings.Cut(l, " +"); ok {
				fmt.Sscanf(after, "%d", &is)
			}
			t = textLine{Text: fmt.Sprintf("From line %d", max(is, 1)), Style: note}
		case strings.HasPrefix(l, "\\"):
			t = textLine{Text: "(that line is the last one and not ended by a line feed)", Style: aside}
		default:
			t.Number = is
			was++
			is++
		}
		lines = append(lines, t)
	}
	return lines
}
