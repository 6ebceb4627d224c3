package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// psCommand lists what the running instance holds.
type psCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type showCommand struct {
	ID worker.HoldID `arg:"" help:"The item's number, as ps lists it."`
}

// Run implements the command.
func (c *psCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		s, err := client.Status(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeASCII(os.Stdout, listing(s))
		}
		return writeStatus(os.Stdout, s)
	})
}

// The JSON that ps prints. Durations are in milliseconds.
type psJSON struct {
	PID         int              `json:"pid"`
	Version     string           `json:"version"`
	Window      bool             `json:"window"`
	Paused      bool             `json:"paused"`
	PausedUntil *time.Time       `json:"paused_until,omitempty"`
	Away        bool             `json:"away"`
	ApproveAll  bool             `json:"approve_all"`
	Connections []connectionJSON `json:"connections"`
	Waiting     []itemJSON       `json:"waiting"`
	Running     []itemJSON       `json:"running"`
	Finished    []itemJSON       `json:"finished"`
}

type connectionJSON struct {
	Name        string `json:"name"`
	Harness     string `json:"harness"`
	Environment string `json:"environment_id,omitempty"`
	WorkDir     string `json:"workdir"`
	State       string `json:"state"`
	Detail      string `json:"detail,omitempty"`
	MaxHeld     int    `json:"max_held"`
	MaxRunning  int    `json:"max_running"`
}

type itemJSON struct {
	ID           worker.HoldID   `json:"id"`
	Status       string          `json:"status"`
	Code         string          `json:"code"`
	Connection   string          `json:"connection"`
	ItemID       string          `json:"item_id"`
	Session      string          `json:"session_id"`
	Kind         string          `json:"kind"`
	Payload      json.RawMessage `json:"payload"`
	AgeMS        int64           `json:"age_ms"`
	LeaseMS      int64           `json:"lease_ms"`
	DecisionMS   int64           `json:"decision_ms,omitempty"`
	Decision     string          `json:"decision"`
	Acceptance   string          `json:"acceptance"`
	Execution    string          `json:"execution"`
	Delivery     string          `json:"delivery"`
	DecidedBy    string          `json:"decided_by,omitempty"`
	LeaseAtRisk  bool            `json:"lease_at_risk,omitempty"`
	WorkDir      string          `json:"workdir"`
	ReturnedOnce bool            `json:"returned,omitempty"`
}

func listing(s control.Status) psJSON {
	out := psJSON{
		PID: s.PID, Version: s.Version, Window: s.Window,
		Paused: s.Snapshot.Paused, Away: s.Snapshot.Away, ApproveAll: s.Snapshot.ApproveAll,
		Connections: []connectionJSON{},
		Waiting:     items(s.Snapshot.Waiting), Running: items(s.Snapshot.Running), Finished: items(s.Snapshot.Finished),
	}
	if until := s.Snapshot.PausedUntil; !until.IsZero() {
		out.PausedUntil = &until
	}
	for _, c := range s.Snapshot.Connections {
		out.Connections = append(out.Connections, connectionJSON{c.Name, c.Origin, c.Environment, c.WorkDir, string(c.State), c.Detail, c.MaxHeld, c.MaxRunning})
	}
	return out
}

func items(views []worker.View) []itemJSON {
	out := []itemJSON{}
	for _, v := range views {
		out = append(out, itemJSON{
			ID: v.ID, Status: v.Word, Code: control.Code(v), Connection: v.Connection,
			ItemID: v.Item.ID, Session: v.Item.SessionID, Kind: v.Item.Kind, Payload: v.Item.Payload,
			AgeMS: v.Age.Milliseconds(), LeaseMS: v.Lease.Milliseconds(), DecisionMS: v.DecisionLeft.Milliseconds(),
			Decision: string(v.Decision), Acceptance: string(v.Acceptance), Execution: string(v.Execution), Delivery: string(v.Delivery),
			DecidedBy: v.DecidedBy, LeaseAtRisk: v.AtRisk, WorkDir: v.WorkDir, ReturnedOnce: v.Returned,
		})
	}
	return out
}

