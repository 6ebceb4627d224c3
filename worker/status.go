package worker

import (
	"fmt"

	"countersign/worker/execute"
)

// The accept status words of UX.md that a hold's facts alone decide. The live
// ones (in line, paused, lease at risk, stopping) are decided by the engine.
const (
	WordWaiting        = "Waiting for you"
	WordInLine         = "Approved, in line"
	WordPaused         = "Approved, paused"
	WordAsking         = "Asking the harness"
	WordAccepted       = "Accepted"
	WordRunning        = "Running"
	WordStopping       = "Stopping"
	WordAtRisk         = "Lease at risk"
	WordSessionStopped = "Refused: session stopped"
	WordLapsed         = "Refused: lease lapsed"
	WordNotOurs        = "Refused: not ours any more"
	WordUnknown        = "Refused: unknown to the harness"
	WordRefused        = "Refused"
	WordCannotAccept   = "Harness cannot accept"
	WordNotConfirmed   = "Not confirmed"
	WordChanged        = "Changed since shown"
	WordDeclined       = "Declined"
	WordExpired        = "Expired"
	WordWithdrawn      = "Withdrawn"
	WordReleased       = "Released"
	WordReturned       = "Returned"
	WordCouldNotStart  = "Could not start"
	WordTimedOut       = "Timed out"
	WordStopped        = "Stopped"
	WordDelivering     = "Delivering"
	WordReported       = "Reported"
	WordNotRecorded    = "Not recorded"
	WordUnconfirmed    = "Unconfirmed"
	WordUndelivered    = "Undelivered"
	WordInterrupted    = "Interrupted"
)

// status puts the facts into one accept status. What went wrong comes before
// what went well, and the delivery before the execution, because it came later.
func (f Facts) status(o *execute.Outcome) string {
	switch {
	case f.Execution == Interrupted:
		return WordInterrupted
	case f.Delivery == DeliveryRefused:
		return WordNotRecorded
	case f.Delivery == DeliveryUnconfirmed:
		return WordUnconfirmed
	case f.Delivery == Undelivered:
		return WordUndelivered
	case f.Decision == Declined:
		return WordDeclined
	case f.Decision == Expired:
		return WordExpired
	case f.Decision == Undecided && f.Acceptance == Accepted:
		return WordChanged
	case f.Acceptance == Unconfirmed:
		return WordNotConfirmed
	case f.Acceptance == Refused:
		return f.Refusal.word()
	case f.Decision == Withdrawn:
		return WordWithdrawn
	case f.Decision == Released:
		return WordReleased
	case f.Execution == CouldNotStart:
		return WordCouldNotStart
	case f.Execution == Stopped:
		return WordStopped
	case f.Execution == Finished && o != nil && o.How == execute.TimedOut:
		return WordTimedOut
	case f.Decision == Approved && f.Execution == NotStarted && f.Delivery != NothingToDeliver:
		return WordCouldNotStart // the start could not be written down
	case f.Delivery == Delivering:
		return WordDelivering
	case f.Delivery == Delivered:
		return WordReported
	case f.Execution == Finished:
		return WordDelivering
	case f.Execution == Starting, f.Execution == Running:
		return WordRunning
	case f.Acceptance == Accepted:
		return WordAccepted
	case f.Acceptance == Asking:
		return WordAsking
	case f.Decision == Approved:
		return WordInLine
	}
	return WordWaiting
}

func (r Refusal) word() string {
	switch r {
	case RefusedStopped:
		return WordSessionStopped
	case RefusedLapsed:
		return WordLapsed
	case RefusedNotOurs:
		return WordNotOurs
	case RefusedUnknown:
		return WordUnknown
	case RefusedUnsupported:
		return WordCannotAccept
	}
	return WordRefused
}

// WithFailure is an accept status of h as it is shown to people: of what was
// reported, also that it failed. A report that arrived is no success of what it
// tells.
func (h Hold) WithFailure(word string) string {
	if failure := h.failure(); failure != "" && word == WordReported {
		return word + FailureMark + failure
	}
	return word
}

// FailureMark stands between a status word and what failed.
const FailureMark = " · "

// failure says shortly how an execution failed; "" where it did not.
func (h Hold) failure() string {
	if h.Outcome == nil {
		return ""
	}
	switch o := h.Outcome; o.How {
	case execute.Ended:
		if o.Exit == 0 {
			return ""
		}
		return fmt.Sprintf("exit %d", o.Exit)
	case execute.Signalled:
		return "signal " + o.Signal
	case execute.CouldNotStart:
		return "could not start"
	case execute.FileFailed:
		return "not done"
	case execute.Lost:
		return "outcome unknown"
	default:
		return string(o.How)
	}
}
