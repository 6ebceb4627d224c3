package ui

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// readAtOnce is how large a payload can be without the window noticing that it
// is read. Larger ones are read away from the UI thread.
const readAtOnce = 16 << 10

// reading is what is shown of an item: everything that the operator decides on,
// whole.
type reading struct {
	task  execute.Task
	unfit error // why it cannot be decoded into a task
	head  []textLine
	main  []textLine // the command, the path, or the content
	risks []policy.Risk
	marks []safetext.Mark
}

// newReading reads an item. The time that it takes goes by the size of the item.
func newReading(h worker.Hold) reading {
	r := reading{}
	r.task, r.unfit = execute.Decode(h.Item.Kind, h.Item.Payload)
	r.marks = hiddenMarks(r.task, r.unfit, h.Item.Payload)
	if r.unfit != nil {
		r.head = []textLine{{Text: "This cannot be run: " + safetext.Line(r.unfit.Error()), Style: note}}
		r.main = titled("What was sent", string(h.Item.Payload))
		return r
	}
	r.risks = policy.Risks(r.task)
	r.head, r.main = headLines(h, r.task), mainLines(r.task)
	if h.Edited != nil {
		r.main = append(insteadLines(h), r.main...)
	}
	return r
}

// lines is the whole text.
func (r reading) lines() []textLine { return slices.Concat(r.head, r.main) }

// titled is a text below its title.
func titled(title, text string) []textLine {
	return append([]textLine{{Text: title, Style: heading}}, numbered(text, body)...)
}

// headLines is what belongs to a task beside what it does.
func headLines(h worker.Hold, task execute.Task) []textLine {
	var lines []textLine
	if task.Cwd != "" {
		lines = append(lines, titled("In directory", task.Cwd)...)
	}
	if len(task.Env) > 0 {
		names := make([]string, 0, len(task.Env))
		for name := range task.Env {
			names = append(names, name)
		}
		slices.Sort(names)
		lines = append(lines, textLine{Text: "Environment additions", Style: heading})
		for _, name := range names {
			lines = append(lines, numbered(name+"="+task.Env[name], body)...)
		}
	}
	if utf8.RuneCountInString(h.Item.SessionID) > sessionShown {
		lines = append(lines, titled("Session", h.Item.SessionID)...)
	}
	switch task.Kind {
	case wire.KindRead:
		lines = append(lines, titled("File to read", task.Path)...)
	case wire.KindList:
		lines = append(lines, titled("Directory to list, with everything below it", task.Path)...)
	case wire.KindWrite:
		lines = append(lines, titled("File to write", task.Path)...)
	}
	return lines
}

// mainLines is the command or the content.
func mainLines(task execute.Task) []textLine {
	switch task.Kind {
	case wire.KindExec:
		return append([]textLine{{Text: "Command", Style: heading}}, commandLines(task.Command)...)
	case wire.KindWrite:
		return titled(contentTitle(task), task.Content)
	}
	return nil
}

func contentTitle(task execute.Task) string {
	return "New content, " + bytesWords(int64(len(task.Content)))
}

// insteadLines is what ran in the place of what was asked, and the title of that.
func insteadLines(h worker.Hold) []textLine {
	lines := []textLine{{Text: "Ran instead, as the operator changed it", Style: heading}}
	if h.Execution == worker.NotStarted {
		lines[0].Text = "To run instead, as the operator changed it"
	}
	task, err := execute.Decode(h.Item.Kind, h.Edited)
	switch {
	case err != nil:
		lines = append(lines, numbered(string(h.Edited), body)...)
	case task.Kind == wire.KindExec:
		lines = append(lines, commandLines(task.Command)...)
	default:
		lines = append(lines, numbered(task.Content, body)...)
	}
	return append(lines, textLine{Text: "Asked", Style: heading})
}

// commandLines is a command in numbered lines, with colours that tell what is
// what in it.
func commandLines(command string) []textLine {
	lines := numbered(command, body)
	inked(lines, command, policy.Highlight(command))
	return lines
}

// summaryLater stands for the summary of an item that is still being read.
func summaryLater(item worker.Item) string {
	return fmt.Sprintf("%s of %s", kindWord(item.Kind), bytesWords(int64(len(item.Payload))))
}

// kindWord is a kind as we write it: any other is some agent's word.
func kindWord(kind string) string {
	switch kind {
	case wire.KindExec, wire.KindRead, wire.KindWrite, wire.KindList:
		return kind
	}
	return "item"
}
