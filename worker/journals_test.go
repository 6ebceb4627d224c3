package worker_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"countersign/worker"
)

// brokenJournal fails the steps it is told to.
type brokenJournal struct {
	worker.Journal
	fails func(worker.Step) bool
}

func (j brokenJournal) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	if j.fails(worker.StepClaimed) || j.anyFails(then) {
		return 0, errDisk
	}
	return j.Journal.Open(ctx, h, reason, then...)
}

func (j brokenJournal) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	if j.anyFails(steps) {
		return errDisk
	}
	return j.Journal.Move(ctx, id, steps...)
}

func (j brokenJournal) anyFails(steps []worker.Move) bool {
	return slices.ContainsFunc(steps, func(m worker.Move) bool { return j.fails(m.Step) })
}

type gateJournal struct {
	worker.Journal
	step worker.Step
	at   chan struct{}
	gate chan struct{}
}

func (j gateJournal) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	for _, s := range steps {
		if s.Step == j.step {
			close(j.at)
			<-j.gate
		}
	}
	return j.Journal.Move(ctx, id, steps...)
}

type forbidding struct{ brokenJournal }

func (j forbidding) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	for _, s := range steps {
		if s.Step == worker.StepStarting {
			return worker.ErrForbidden
		}
	}
	return j.brokenJournal.Move(ctx, id, steps...)
}

type slowOpen struct {
	worker.Journal
	d time.Duration
}

func (j slowOpen) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	time.Sleep(j.d)
	return j.Journal.Open(ctx, h, reason, then...)
}

// fullDisk refuses every write while it is full.
type fullDisk struct {
	worker.Journal
	full *atomic.Bool
}

func (j fullDisk) Usable(ctx context.Context) error {
	if j.full.Load() {
		return errDisk
	}
	return j.Journal.Usable(ctx)
}

func (j fullDisk) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	if j.full.Load() {
		return 0, errDisk
	}
	return j.Journal.Open(ctx, h, reason, then...)
}
