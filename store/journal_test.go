package store

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"countersign/worker"
	"countersign/worker/execute"
)

func TestAHoldIsReadBackAsItWasWritten(t *testing.T) {
	s := opened(t)
	h := claimed("i", "go test")
	h.Item.Payload = json.RawMessage("{ \"command\":\"a\\u0000\xff\" }") // byte for byte
	h.Item.SessionID, h.Returned, h.DecidedBy, h.Words = "subsess_a.b#\x00'", true, "rule", `"; DROP TABLE holds`
	ta := open(t, s, h)
	h.ID = ta.id
	if got := ta.hold(); !reflect.DeepEqual(got, h) {
		t.Errorf("got\n%+v, want\n%+v", got, h)
	}
	ta.started().must(worker.StepFinished, outcome(), finish)
	h.Facts, h.Outcome = ta.facts, outcome()
	if got := ta.hold(); !reflect.DeepEqual(got, h) {
		t.Errorf("got\n%+v, want\n%+v", got, h)
	}
}

func TestWhatAnItemLacksStaysLacking(t *testing.T) {
	s := opened(t)
	h := worker.Hold{Origin: "o", Item: worker.Item{ID: "i"}}
	ta := open(t, s, h)
	got := ta.hold()
	if got.Item.Payload != nil || !got.Item.CreatedAt.IsZero() || !got.OpenedAt.IsZero() || got.Outcome != nil {
		t.Errorf("got %+v", got)
	}
	want := worker.Facts{
		Decision: worker.Undecided, Acceptance: worker.NotAsked,
		Execution: worker.NotStarted, Delivery: worker.NothingToDeliver,
	}
	if got.Facts != want {
		t.Errorf("facts %+v", got.Facts)
	}
}

func TestNothingStartsUnlessItIsApprovedAndAccepted(t *testing.T) {
	for name, before := range map[string]func(*worker.Facts){
		"undecided":   func(f *worker.Facts) { f.Acceptance = worker.Accepted },
		"declined":    func(f *worker.Facts) { f.Decision, f.Acceptance = worker.Declined, worker.Accepted },
		"not asked":   approve,
		"asking":      func(f *worker.Facts) { approve(f); f.Acceptance = worker.Asking },
		"refused":     func(f *worker.Facts) { approve(f); f.Acceptance = worker.Refused },
		"unconfirmed": func(f *worker.Facts) { approve(f); f.Acceptance = worker.Unconfirmed },
	} {
		t.Run(name, func(t *testing.T) {
			ta := open(t, opened(t), claimed("i", "c"))
			ta.must(worker.StepAsking, nil, before)
			ta.forbidden(worker.StepStarting, nil, start)
			// Nor by accepting in the same step: the accept has to be on disk before.
			ta.forbidden(worker.StepStarting, nil, func(f *worker.Facts) { approve(f); accept(f); start(f) })
			ta.forbidden(worker.StepAccepted, nil, func(f *worker.Facts) { approve(f); accept(f); start(f) })
			ta.forbidden(worker.StepAccepted, nil, func(f *worker.Facts) { accept(f); f.Execution = worker.Running })
		})
	}
}

func TestAnItemStartsOnceEverUnderAnyHold(t *testing.T) {
	s := opened(t)
	first, second := open(t, s, claimed("i", "c")), open(t, s, claimed("i", "c"))
	first.accepted()
	second.accepted()
	first.must(worker.StepStarting, nil, start)
	first.forbidden(worker.StepStarting, nil, start)
	second.forbidden(worker.StepStarting, nil, start)
	first.must(worker.StepFinished, outcome(), finish)
	first.forbidden(worker.StepStarting, nil, start)
	second.forbidden(worker.StepStarting, nil, start)
	third := open(t, s, claimed("i", "c")).accepted()
	third.forbidden(worker.StepStarting, nil, start)

	elsewhere := claimed("i", "c")
	elsewhere.Origin = "http://127.0.0.1:4000"
	open(t, s, elsewhere).started() // another harness's item
}

