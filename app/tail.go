package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// tailCommand follows the output of an item until it has ended.
type tailCommand struct {
	ID worker.HoldID `arg:"" help:"The item's number, as ps or history lists it."`
}

const (
	tailEvery = 200 * time.Millisecond
	tailLines = 4096 // at once
)

// Run implements the command.
func (c *tailCommand) Run(g *global) error {
	p, err := g.place()
	if err != nil {
		return err
	}
	ctx, cancel := withSignals(context.Background())
	defer cancel(nil)
	client := control.NewClient(p.data)
	defer client.Close()
	tail := follower{stdout: bufio.NewWriter(os.Stdout), stderr: bufio.NewWriter(os.Stderr)}
	defer tail.close()
	for waits := false; ; {
		h, word, over, err := c.find(ctx, client, p)
		if err != nil {
			return err
		}
		if h.Execution == worker.NotStarted && !over && !waits {
			waits = true
			fmt.Fprintf(os.Stderr, "%d has not started (%s).\n", c.ID, word)
		}
		if err := tail.more(h.OutputPath); err != nil {
			return err
		}
		if over {
			if word == wordWasRunning {
				word += ". " + wasRunningWords
			}
			fmt.Fprintf(os.Stderr, "[%s%s]\n", word, exitWords(h))
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tailEvery):
		}
	}
}

func exitWords(h worker.Hold) string {
	if h.Outcome == nil || h.Item.Kind != "exec" {
		return ""
	}
	return fmt.Sprintf(", exit %d", h.Outcome.Exit)
}

// find asks the running instance for the hold, else the history. over says that
// no more output will come.
func (c *tailCommand) find(ctx context.Context, client *control.Client, p place) (h worker.Hold, word string, over bool, err error) {
	s, err := client.Status(ctx)
	var none *control.NotRunning
	if err != nil && !errors.As(err, &none) {
		return h, "", false, err
	}
	if v, ok := s.Find(c.ID); err == nil && ok {
		ended := v.Closed || v.Outcome != nil
		return v.Hold, v.Hold.Status(), ended, nil
	}
	err = withHistory(ctx, p, func(st *store.Store) (err error) {
		h, err = st.Hold(ctx, c.ID)
		return err
	})
	if err != nil {
		return h, "", false, unheld("tail", c.ID, err)
	}
	return h, statusesNow(ctx, client)(h), true, nil
}

// follower prints a transcript as it grows.
type follower struct {
	stdout, stderr *bufio.Writer // empty between two batches
	transcript     *execute.Transcript
	next           int
}

func (f *follower) more(path string) error {
	if path == "" {
		return nil
	}
	if f.transcript == nil {
		t, err := execute.OpenTranscript(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open the output: %w", err)
		}
		f.transcript = t
	}
	for {
		lines, err := f.transcript.Lines(f.next, tailLines)
		if err != nil {
			return fmt.Errorf("read the output: %w", err)
		}
		if len(lines) == 0 {
			return nil
		}
		last := f.stdout
		for _, l := range lines {
			to := f.stdout
			if l.Stderr {
				to = f.stderr
			}
			if to != last { // a terminal shows both: in their order
				if err := last.Flush(); err != nil {
					return err
				}
				last = to
			}
			clipped := ""
			if l.Clipped > 0 {
				clipped = fmt.Sprintf(" … %d more bytes", l.Clipped)
			}
			fmt.Fprintln(to, safetext.Block(string(l.Text))+clipped)
		}
		f.next += len(lines)
		if err := last.Flush(); err != nil {
			return err
		}
	}
}

func (f *follower) close() {
	if f.transcript != nil {
		f.transcript.Close()
	}
}
