package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// ownName is who decided where neither an operator nor a rule did.
const ownName = "countersign"

// words puts an event's fixed words behind the hold's short id.
func (h *hold) words(text string) string { return fmt.Sprintf("#%d: %s", h.rec.ID, text) }

func ranWords(ran bool) string {
	if ran {
		return "The command keeps running."
	}
	return "Nothing ran."
}

func stoppedWords(ran bool) string {
	if ran {
		return "Its command was stopped."
	}
	return "Nothing ran."
}

func returnedWords(rec Hold) string {
	if rec.Returned {
		return "the harness handed this item out again"
	}
	return ""
}

// declinedResult is the report of an item that was decided against: a result
// for exec, since harnesses end a session on a failed one, and a failure for
// every other kind (PROTOCOL.md §4).
func declinedResult(rec Hold) (result []byte, failed bool) {
	return refusalResult(rec.Item.Kind, 126, declinedWords(rec))
}

func declinedWords(rec Hold) string {
	switch {
	case rec.Decision == Expired:
		return "Declined: nobody answered in time. Nothing was run."
	case rec.DecidedBy == ownName && rec.Words == errChangedWork.Error():
		return "Declined by the worker: " + rec.Words + ". Nothing of this was run." // what came first under the id may have been
	case rec.DecidedBy == ownName:
		return "Declined by the worker: " + rec.Words + ". Nothing was run."
	case rec.DecidedBy == policy.BuiltIn:
		return "Declined by the worker, which never does this: " + rec.Words + ". Nothing was run."
	case !byOperator(rec.DecidedBy):
		return "Declined by " + rec.DecidedBy + ", which the operator wrote: " + rec.Words + ". Nothing was run."
	case rec.Words == "":
		return "Declined by the operator. Nothing was run."
	}
	return "Declined by the operator. Nothing was run. The operator says: " + rec.Words
}

func refusalResult(kind string, exit int, message string) (result []byte, failed bool) {
	var v any = wire.Failure{Message: message}
	if kind == wire.KindExec {
		v = wire.ExecResult{ExitCode: exit, Stderr: message}
	}
	result, err := json.Marshal(v)
	if err != nil { // strings and numbers: cannot happen
		result = []byte("null")
	}
	return result, kind != wire.KindExec
}

// unstarted is the outcome of an accepted item that was not started after all.
func (h *hold) unstarted(reason string) execute.Outcome {
	now := h.e.clock.Now()
	result, failed := refusalResult(h.rec.Item.Kind, 126, "Not run: "+reason+".")
	return execute.Outcome{
		How: execute.CouldNotStart, Exit: 126, Reason: reason,
		Result: result, Failed: failed, StartedAt: now, FinishedAt: now,
	}
}

// interruptedOutcome is what is reported of an item that had been started when
// Countersign was killed: the honest state is unknown.
func interruptedOutcome(rec Hold, now time.Time) execute.Outcome {
	const message = "outcome unknown: interrupted after starting; it may have run wholly, partly or not at all"
	result, failed := refusalResult(rec.Item.Kind, 125, message)
	return execute.Outcome{
		How: execute.Lost, Exit: 125, Reason: message,
		Result: result, Failed: failed, FinishedAt: now,
	}
}

const editedWords = "changed before it ran"

// whyAgain says why an item that was approved waits once more.
func (h *hold) whyAgain() string {
	if h.changed {
		return " It was approved, and a file that it names changed since; nothing ran."
	}
	return ""
}

func changedWords(names []string) string {
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return "what it names changed since it was shown; nothing ran: " + strings.Join(names, ", ") + more
}

// toldOfEdit adds to what is reported that an operator changed the work, and into
// what.
func (h *hold) toldOfEdit(o execute.Outcome) execute.Outcome {
	if h.rec.Edited == nil {
		return o
	}
	if h.task.Kind == wire.KindExec {
		return execute.Annotate(o, "Countersign: the operator changed the command before it ran. What ran: ", h.task.Command)
	}
	return execute.Annotate(o, "Countersign: the operator changed the content before it was written. What was written:\n", h.task.Content)
}
