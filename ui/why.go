package ui

import (
	"slices"
	"strings"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// whyLines says why an item is asked for, or who decided it and why: the verdict
// on the whole, then each part of a command with its own. What the agent wrote
// is in a fixed width and our words are not, so that it cannot speak for us.
func whyLines(h worker.Hold, task execute.Task, risks []policy.Risk) []textLine {
	e := h.Shown.Explanation
	if e.Verdict == "" {
		return riskLines(nil, risks) // held before reasons were kept
	}
	lines := []textLine{{Text: whyTitle(h), Style: heading}}
	if e.Reason != "" {
		lines = append(lines, textLine{Text: reasonWords(e.Reason, e.Rule, e.RunsCode), Style: note, Verdict: e.Verdict})
	}
	if len(e.Parts) > 1 || len(e.Parts) == 1 && !saysTheSame(e, task) {
		for _, p := range e.Parts {
			lines = append(lines, partLines(p)...)
		}
	}
	return riskLines(lines, risks)
}

// whyTitle says who decided, or that nobody has.
func whyTitle(h worker.Hold) string {
	e := h.Shown.Explanation
	switch {
	case e.Verdict == policy.Ask && h.Decision == worker.Undecided:
		return "Why it is asked"
	case e.Verdict == policy.Ask:
		return "Why it was asked"
	case e.Verdict == policy.Deny:
		return "Denied by " + safetext.Line(e.By)
	case strings.HasPrefix(e.By, "grant "):
		return "Allowed by " + decider(e.By)
	}
	return "Allowed by " + safetext.Line(e.By)
}

// saysTheSame reports whether the one part of an explanation adds nothing to
// the whole of it and to what is asked.
func saysTheSame(e policy.Explanation, task execute.Task) bool {
	p := e.Parts[0]
	asked := task.Path
	if task.Kind == wire.KindExec {
		asked = strings.TrimSpace(task.Command)
	}
	return p.Verdict == e.Verdict && p.Reason == e.Reason && (p.Text == asked || p.Text == task.Kind)
}

// partLines is a part as it was written, and below it what is said of it. A part
// inside another one stands further in.
func partLines(p policy.Part) []textLine {
	in := 0
	if p.Inner {
		in = 4
	}
	var lines []textLine
	for i, text := range strings.Split(safetext.Block(p.Text), "\n") {
		l := textLine{Text: text, Style: body, Indent: in, Inks: markInks(text)}
		if i == 0 {
			l.Verdict = p.Verdict
		}
		lines = append(lines, l)
	}
	words := reasonWords(p.Reason, p.Rule, p.RunsCode)
	if p.Inner {
		words = "inside: " + words
	}
	return append(lines, textLine{Text: words, Style: aside, Indent: in + 2})
}

func reasonWords(reason, rule string, runsCode bool) string {
	words := safetext.Line(reason)
	if rule != "" && !strings.Contains(reason, rule) {
		words += " (rule " + safetext.Line(rule) + ")"
	}
	if runsCode {
		words += " – runs code from the work directory"
	}
	return words
}

// riskLines gives the reasons of the marks.
func riskLines(lines []textLine, risks []policy.Risk) []textLine {
	if len(risks) == 0 {
		return lines
	}
	lines = append(lines, textLine{Text: "Marks: a help to the eye, and no verdict", Style: heading})
	for _, r := range risks {
		words := sentence(string(r.Mark))
		if r.Reason != "" {
			words = strings.TrimSuffix(words, ".") + ": " + safetext.Line(r.Reason)
		}
		lines = append(lines, textLine{Text: words, Style: note})
	}
	return lines
}

// sameWhy reports whether two explanations are drawn alike.
func sameWhy(a, b policy.Explanation) bool {
	return a.Verdict == b.Verdict && a.By == b.By && a.Rule == b.Rule && a.Reason == b.Reason && a.RunsCode == b.RunsCode &&
		slices.EqualFunc(a.Parts, b.Parts, func(x, y policy.Part) bool {
			return x.Text == y.Text && x.Verdict == y.Verdict && x.Reason == y.Reason && x.Rule == y.Rule &&
				x.RunsCode == y.RunsCode && x.Inner == y.Inner
		})
}

// hiddenMarks is what safetext found in the texts of a task that an operator
// has to know of: characters that hide or imitate others. Of a file's content
// carriage returns and gaps are left out: many files have them.
func hiddenMarks(task execute.Task, unfit error, raw []byte) []safetext.Mark {
	if unfit != nil {
		return grave(safetext.Marks(string(raw)), true)
	}
	texts := []string{task.Command, task.Cwd, task.Path}
	for name, value := range task.Env {
		texts = append(texts, name+"="+value)
	}
	slices.Sort(texts)
	marks := grave(safetext.Marks(strings.Join(texts, "\n")), true)
	for _, m := range grave(safetext.Marks(task.Content), false) {
		marks = addMark(marks, m)
	}
	return marks
}

func addMark(marks []safetext.Mark, m safetext.Mark) []safetext.Mark {
	for i := range marks {
		if marks[i].Kind == m.Kind && marks[i].Scripts == m.Scripts {
			marks[i].Count += m.Count
			return marks
		}
	}
	return append(marks, m)
}

func grave(marks []safetext.Mark, command bool) []safetext.Mark {
	return slices.DeleteFunc(marks, func(m safetext.Mark) bool {
		switch m.Kind {
		case safetext.Trailing, safetext.Own, safetext.RightToLeft:
			return true
		case safetext.Gap, safetext.Return, safetext.Blank:
			return !command
		}
		return false
	})
}
