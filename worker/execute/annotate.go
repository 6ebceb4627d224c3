package execute

import (
	"encoding/json"

	"countersign/worker/api/wire"
)

// annotated bounds the text of an annotation, in bytes.
const annotated = 4 << 10

// Annotate adds to a result a note for the agent and a text that it is about,
// shortened. Of a command that is at the end of the stream that an agent is shown
// (PROTOCOL.md §4); of a write, beside the ok.
func Annotate(o Outcome, note, text string) Outcome {
	note += cutMiddle(text, annotated)
	var (
		exec  wire.ExecResult
		wrote struct {
			OK   bool   `json:"ok"`
			Note string `json:"note"`
		}
		fail wire.Failure
	)
	switch {
	case o.Failed && json.Unmarshal(o.Result, &fail) == nil:
		fail.Message += "\n" + note
		o.Result = encode(fail)
	case json.Unmarshal(o.Result, &wrote) == nil && wrote.OK:
		wrote.Note = note
		o.Result = encode(wrote)
	case json.Unmarshal(o.Result, &exec) == nil:
		if exec.ExitCode == 0 {
			exec.Stdout = onOwnLine(exec.Stdout, note)
		} else {
			exec.Stderr = onOwnLine(exec.Stderr, note)
		}
		o.Result = encode(exec)
	}
	return o
}

func onOwnLine(text, note string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + note + "\n"
}
