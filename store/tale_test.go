package store

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
)

// tale moves one hold along and keeps its facts, as the engine does.
type tale struct {
	t     *testing.T
	s     *Store
	id    worker.HoldID
	facts worker.Facts
}

func open(t *testing.T, s *Store, h worker.Hold) *tale {
	t.Helper()
	id, err := s.Open(t.Context(), h, "")
	if err != nil {
		t.Fatal(err)
	}
	return &tale{t: t, s: s, id: id, facts: h.Facts}
}

func (ta *tale) try(step worker.Step, o *execute.Outcome, change func(*worker.Facts)) error {
	facts := ta.facts
	change(&facts)
	err := ta.s.Move(ta.t.Context(), ta.id, worker.Move{At: noon, Step: step, Reason: "because", Facts: &facts, Outcome: o})
	if err == nil {
		ta.facts = facts
	}
	return err
}

func (ta *tale) must(step worker.Step, o *execute.Outcome, change func(*worker.Facts)) {
	ta.t.Helper()
	if err := ta.try(step, o, change); err != nil {
		ta.t.Fatalf("%s: %v", step, err)
	}
}

func (ta *tale) hold() worker.Hold {
	ta.t.Helper()
	h, err := ta.s.Hold(ta.t.Context(), ta.id)
	if err != nil {
		ta.t.Fatal(err)
	}
	return h
}

// forbidden checks that a step is refused and that nothing of it was kept.
func (ta *tale) forbidden(step worker.Step, o *execute.Outcome, change func(*worker.Facts)) {
	ta.t.Helper()
	before, entries := ta.hold(), ta.entries()
	if err := ta.try(step, o, change); !errors.Is(err, worker.ErrForbidden) {
		ta.t.Errorf("%s: got %v, want it forbidden", step, err)
	}
	if after := ta.hold(); !reflect.DeepEqual(before, after) {
		ta.t.Errorf("a forbidden %s changed\n%+v to\n%+v", step, before, after)
	}
	if after := ta.entries(); len(after) != len(entries) {
		ta.t.Errorf("a forbidden %s left an entry", step)
	}
}

func (ta *tale) entries() []worker.Entry {
	ta.t.Helper()
	entries, err := ta.s.Entries(ta.t.Context(), ta.id)
	if err != nil {
		ta.t.Fatal(err)
	}
	return entries
}

func approve(f *worker.Facts) { f.Decision, f.DecidedBy = worker.Approved, "operator" }
func accept(f *worker.Facts)  { f.Acceptance = worker.Accepted }
func start(f *worker.Facts)   { f.Execution = worker.Starting }
func finish(f *worker.Facts)  { f.Execution = worker.Finished }
func deliver(f *worker.Facts) { f.Delivery, f.Closed = worker.Delivered, true }
func same(*worker.Facts)      {}

func (ta *tale) accepted() *tale {
	ta.t.Helper()
	ta.must(worker.StepDecided, nil, approve)
	ta.must(worker.StepAccepted, nil, accept)
	return ta
}

func (ta *tale) started() *tale {
	ta.t.Helper()
	ta.accepted().must(worker.StepStarting, nil, start)
	return ta
}

func outcome() *execute.Outcome {
	return &execute.Outcome{
		How: execute.Ended, Exit: 1, Result: json.RawMessage(`{ "exitCode" : 1 }`), StartedAt: noon,
		FinishedAt: noon.Add(time.Second), StdoutBytes: 7, Head: "needle in the output",
	}
}