// writeStatus draws what an instance holds. Everything an agent or a harness
// wrote goes through safetext.
func writeStatus(w io.Writer, s control.Status) error {
	kind := "headless worker"
	if s.Window {
		kind = "window"
	}
	fmt.Fprintf(w, "Countersign %s, %s, process %d\n", safetext.Line(s.Version), kind, s.PID)
	if s.Snapshot.ApproveAll {
		fmt.Fprintln(w, "--approve all is on: everything that the harness accepts runs unasked.")
	}
	switch {
	case s.Snapshot.Paused && !s.Snapshot.PausedUntil.IsZero():
		fmt.Fprintf(w, "Paused until %s.\n", s.Snapshot.PausedUntil.Local().Format("Mon 15:04:05"))
	case s.Snapshot.Paused:
		fmt.Fprintln(w, "Paused: \"countersign resume\" goes on.")
	case s.Snapshot.Away:
		fmt.Fprintln(w, "Nobody answered: claiming has stopped. \"countersign resume\" goes on.")
	}
	for _, c := range s.Snapshot.Connections {
		fmt.Fprintf(w, "%s: %s\n", safetext.Line(joinNonEmpty(" ", c.Origin, c.Environment)),
			safetext.Line(joinNonEmpty(". ", string(c.State), c.Detail)))
		fmt.Fprintf(w, "  work directory %s, at most %d held and %d running\n", safetext.Line(c.WorkDir), c.MaxHeld, c.MaxRunning)
	}
	if len(s.Snapshot.Connections) == 0 {
		fmt.Fprintln(w, "No connection is configured.")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATUS\tKIND\tAGE\tLEASE\tDECIDE\tSESSION\tWHAT")
	rows := 0
	for _, views := range [][]worker.View{s.Snapshot.Waiting, s.Snapshot.Running, s.Snapshot.Finished} {
		for _, v := range views {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.ID, v.Word, safetext.Clip(v.Item.Kind, 12),
				brief(v.Age), leaseLeft(v), decideLeft(v), safetext.Clip(v.Item.SessionID, 20), safetext.Clip(summary(v.Item), 80))
			rows++
		}
	}
	if rows == 0 {
		fmt.Fprintln(t, "Nothing is held.")
	}
	return t.Flush()
}

// summary says in one line what an item asks for; unsafe as it stands.
func summary(item worker.Item) string {
	t, err := execute.Decode(item.Kind, item.Payload)
	if err != nil {
		return string(item.Payload)
	}
	if item.Kind == wire.KindExec {
		return t.Command
	}
	return t.Path
}

func leaseLeft(v worker.View) string {
	switch {
	case v.Closed:
		return ""
	case v.Lease <= 0:
		return "lapsed"
	}
	return brief(v.Lease)
}

func decideLeft(v worker.View) string {
	if v.DecisionLeft <= 0 {
		return ""
	}
	return brief(v.DecisionLeft)
}

// brief writes a duration in whole seconds.
func brief(d time.Duration) string { return d.Round(time.Second).String() }

// Run implements the command.
func (c *showCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		s, err := client.Status(ctx)
		if err != nil {
			return err
		}
		v, ok := s.Find(c.ID)
		if !ok {
			return fmt.Errorf("show %d: %w; \"countersign history\" has what is over", c.ID, worker.ErrNoHold)
		}
		writeView(os.Stdout, v)
		return nil
	})
}

// writeView draws one item whole, as a decision needs it.
func writeView(w io.Writer, v worker.View) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name, safetext.Line(value))
		}
	}
	line("item", fmt.Sprintf("%d (%s)", v.ID, v.Item.ID))
	line("accept status", v.Word)
	line("asked by", v.Item.SessionID)
	line("harness", joinNonEmpty(" ", v.Origin, v.Environment))
	line("age", brief(v.Age))
	line("lease", leaseLeft(v))
	line("decide within", decideLeft(v))
	line("decided by", v.DecidedBy)
	line("words", v.Words)
	line("work directory", v.WorkDir)
	line("kind", v.Item.Kind)
	t, err := execute.Decode(v.Item.Kind, v.Item.Payload)
	if err != nil {
		line("cannot be done", err.Error())
		block(w, "payload", string(v.Item.Payload))
	} else {
		writeTask(w, line, t)
	}
	if o := v.Outcome; o != nil {
		line("outcome", joinNonEmpty(": ", string(o.How), o.Reason))
		if v.Item.Kind == wire.KindExec {
			line("exit", fmt.Sprint(o.Exit))
		}
	}
	fmt.Fprintln(w, "\nsteps")
	for _, e := range v.Steps {
		fmt.Fprintf(w, "  %s  %s\n", e.At.Local().Format("15:04:05"), safetext.Line(joinNonEmpty(": ", string(e.Step), e.Reason)))
	}
	if v.Decision == worker.Undecided && err == nil {
		fmt.Fprintf(w, "\nTo approve exactly this:  countersign approve %d %s\n", v.ID, control.Code(v))
		fmt.Fprintf(w, "To decline it:            countersign decline %d --message \"why\"\n", v.ID)
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
