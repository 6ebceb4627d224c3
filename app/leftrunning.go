package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
)

// The journal says of an item that it has started until it is told otherwise: also
// when Countersign was killed meanwhile, which the next start finds out. Until then
// the commands that read the history find it out here.

// wordWasRunning is the accept status of an item that ran when Countersign ended.
const wordWasRunning = "Was running"

// wasRunningWords is what there is to know of such an item.
const wasRunningWords = "Countersign ended while it ran: it may have run wholly, partly or not at all. The next start with its connection marks it " +
	worker.WordInterrupted + "; it is never run again."

// statusNow says an item's accept status as the history has it, for what is held by
// nobody. It is to be made after the history was read: an item that is started
// later is then no question.
type statusNow func(worker.Hold) string

// statusesNow asks the running Countersign once what it holds. One that does not
// answer as it should is taken to hold everything.
func statusesNow(ctx context.Context, client *control.Client) statusNow {
	s, err := client.Status(ctx)
	var none *control.NotRunning
	alone := errors.As(err, &none)
	return func(h worker.Hold) string {
		_, held := s.Find(h.ID)
		if isUnended(h) && !held && (err == nil || alone) {
			return wordWasRunning
		}
		return h.Status()
	}
}

// isUnended says whether the journal has the start of an item and not its end.
func isUnended(h worker.Hold) bool {
	return !h.Closed && h.Outcome == nil && (h.Execution == worker.Starting || h.Execution == worker.Running)
}

// wasRunning finds what ran when Countersign ended, in a journal that nobody writes.
func wasRunning(ctx context.Context, s *store.Store) (ids []worker.HoldID, err error) {
	left, err := s.LeftOpen(ctx)
	for _, l := range left {
		for _, id := range l.Holds {
			h, err := s.Hold(ctx, id)
			if err != nil {
				return nil, err
			}
			if isUnended(h) {
				ids = append(ids, id)
			}
		}
	}
	return ids, err
}

// writeLost says what is known of an item whose end nobody saw: when it started, and
// what of its output is on disk.
func writeLost(line func(name, value string), v worker.View) {
	for _, e := range v.Steps {
		if e.Step == worker.StepStarting {
			line("started", localTime(e.At))
		}
	}
	if v.Item.Kind != wire.KindExec {
		return
	}
	kept := "none was kept"
	if info, err := os.Stat(v.OutputPath); err == nil && info.Size() > 0 {
		kept = fmt.Sprintf("%d bytes on disk, up to where it was interrupted; tail prints them", info.Size())
	}
	line("output", kept)
}