func TestAnExecutionEndsOnlyAfterItStarted(t *testing.T) {
	for _, end := range []worker.Execution{worker.Finished, worker.Stopped, worker.CouldNotStart, worker.Interrupted} {
		t.Run(string(end), func(t *testing.T) {
			ta := open(t, opened(t), claimed("i", "c")).accepted()
			set := func(f *worker.Facts) { f.Execution = end }
			ta.forbidden(worker.StepFinished, outcome(), set)
			ta.must(worker.StepStarting, nil, start)
			ta.must(worker.StepFinished, outcome(), set)
			for _, other := range []worker.Execution{worker.Starting, worker.Running, worker.Finished, worker.Stopped} {
				if other != end {
					ta.forbidden(worker.StepFinished, nil, func(f *worker.Facts) { f.Execution = other })
				}
			}
			ta.must(worker.StepDelivered, nil, deliver)
		})
	}
}

func TestAnUnknownExecutionIsRefused(t *testing.T) {
	ta := open(t, opened(t), claimed("i", "c")).started()
	ta.forbidden(worker.StepFinished, nil, func(f *worker.Facts) { f.Execution = "exploded" })
}

func TestAnOutcomeNeedsAnEndAndTheFirstOneStays(t *testing.T) {
	ta := open(t, opened(t), claimed("i", "c")).accepted()
	ta.forbidden(worker.StepDecided, outcome(), same)
	ta.forbidden(worker.StepStarting, outcome(), start)
	ta.must(worker.StepStarting, nil, start)
	ta.forbidden(worker.StepLease, outcome(), same)
	ta.must(worker.StepFinished, outcome(), finish)
	second := outcome()
	second.Exit, second.Result = 0, json.RawMessage(`0`)
	ta.must(worker.StepDelivering, second, func(f *worker.Facts) { f.Delivery = worker.Delivering })
	if got := ta.hold().Outcome; !reflect.DeepEqual(got, outcome()) {
		t.Errorf("got %+v", got)
	}
}

func TestRunningIsNeverStored(t *testing.T) {
	ta := open(t, opened(t), claimed("i", "c")).started()
	ta.must(worker.StepLease, nil, func(f *worker.Facts) { f.Execution = worker.Running })
	entries := ta.entries()
	if got := ta.hold().Execution; got != worker.Starting || entries[len(entries)-1].Facts.Execution != worker.Starting {
		t.Errorf("got %q, %+v", got, entries)
	}
}

