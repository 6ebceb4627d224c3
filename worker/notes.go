package worker

import (
	"context"
	"log/slog"
)

// notes writes what changes no fact to the journal, behind the back of whoever
// noted it: a heartbeat never waits for the disk.
type notes struct {
	queue chan note
	ended chan struct{}
}

type note struct {
	hold HoldID
	move Move
}

func (e *Engine) startNotes() {
	e.notes = notes{queue: make(chan note, 256), ended: make(chan struct{})}
	go func() {
		defer close(e.notes.ended)
		for n := range e.notes.queue {
			if err := e.cfg.Journal.Move(context.Background(), n.hold, n.move); err != nil {
				e.log.Warn("a note could not be written to the journal", "hold", int64(n.hold), "error", err)
			}
		}
	}()
}

func (n *notes) add(id HoldID, m Move) {
	select {
	case n.queue <- note{id, m}:
	default:
		slog.Warn("a note was left out of the journal: the disk is slow", "hold", int64(id))
	}
}

// stop writes what is queued and ends. Nothing may be added any more.
func (n *notes) stop() {
	close(n.queue)
	<-n.ended
}
