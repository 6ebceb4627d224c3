package ui

import (
	"strings"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
)

func TestEveryEndWithoutAStartSaysThatNothingRan(t *testing.T) {
	ends := map[string]worker.Facts{
		"withdrawn":     {Decision: worker.Withdrawn, Words: "not ours any more"},
		"released":      {Decision: worker.Released},
		"declined":      {Decision: worker.Declined, DecidedBy: "operator", Words: "no"},
		"expired":       {Decision: worker.Expired},
		"refused":       {Decision: worker.Approved, Acceptance: worker.Refused, Refusal: worker.RefusedStopped},
		"not confirmed": {Decision: worker.Approved, Acceptance: worker.Unconfirmed},
	}
	for name, facts := range ends {
		facts.Execution, facts.Closed = worker.NotStarted, true
		v := execItem(1, "x")
		v.Facts, v.Word = facts, v.Hold.Status()
		st := newStage(t)
		st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
		if got := st.window.queue.detail.outcome.Text; !strings.HasPrefix(got, "Nothing ran.") {
			t.Errorf("%s: the detail says %q", name, got)
		}
		if got := newHistoryRow(v.Hold).rest; got != "sess_A · Nothing ran" {
			t.Errorf("%s: the history says %q", name, got)
		}
		v.Execution = worker.Interrupted // under an earlier hold of the item
		if got := endWords(v.Hold); strings.Contains(got, "Nothing ran.") || got == "" {
			t.Errorf("%s of an item that had been started: %q", name, got)
		}
	}
}

func TestWhatCouldNotStartSaysOnceThatNothingRan(t *testing.T) {
	v := execItem(1, "x")
	v.Decision, v.Acceptance, v.Execution = worker.Approved, worker.Accepted, worker.CouldNotStart
	v.Outcome = &execute.Outcome{How: execute.CouldNotStart, Exit: 126, Reason: "no such directory."}
	if got := endWords(v.Hold); got != "Could not start, reported as exit 126: no such directory. Nothing ran." {
		t.Errorf("%q", got)
	}
	v.Outcome.Reason = "stopped before it started; nothing ran"
	if got := endWords(v.Hold); strings.Count(strings.ToLower(got), "nothing ran") != 1 {
		t.Errorf("%q", got)
	}
}

func TestWhatRanDoesNotSayThatNothingDid(t *testing.T) {
	v := asDone(execItem(1, "x"))
	if got := endWords(v.Hold); got != "Exit 0" {
		t.Errorf("%q", got)
	}
	if got := endWords(execItem(2, "x").Hold); got != "" {
		t.Errorf("an item that waits: %q", got)
	}
}

func TestAReasonDoesNotRepeatTheWordBeforeIt(t *testing.T) {
	reason := "Stopped: the session stopped this work."
	o := &execute.Outcome{How: execute.Stopped, Exit: 143, Reason: reason}
	if got := outcomeWords(o); got != "Stopped, reported as exit 143: the session stopped this work." {
		t.Errorf("%q", got)
	}
	entry := worker.Entry{Step: worker.StepFinished, Reason: reason, Facts: worker.Facts{Execution: worker.Stopped}}
	lines := stepLines([]worker.Entry{entry}, time.Time{})
	if got := lines[0].Text; !strings.HasSuffix(got, "  Stopped: the session stopped this work.") || strings.Count(got, "Stopped") != 1 {
		t.Errorf("%q", got)
	}
}

func TestAnInterruptedItemSaysOnceThatItsOutcomeIsUnknownAndInARowWhatIsNew(t *testing.T) {
	for reason, want := range map[string]struct{ detail, row string }{
		"outcome unknown: interrupted after starting; it may have run wholly, partly or not at all": {
			"Outcome unknown: interrupted after starting; it may have run wholly, partly or not at all",
			"it may have run wholly, partly or not at all · sess_A"},
		"Outcome unknown: it may have run wholly or partly. What it had started was stopped.": {
			"Outcome unknown: it may have run wholly or partly. What it had started was stopped.",
			"it may have run wholly or partly. What it had started was stopped · sess_A"},
		"the disk is full": {"Outcome unknown: the disk is full", "the disk is full · sess_A"},
		"":                 {"Outcome unknown", "Outcome unknown · sess_A"},
	} {
		v := asDone(execItem(1, "x"))
		v.Execution, v.Outcome = worker.Interrupted, &execute.Outcome{How: execute.Lost, Exit: 125, Reason: reason}
		if got := endWords(v.Hold); got != want.detail {
			t.Errorf("the detail says %q, want %q", got, want.detail)
		}
		if got := newHistoryRow(v.Hold).rest; got != want.row {
			t.Errorf("the row says %q, want %q", got, want.row)
		}
	}
}

func TestAnItemThatIsOverSaysFromWhenToWhenItWasHeld(t *testing.T) {
	st := newStage(t)
	v := asDone(execItem(1, "x"))
	v.Closed = true
	v.OpenedAt = time.Date(2026, 3, 1, 13, 0, 0, 0, time.Local)
	v.Steps = []worker.Entry{{At: v.OpenedAt}, {At: v.OpenedAt.Add(90 * time.Second)}}
	st.clock = v.OpenedAt.Add(time.Hour)
	st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
	if !st.shows("held from 13:00:00 to 13:01:30") || st.shows("held since") {
		t.Errorf("%q", st.window.queue.detail.facts.asked.Text)
	}
}

func TestTheBarSaysHowTheConnectionIs(t *testing.T) {
	now := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	for state, want := range map[worker.ConnectionState]string{
		worker.Connected:           "127.0.0.1:3000 · connected, accepts · last contact just now",
		worker.Connecting:          "127.0.0.1:3000 · connecting · no contact yet",
		worker.Unreachable:         "127.0.0.1:3000 · unreachable · no usable answer yet",
		worker.CredentialsRejected: "127.0.0.1:3000 · credentials rejected",
		worker.ClaimsRefused:       "127.0.0.1:3000 · refuses to hand out work",
		worker.CannotAccept:        "127.0.0.1:3000 · cannot accept a start",
		worker.WorkDirUnusable:     "127.0.0.1:3000 · the work directory cannot be used",
	} {
		c := worker.ConnectionView{Name: "127.0.0.1:3000", Origin: "http://127.0.0.1:3000", State: state}
		if state == worker.Connected {
			c.LastContact = now
		}
		if got, _, _ := connectionLine(worker.Snapshot{Connections: []worker.ConnectionView{c}}, now); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
