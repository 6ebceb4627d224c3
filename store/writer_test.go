package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mattn/go-sqlite3"

	"countersign/worker"
)

// held occupies the writer until it is let go, so that what comes meanwhile
// gathers in one batch.
func held(t *testing.T, s *Store) (letGo func()) {
	t.Helper()
	taken, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.writer.do(context.Background(), func(*writer) error {
			close(taken)
			<-release
			return nil
		})
	}()
	<-taken
	return func() {
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// queue puts a step behind those that wait already, and returns where its answer
// arrives.
func queue(t *testing.T, s *Store, ctx context.Context, change func(*writer) error) chan error {
	t.Helper()
	st := &step{ctx: ctx, change: change, done: make(chan error, 1)}
	if err := s.writer.enqueue(st); err != nil {
		t.Fatal(err)
	}
	return st.done
}

func set(name, value string) func(*writer) error {
	return func(w *writer) error {
		_, err := w.exec(`INSERT INTO settings (name, value) VALUES (?, ?)`, name, value)
		return err
	}
}

func settings(t *testing.T, s *Store) string {
	t.Helper()
	var names string
	err := s.reading.QueryRow(`SELECT COALESCE(GROUP_CONCAT(name, ' '), '') FROM (SELECT name FROM settings ORDER BY name)`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAStepThatFailsFailsAlone(t *testing.T) {
	s := opened(t)
	letGo := held(t, s)
	bad := errors.New("bad")
	first := queue(t, s, t.Context(), set("a", "1"))
	second := queue(t, s, t.Context(), func(w *writer) error {
		if err := set("b", "1")(w); err != nil {
			return err
		}
		return bad
	})
	third := queue(t, s, t.Context(), set("c", "1"))
	if got := settings(t, s); got != "" {
		t.Errorf("before the commit there is %q", got)
	}
	letGo()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-second; !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if err := <-third; err != nil {
		t.Error(err)
	}
	if got := settings(t, s); got != "a c" {
		t.Errorf("there is %q", got)
	}
}

func TestStepsThatWaitShareACommit(t *testing.T) {
	s := opened(t)
	before := s.writer.commits.Load()
	letGo := held(t, s)
	var answers []chan error
	for _, name := range []string{"a", "b", "c"} {
		answers = append(answers, queue(t, s, t.Context(), set(name, "1")))
	}
	letGo()
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if n := s.writer.commits.Load() - before; n != 2 { // the one that was held, and one for the three
		t.Errorf("%d commits", n)
	}
}

func TestStepsOfOneCallerKeepTheirOrder(t *testing.T) {
	s := opened(t)
	ids := make([]worker.HoldID, 8)
	var callers sync.WaitGroup
	for n := range ids {
		callers.Go(func() {
			id, err := s.Open(t.Context(), claimed(fmt.Sprint("i", n), "c"), "")
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = id
			for i := range 50 {
				if err := s.Move(t.Context(), id, worker.Move{At: noon, Step: worker.StepLease, Reason: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	for _, id := range ids {
		entries, err := s.Entries(t.Context(), id)
		if err != nil || len(entries) != 51 {
			t.Fatalf("hold %d: %d entries, %v", id, len(entries), err)
		}
		for i, e := range entries[1:] {
			if e.Reason != fmt.Sprint(i) {
				t.Fatalf("hold %d: entry %d is %q", id, i, e.Reason)
			}
		}
	}
}

func TestACallerThatGivesUpBeforeItsTurnLeavesNothing(t *testing.T) {
	s := opened(t)
	letGo := held(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	done := queue(t, s, ctx, set("a", "1"))
	go func() { answer <- s.SetPaused(ctx, true, noon) }()
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	letGo()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.writer.do(t.Context(), set("z", "1")); err != nil {
		t.Fatal(err)
	}
	if got := settings(t, s); got != "z" {
		t.Errorf("there is %q", got)
	}
}

func TestCloseCommitsWhatIsQueued(t *testing.T) {
	s := opened(t)
	path := s.path
	letGo := held(t, s)
	var answers []chan error
	for i := range 10 {
		answers = append(answers, queue(t, s, t.Context(), set(fmt.Sprint(i), "1")))
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	letGo()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if got := settings(t, reopened(t, path)); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("there is %q", got)
	}
}

// pages limits how large the file may grow, as a full disk does.
func pages(t *testing.T, s *Store, limit string) {
	t.Helper()
	var got int
	if err := s.writer.do(t.Context(), func(w *writer) error { return w.row("PRAGMA max_page_count = "+limit, nil, &got) }); err != nil {
		t.Fatal(err)
	}
}

func TestOnAFullDiskStepsFailAndTheStoreRecovers(t *testing.T) {
	s := opened(t)
	ta := open(t, s, claimed("i", "c")).started()
	pages(t, s, "1") // no more than it has
	letGo := held(t, s)
	big := outcome()
	big.Result = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	facts := ta.facts
	finish(&facts)
	full := queue(t, s, t.Context(), func(w *writer) error {
		return w.moveAll(ta.id, []worker.Move{{At: noon, Step: worker.StepFinished, Facts: &facts, Outcome: big}})
	})
	beside := queue(t, s, t.Context(), set("a", "1"))
	letGo()
	var e sqlite3.Error
	if err := <-full; !errors.As(err, &e) || e.Code != sqlite3.ErrFull {
		t.Errorf("got %v", err)
	}
	// A step beside it is committed, or told that it is not.
	err := <-beside
	if kept := settings(t, s); (err == nil) != (kept == "a") {
		t.Errorf("answered %v, kept %q", err, kept)
	}
	if got := ta.hold(); got.Execution != worker.Starting || got.Outcome != nil {
		t.Errorf("got %+v", got)
	}
	ta.forbidden(worker.StepStarting, nil, start)
	pages(t, s, "1000000")
	ta.must(worker.StepFinished, big, finish)
	if got := ta.hold().Outcome; got == nil || len(got.Result) != len(big.Result) {
		t.Errorf("got %+v", got)
	}
}

func TestALostTransactionFailsOnlyTheStepThatLostIt(t *testing.T) {
	s := opened(t)
	letGo := held(t, s)
	first := queue(t, s, t.Context(), set("a", "1"))
	// SQLite itself rolls back like this on some failures of the disk.
	second := queue(t, s, t.Context(), func(w *writer) error {
		if _, err := w.exec("ROLLBACK"); err != nil {
			return err
		}
		return errors.New("the disk failed")
	})
	third := queue(t, s, t.Context(), set("c", "1"))
	letGo()
	if err := <-second; err == nil || !strings.Contains(err.Error(), "the disk failed") {
		t.Errorf("got %v", err)
	}
	for _, answer := range []chan error{first, third} {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if err := s.writer.do(t.Context(), set("d", "1")); err != nil {
		t.Fatal(err)
	}
	if got := settings(t, s); got != "a c d" {
		t.Errorf("there is %q", got)
	}
}

// Another process may keep the file to itself. It is waited for once, not once
// for each step.
func TestABatchThatCannotBeginIsAnsweredAtOnce(t *testing.T) {
	s := opened(t)
	var got int
	if err := s.writer.do(t.Context(), func(w *writer) error { return w.row("PRAGMA busy_timeout = 1", nil, &got) }); err != nil {
		t.Fatal(err)
	}
	other := reopened(t, s.path)
	letGo := held(t, s)
	tries := 0
	first := queue(t, s, t.Context(), func(w *writer) error {
		tries++
		if tries == 1 {
			// The batch is undone for this, and then the file is another's.
			if _, err := w.exec("ROLLBACK"); err != nil {
				return err
			}
			if _, err := other.writer.conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
				return err
			}
		}
		return errors.New("bad")
	})
	second := queue(t, s, t.Context(), set("a", "1"))
	third := queue(t, s, t.Context(), set("b", "1"))
	letGo()
	for _, answer := range []chan error{first, second, third} {
		var e sqlite3.Error
		if err := <-answer; !errors.As(err, &e) || e.Code != sqlite3.ErrBusy {
			t.Errorf("got %v", err)
		}
	}
	if tries != 1 {
		t.Errorf("it was tried %d times", tries)
	}
	if _, err := other.writer.conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.do(t.Context(), set("c", "1")); err != nil {
		t.Error(err)
	}
}