func TestAnExecutionNeverGoesBack(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c")).started()
	ta.must(worker.StepFinished, outcome(), finish)
	ta.must(worker.StepDelivering, nil, func(f *worker.Facts) { f.Execution = worker.NotStarted })
	if got := ta.hold(); got.Execution != worker.Finished || got.Outcome == nil {
		t.Errorf("got %+v", got)
	}
	err := s.writer.do(t.Context(), func(w *writer) error {
		_, err := w.exec(`UPDATE items SET execution = 'not started'`)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "only moves forward") {
		t.Errorf("the last line of defence: %v", err)
	}
}

func TestAClosedHoldTakesOnlyNotes(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c")).started()
	ta.must(worker.StepFinished, outcome(), finish)
	ta.must(worker.StepDelivered, nil, deliver)
	ta.forbidden(worker.StepDelivered, nil, same)
	ta.forbidden(worker.StepDecided, nil, func(f *worker.Facts) { f.Closed = false })
	if err := s.Move(t.Context(), ta.id, worker.Move{At: noon, Step: worker.StepOffered, Reason: "again"}); err != nil {
		t.Fatal(err)
	}
	entries := ta.entries()
	last := entries[len(entries)-1]
	want := worker.Entry{Hold: ta.id, At: noon, Step: worker.StepOffered, Reason: "again", Facts: ta.facts}
	if last != want {
		t.Errorf("got %+v, want %+v", last, want)
	}
}

func TestAClosedHoldCannotStart(t *testing.T) {
	ta := open(t, opened(t), claimed("i", "c")).accepted()
	ta.must(worker.StepRefused, nil, func(f *worker.Facts) { f.Closed = true })
	ta.forbidden(worker.StepStarting, nil, start)
}

func TestANoteHasNoOutcomeAndStartsNothing(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c")).accepted()
	for _, m := range []worker.Move{{Step: worker.StepStarting}, {Step: worker.StepLease, Outcome: outcome()}} {
		if err := s.Move(t.Context(), ta.id, m); !errors.Is(err, worker.ErrForbidden) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestHoldsOfOneItemShareItsExecutionAndOutcome(t *testing.T) {
	s := opened(t)
	first := open(t, s, claimed("i", "c"))
	first.must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision, f.Closed = worker.Released, true })
	second := open(t, s, claimed("i", "c")).started()
	second.must(worker.StepRecovered, outcome(), func(f *worker.Facts) { f.Execution = worker.Interrupted })
	third := open(t, s, claimed("i", "c"))
	for _, ta := range []*tale{first, second, third} {
		got := ta.hold()
		if got.Execution != worker.Interrupted || !reflect.DeepEqual(got.Outcome, outcome()) {
			t.Errorf("hold %d: %+v", ta.id, got)
		}
		found, err := s.Find(t.Context(), worker.HistoryQuery{Status: got.Status()})
		if err != nil || len(found) != 3 {
			t.Errorf("by status %q: %d holds, %v", got.Status(), len(found), err)
		}
	}
	found, err := s.Find(t.Context(), worker.HistoryQuery{Text: "needle"})
	if err != nil || len(found) != 3 {
		t.Errorf("by output: %d holds, %v", len(found), err)
	}
}

func TestAnItemThatComesBackAsOtherWorkKeepsBothAndNeverStartsAsTheOther(t *testing.T) {
	s := opened(t)
	original := open(t, s, claimed("i", "ls"))
	other := claimed("i", "rm -rf .")
	changed := open(t, s, other).accepted()
	kind := claimed("i", "ls")
	kind.Item.Kind = "write"
	renamed := open(t, s, kind).accepted()
	missing := claimed("i", "")
	missing.Item.Payload = nil
	emptied := open(t, s, missing).accepted()
	if got := changed.hold(); !reflect.DeepEqual(got.Item, other.Item) {
		t.Errorf("got %+v", got.Item)
	}
	if got := emptied.hold(); got.Item.Payload != nil {
		t.Errorf("got %q", got.Item.Payload)
	}
	for _, ta := range []*tale{changed, renamed, emptied} {
		ta.forbidden(worker.StepStarting, nil, start)
	}
	if got := original.hold(); !reflect.DeepEqual(got.Item, claimed("i", "ls").Item) {
		t.Errorf("the original became %+v", got.Item)
	}
	original.started()
}

func TestStatusInTheFileIsTheHoldsStatus(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c"))
	check := func() {
		t.Helper()
		var stored string
		if err := s.reading.QueryRow(`SELECT status FROM holds WHERE id = ?`, ta.id).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if want := ta.hold().Status(); stored != want {
			t.Errorf("stored %q, want %q", stored, want)
		}
	}
	timedOut := outcome()
	timedOut.How = execute.TimedOut
	check()
	ta.started()
	check()
	ta.must(worker.StepFinished, timedOut, finish)
	check()
	ta.must(worker.StepDelivered, nil, func(f *worker.Facts) { f.Delivery = worker.Undelivered })
	check()
}

func TestUnfinishedAndLastFindWhatRecoveryNeeds(t *testing.T) {
	s := opened(t)
	a := open(t, s, claimed("a", "c"))
	b := open(t, s, claimed("b", "c"))
	b.must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision, f.Closed = worker.Released, true })
	c := open(t, s, claimed("c", "c"))
	other := claimed("a", "c")
	other.Environment = "other"
	open(t, s, other)
	other = claimed("a", "c")
	other.Origin = "http://elsewhere"
	open(t, s, other)
	b2 := open(t, s, claimed("b", "c"))

	left, err := s.Unfinished(t.Context(), "http://127.0.0.1:3000", "env")
	if err != nil {
		t.Fatal(err)
	}
	if want := []worker.Hold{a.hold(), c.hold(), b2.hold()}; !reflect.DeepEqual(left, want) {
		t.Errorf("got %+v, want %+v", left, want)
	}
	last, known, err := s.Last(t.Context(), "http://127.0.0.1:3000", "b")
	if err != nil || !known || !reflect.DeepEqual(last, b2.hold()) {
		t.Errorf("got %+v, %v, %v", last, known, err)
	}
	if _, known, err := s.Last(t.Context(), "http://127.0.0.1:3000", "none"); known || err != nil {
		t.Errorf("an unknown item: %v, %v", known, err)
	}
}

