package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

type showCommand struct {
	ID worker.HoldID `arg:"" help:"The item's number, as ps or history lists it."`
}

// Run implements the command. An item that is not held any more is shown from
// the history.
func (c *showCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		s, err := client.Status(ctx)
		var none *control.NotRunning
		if err != nil && !errors.As(err, &none) {
			return err
		}
		if v, ok := s.Find(c.ID); ok {
			writeView(os.Stdout, v, onDisk(ctx, client, v), g.self())
			return nil
		}
		p, placeErr := g.place()
		if placeErr != nil {
			return placeErr
		}
		if _, missing := os.Stat(p.database()); missing != nil && none != nil {
			return err
		}
		v, err := past(ctx, p, c.ID)
		if err != nil {
			return unheld("show", c.ID, err)
		}
		v.Word = statusesNow(ctx, client)(v.Hold)
		writeView(os.Stdout, v, nil, "")
		return nil
	})
}

// onDisk asks what an item that waits would meet on the disk. nil where that is
// over, or cannot be told: the decision goes without.
func onDisk(ctx context.Context, client *control.Client, v worker.View) *execute.Preview {
	if v.Decision != worker.Undecided {
		return nil
	}
	p, err := client.Preview(ctx, v.ID)
	if err != nil {
		return nil
	}
	return &p
}

// past reads an item from the history, as it was left.
func past(ctx context.Context, p place, id worker.HoldID) (v worker.View, err error) {
	err = withHistory(ctx, p, func(s *store.Store) (err error) {
		if v.Hold, err = s.Hold(ctx, id); err != nil {
			return err
		}
		v.Word = v.Hold.Status()
		v.Steps, err = s.Entries(ctx, id)
		return err
	})
	return v, err
}

// unheld says why a command can do nothing with an item of the history.
func unheld(command string, id worker.HoldID, err error) error {
	if errors.Is(err, store.ErrNoHold) {
		return fmt.Errorf("%s %d: no item of this number was ever held here; \"countersign history\" lists what was", command, id)
	}
	return fmt.Errorf("%s %d: %w", command, id, err)
}

// writeView draws one item whole, as a decision needs it. self is how the
// instance that holds it is asked; "" where none does. onDisk may be nil.
func writeView(w io.Writer, v worker.View, onDisk *execute.Preview, self string) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name, safetext.Line(value))
		}
	}
	line("item", fmt.Sprintf("%d (%s)", v.ID, v.Item.ID))
	if v.Word == wordWasRunning {
		line("accept status", v.Word+". "+wasRunningWords)
	} else {
		line("accept status", v.Word)
	}
	line("asked by", v.Item.SessionID)
	line("harness", joinNonEmpty(" ", v.Origin, v.Environment))
	line("claimed", v.OpenedAt.Local().Format(time.DateTime))
	if self != "" && !v.Closed {
		line("age", age(v))
		line("lease", leaseLeft(v))
		line("decide within", decideLeft(v))
	}
	line("decision", joinNonEmpty(" by ", string(v.Decision), v.DecidedBy))
	line("words", v.Words)
	line("work directory", v.WorkDir)
	line("kind", v.Item.Kind)
	t, err := execute.Decode(v.Item.Kind, v.Item.Payload)
	if err != nil {
		line("cannot be done", err.Error())
		block(w, "payload", string(v.Item.Payload))
	} else {
		writeTask(w, line, t)
		writeWhy(w, v, t)
	}
	if onDisk != nil {
		writeOnDisk(w, *onDisk)
	}
	if v.Outcome != nil || v.Word == wordWasRunning {
		fmt.Fprintln(w)
		writeOutcome(w, line, v)
	}
	fmt.Fprintln(w, "\nsteps")
	for _, e := range v.Steps {
		fmt.Fprintf(w, "  %s  %s\n", e.At.Local().Format(time.DateTime), safetext.Line(joinNonEmpty(": ", string(e.Step), e.Reason)))
	}
	if self != "" && v.Decision == worker.Undecided && err == nil {
		writeAnswers(w, v, self)
	}
}

// writeAnswers says how an item that waits is answered.
func writeAnswers(w io.Writer, v worker.View, self string) {
	approve := fmt.Sprintf("%s approve %d %s", self, v.ID, control.Code(v))
	line := func(what, command string) { fmt.Fprintf(w, "%-31s %s\n", what, command) }
	fmt.Fprintln(w)
	line("To approve exactly this:", approve)
	reads := v.Item.Kind == wire.KindRead || v.Item.Kind == wire.KindList
	if v.Grantable {
		line("  and the same in its session:", approve+" --session")
	}
	if v.Grantable && reads {
		line("  and reads below a directory:", approve+" --reads DIR")
	}
	if v.Grantable {
		line("  and always, by a rule:", approve+" --always")
	}
	if !reads {
		line("  changed to what stdin says:", approve+" --edited")
	}
	line("To decline it:", fmt.Sprintf("%s decline %d --message \"why\"", self, v.ID))
	line("To let it go unanswered:", fmt.Sprintf("%s release %d", self, v.ID))
}

