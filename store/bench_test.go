package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
)

// BenchmarkMove is one durable step: one commit, one wait for the disk.
func BenchmarkMove(b *testing.B) {
	s := opened(b)
	id, err := s.Open(b.Context(), claimed("i", "c"), "")
	if err != nil {
		b.Fatal(err)
	}
	facts := claimed("i", "c").Facts
	for b.Loop() {
		if err := s.Move(context.Background(), id, worker.Move{At: noon, Step: worker.StepLease, Facts: &facts}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "moves/s")
}

// BenchmarkMovesOfEight is the same by eight callers, who share commits.
func BenchmarkMovesOfEight(b *testing.B) {
	s := opened(b)
	before := s.writer.commits.Load()
	var left atomic.Int64
	left.Store(int64(b.N))
	var callers sync.WaitGroup
	b.ResetTimer()
	for n := range 8 {
		callers.Go(func() {
			h := claimed(fmt.Sprint("i", n), "c")
			id, err := s.Open(context.Background(), h, "")
			for err == nil && left.Add(-1) >= 0 {
				err = s.Move(context.Background(), id, worker.Move{At: noon, Step: worker.StepLease, Facts: &h.Facts})
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	callers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "moves/s")
	b.ReportMetric(float64(b.N)/float64(s.writer.commits.Load()-before), "moves/commit")
}

// BenchmarkLives is all that the journal is told of one item that is run, by four
// callers at once: five commits for each of them alone.
func BenchmarkLives(b *testing.B) {
	s := opened(b)
	before := s.writer.commits.Load()
	var next atomic.Int64
	var callers sync.WaitGroup
	b.ResetTimer()
	for range 4 {
		callers.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := live(s, claimed(fmt.Sprint("i", n), "go test ./pkg -run file")); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(float64(s.writer.commits.Load()-before)/float64(b.N), "commits/item")
}

// live writes down an item's life in the steps that the engine takes.
func live(s *Store, h worker.Hold) error {
	ctx := context.Background()
	_, _, err := s.Last(ctx, h.Origin, h.Item.ID)
	if err != nil {
		return err
	}
	var id worker.HoldID
	facts := h.Facts
	after := func(step worker.Step, o *execute.Outcome, change func(*worker.Facts)) worker.Move {
		change(&facts)
		now := facts
		return worker.Move{At: noon, Step: step, Facts: &now, Outcome: o}
	}
	id, err = s.Open(ctx, h, "", after(worker.StepDecided, nil, approve))
	for _, moves := range [][]worker.Move{
		{after(worker.StepAsking, nil, func(f *worker.Facts) { f.Acceptance = worker.Asking })},
		{after(worker.StepAccepted, nil, accept), after(worker.StepStarting, nil, start)},
		{after(worker.StepFinished, outcome(), finish)},
		{after(worker.StepDelivered, nil, deliver)},
	} {
		if err == nil {
			err = s.Move(ctx, id, moves...)
		}
	}
	return err
}

// BenchmarkHistory reads a history of 200 000 holds.
func BenchmarkHistory(b *testing.B) {
	s := reopened(b, filepath.Join(b.TempDir(), "h.db"))
	fill(b, s, 200_000)
	for name, q := range map[string]worker.HistoryQuery{
		"newest":        {},
		"deep page":     {Before: 5000},
		"session":       {Session: "sess_77"},
		"status":        {Status: worker.WordDeclined},
		"kind, none":    {Kind: "write"},
		"old":           {Until: noon.Add(time.Minute)},
		"rare word":     {Text: "file_123456"},
		"common word":   {Text: "test"},
		"one letter":    {Text: "t"},
		"word, session": {Text: "test", Session: "sess_77"},
		"two words":     {Text: "go pkg7"},
	} {
		b.Run("find/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Find(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("count/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Count(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func fill(b *testing.B, s *Store, holds int) {
	b.Helper()
	for from := 0; from < holds; from += 1000 {
		err := s.writer.do(context.Background(), func(w *writer) error {
			for i := from; i < from+1000; i++ {
				h := claimed(fmt.Sprint("i", i), fmt.Sprintf("go test ./pkg%d -run file_%d", i%1000, i))
				h.Item.SessionID = fmt.Sprint("sess_", i%500)
				h.OpenedAt = noon.Add(time.Duration(i) * time.Second)
				h.Closed = true
				if i%100 == 0 {
					h.Decision = worker.Declined
				}
				if _, err := w.open(h, ""); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