func TestWhatIsUnfinishedIsFoundByHarnessAndEnvironment(t *testing.T) {
	s := opened(t)
	elsewhere := claimed("a", "c")
	elsewhere.Origin, elsewhere.Connection = "http://elsewhere", "old name"
	open(t, s, elsewhere)
	open(t, s, claimed("b", "c"))
	open(t, s, claimed("c", "c")).must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision, f.Closed = worker.Released, true })
	elsewhere.Item.ID, elsewhere.Connection = "d", "new name"
	open(t, s, elsewhere)
	other := claimed("a", "c")
	other.Environment = ""
	open(t, s, other)

	left, err := s.LeftOpen(t.Context())
	want := []worker.LeftOpen{
		{Connection: "new name", Origin: "http://elsewhere", Environment: "env", Holds: []worker.HoldID{1, 4}},
		{Connection: "home", Origin: "http://127.0.0.1:3000", Environment: "env", Holds: []worker.HoldID{2}},
		{Connection: "home", Origin: "http://127.0.0.1:3000", Holds: []worker.HoldID{5}},
	}
	if err != nil || !reflect.DeepEqual(left, want) {
		t.Errorf("got %+v, %v, want %+v", left, err, want)
	}
}

func TestAHoldThatThereIsNotIsSaid(t *testing.T) {
	s := opened(t)
	if _, err := s.Hold(t.Context(), 7); !errors.Is(err, ErrNoHold) {
		t.Errorf("got %v", err)
	}
	if err := s.Move(t.Context(), 7, worker.Move{Step: worker.StepLease}); !errors.Is(err, ErrNoHold) {
		t.Errorf("got %v", err)
	}
}

func TestTheJournalOfAHoldTellsItsStory(t *testing.T) {
	s := opened(t)
	h := claimed("i", "c")
	id, err := s.Open(t.Context(), h, "returned")
	if err != nil {
		t.Fatal(err)
	}
	ta := &tale{t: t, s: s, id: id, facts: h.Facts}
	ta.started().must(worker.StepFinished, outcome(), finish)
	var steps []worker.Step
	for _, e := range ta.entries() {
		steps = append(steps, e.Step)
	}
	want := []worker.Step{worker.StepClaimed, worker.StepDecided, worker.StepAccepted, worker.StepStarting, worker.StepFinished}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("got %v", steps)
	}
	first := ta.entries()[0]
	if first.Reason != "returned" || first.Facts != h.Facts || !first.At.Equal(h.OpenedAt) {
		t.Errorf("got %+v", first)
	}
}

func TestAForbiddenStepLeavesNothingToSearchFor(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c")).started()
	ta.must(worker.StepRefused, nil, func(f *worker.Facts) { f.Closed = true })
	ta.forbidden(worker.StepFinished, outcome(), finish)
	found, err := s.Find(t.Context(), worker.HistoryQuery{Text: "needle"})
	if err != nil || len(found) != 0 {
		t.Errorf("%d holds, %v", len(found), err)
	}
}

func TestAStepOfOneHoldSeesWhatAnotherDidToTheItem(t *testing.T) {
	s := opened(t)
	first := open(t, s, claimed("i", "c"))
	first.must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision = worker.Released })
	second := open(t, s, claimed("i", "c")).started()
	second.must(worker.StepFinished, outcome(), finish)
	note := worker.Move{At: noon, Step: worker.StepLease, Reason: "because"}
	if err := s.Move(t.Context(), first.id, note); err != nil {
		t.Fatal(err)
	}
	entries := first.entries()
	if last := entries[len(entries)-1]; last.Facts.Execution != worker.Finished {
		t.Errorf("the item is %q to its first hold", last.Facts.Execution)
	}
	first.forbidden(worker.StepStarting, nil, start)
}

func TestAStepThatWasUndoneIsForgotten(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c"))
	letGo := held(t, s)
	facts := ta.facts
	approve(&facts)
	done := queue(t, s, t.Context(), func(w *writer) error {
		if err := w.moveAll(ta.id, []worker.Move{{At: noon, Step: worker.StepDecided, Facts: &facts}}); err != nil {
			return err
		}
		return errors.New("the disk failed")
	})
	letGo()
	if err := <-done; err == nil {
		t.Fatal("it was made")
	}
	if err := s.Move(t.Context(), ta.id, worker.Move{At: noon, Step: worker.StepLease}); err != nil {
		t.Fatal(err)
	}
	entries := ta.entries()
	if last := entries[len(entries)-1]; last.Facts.Decision != worker.Undecided {
		t.Errorf("it is remembered as %q", last.Facts.Decision)
	}
}
