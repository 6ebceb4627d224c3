package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"countersign/worker"
)

func (s *Store) lookUp(t *testing.T, text string) int {
	t.Helper()
	found, err := s.Find(t.Context(), worker.HistoryQuery{Text: text, Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// rows counts what can be searched for now, without catching up.
func rows(t *testing.T, s *Store, query string, args ...any) (n int) {
	t.Helper()
	if err := s.reading.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// behind changes the file behind the store's back.
func behind(t *testing.T, s *Store, statement string) {
	t.Helper()
	err := s.writer.do(t.Context(), func(w *writer) error {
		_, err := w.exec(statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestASearchFindsWhatWasWrittenDownAMomentAgo(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "make haystack"))
	if n := s.lookUp(t, "haystack"); n != 1 {
		t.Errorf("%d found by the command", n)
	}
	ta.started().must(worker.StepFinished, outcome(), finish)
	if n := s.lookUp(t, "needle"); n != 1 {
		t.Errorf("%d found by the output", n)
	}
	if n := s.lookUp(t, "haystack"); n != 1 {
		t.Errorf("%d found by the command, after its end", n)
	}
}

func TestTheOutputOfAnItemIsFoundWithAllItsHolds(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "c")).must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision, f.Closed = worker.Released, true })
	if n := s.lookUp(t, "needle"); n != 0 {
		t.Errorf("%d found before it ran", n)
	}
	open(t, s, claimed("i", "c")).started().must(worker.StepFinished, outcome(), finish)
	if n := s.lookUp(t, "needle"); n != 2 {
		t.Errorf("%d found", n)
	}
}

func TestManyEntriesAreMadeSearchableWhileStepsGoOn(t *testing.T) {
	s := opened(t)
	const many = 3 * searchableBatch
	for i := range many {
		open(t, s, claimed(fmt.Sprint("i", i), "make"))
	}
	// With no step after it, the last batch is too small to wait for company.
	if n := rows(t, s, `SELECT COUNT(*) FROM search`); n < many-searchableBatch {
		t.Errorf("%d of %d are searchable", n, many)
	}
	if n := s.lookUp(t, "make"); n != many {
		t.Errorf("%d found", n)
	}
}

func TestWithNoMoreStepsTheRestBecomesSearchable(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "make"))
	for until := time.Now().Add(10 * time.Second); rows(t, s, `SELECT COUNT(*) FROM search`) != 1; time.Sleep(quiet / 10) {
		if time.Now().After(until) {
			t.Fatal("it never was")
		}
	}
}

func TestAfterARestartWhatWasLeftIsFound(t *testing.T) {
	s := opened(t)
	path := s.path
	open(t, s, claimed("i", "make"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := reopened(t, path).lookUp(t, "make"); n != 1 {
		t.Errorf("%d found", n)
	}
}

// Two processes have the history open where the operator searches in a terminal.
func TestTwoWhoMakeTheSameSearchableDoItOnce(t *testing.T) {
	s := opened(t)
	other := reopened(t, s.path)
	ta := open(t, s, claimed("i", "make"))
	if n := other.lookUp(t, "make"); n != 1 {
		t.Errorf("%d found by the other", n)
	}
	ta.started().must(worker.StepFinished, outcome(), finish)
	if n := s.lookUp(t, "needle"); n != 1 {
		t.Errorf("%d found", n)
	}
	if n := rows(t, s, `SELECT COUNT(*) FROM search`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestAnOutcomeThatCannotBeReadHidesNothingElse(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("bad", "make")).started().must(worker.StepFinished, outcome(), finish)
	behind(t, s, `UPDATE items SET outcome = '{'`)
	for i := range 5 {
		open(t, s, claimed(fmt.Sprint("i", i), "haystack"))
	}
	if n := s.lookUp(t, "haystack"); n != 5 {
		t.Errorf("%d found", n)
	}
}

func TestASearchThatIsAheadOfTheJournalBeginsAnew(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "make"))
	behind(t, s, `UPDATE searchable SET through = 1000000`)
	if n := s.lookUp(t, "make"); n != 1 {
		t.Errorf("%d found", n)
	}
}

func TestASearchThatCannotFollowSaysSo(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "make"))
	behind(t, s, `DELETE FROM searchable`)
	if found, err := s.Find(t.Context(), worker.HistoryQuery{Text: "make"}); err == nil {
		t.Errorf("%d found, and no error", len(found))
	}
}

// What came from other holds of an item is not looked at again with each note.
func TestOnlyAnOutcomeHasTheOtherHoldsOfAnItemLookedAt(t *testing.T) {
	s := opened(t)
	for range 3 {
		open(t, s, claimed("i", "make"))
	}
	last := open(t, s, claimed("i", "make")).started()
	last.must(worker.StepFinished, outcome(), finish)
	if n := s.lookUp(t, "needle"); n != 4 {
		t.Errorf("%d found by the output", n)
	}
	behind(t, s, `UPDATE search SET output = ''`)
	if err := s.Move(t.Context(), last.id, worker.Move{At: noon, Step: worker.StepLease}); err != nil {
		t.Fatal(err)
	}
	if n := s.lookUp(t, "needle"); n != 0 {
		t.Errorf("a note had %d looked at", n)
	}
}