// headLines is how many lines of an output show prints; tail has it whole.
const headLines = 20

func writeOutcome(w io.Writer, line func(name, value string), v worker.View) {
	o := v.Outcome
	if o == nil {
		writeLost(line, v)
		return
	}
	line("outcome", joinNonEmpty(": ", string(o.How), o.Reason))
	if v.Execution == worker.Interrupted {
		writeLost(line, v)
	} else if v.Item.Kind == wire.KindExec {
		line("exit", fmt.Sprint(o.Exit))
		line("output", fmt.Sprintf("%d bytes on stdout, %d on stderr", o.StdoutBytes, o.StderrBytes))
	}
	if !o.StartedAt.IsZero() {
		line("started", o.StartedAt.Local().Format(time.DateTime))
	}
	if !o.FinishedAt.IsZero() && v.Execution == worker.Interrupted {
		line("found so", localTime(o.FinishedAt))
	} else if !o.FinishedAt.IsZero() {
		line("finished", o.FinishedAt.Local().Format(time.DateTime))
	}
	line("report", string(v.Delivery))
	if o.Head != "" {
		lines := strings.SplitN(o.Head, "\n", headLines+1)
		block(w, "its output begins", strings.Join(lines[:min(len(lines), headLines)], "\n"))
	}
}

// writeWhy says why an item is asked for, or was decided: part by part, with the
// marks, the files that it names, and what was put in its place.
func writeWhy(w io.Writer, v worker.View, t execute.Task) {
	if v.Changed {
		changed := ""
		for _, e := range v.Steps {
			if e.Step == worker.StepChanged {
				changed = e.Reason
			}
		}
		fmt.Fprintf(w, "\nIt was approved, and then %s\n", safetext.Line(changed))
	}
	if e := v.Shown.Explanation; len(e.Parts) > 0 {
		fmt.Fprintf(w, "\n%-15s %s: %s\n", "verdict", e.Verdict, safetext.Line(e.Reason))
		writeParts(w, e.Parts)
	}
	writeRisks(w, policy.Risks(t))
	if len(v.Shown.Files) > 0 {
		fmt.Fprintln(w, "\nfiles it names, as they were when it was shown")
		for _, f := range v.Shown.Files {
			fmt.Fprintf(w, "  %s  %s\n", safetext.Line(f.Path), joinNonEmpty(" ", f.State, f.SHA256[:min(12, len(f.SHA256))]))
		}
	}
	if v.Edited == nil {
		return
	}
	if ran, err := execute.Decode(v.Item.Kind, v.Edited); err == nil {
		fmt.Fprintln(w, "\nThe operator changed it. What ran instead:")
		if ran.Kind == wire.KindExec {
			block(w, "command", ran.Command)
		} else {
			block(w, "content", ran.Content)
		}
	}
}

// writeOnDisk says what an item would meet on the disk.
func writeOnDisk(w io.Writer, p execute.Preview) {
	words := p.Words()
	if len(words) == 0 && len(p.Diff.Hunks) == 0 {
		return
	}
	fmt.Fprintln(w, "\non the disk now")
	for _, sentence := range words {
		fmt.Fprintf(w, "  %s\n", safetext.Line(sentence))
	}
	for _, h := range p.Diff.Hunks {
		fmt.Fprintf(w, "\n  @@ line %d to line %d\n", h.OldLine, h.NewLine)
		for _, l := range h.Lines {
			fmt.Fprintf(w, "  │ %c %s\n", l.Op, safetext.Block(l.Text))
		}
	}
}

func writeTask(w io.Writer, line func(name, value string), t execute.Task) {
	line("in", t.Cwd)
	line("path", t.Path)
	if t.TimeLimit > 0 {
		line("time limit", t.TimeLimit.String())
	}
	var names []string
	for name := range t.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line("environment", name+"="+t.Env[name])
	}
	switch t.Kind {
	case wire.KindExec:
		block(w, "command", t.Command)
	case wire.KindWrite:
		block(w, "content", t.Content)
	}
}

// block draws a text of several lines; the bar keeps it apart from ours.
func block(w io.Writer, name, text string) {
	fmt.Fprintf(w, "\n%s\n", name)
	for line := range strings.SplitSeq(safetext.Block(text), "\n") {
		fmt.Fprintf(w, "  │ %s\n", line)
	}
}
