package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// psCommand lists what the running instance holds.
type psCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run implements the command.
func (c *psCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		s, err := client.Status(ctx)
		if err != nil {
			return err
		}
		var rules *policy.RulesState
		if state, err := client.Rules(ctx); err == nil { // what there is to say goes without
			rules = &state
		}
		if c.JSON {
			return writeASCII(os.Stdout, listing(s, rules))
		}
		return writeStatus(os.Stdout, s, rules, g.self())
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
	Quitting    bool             `json:"quitting"`
	Connections []connectionJSON `json:"connections"`
	Waiting     []itemJSON       `json:"waiting"`
	Running     []itemJSON       `json:"running"`
	Finished    []itemJSON       `json:"finished"`
	LeftOpen    []leftOpenJSON   `json:"left_open,omitempty"`
	Rules       *rulesJSON       `json:"rules,omitempty"`
}

// rulesJSON is what is in force of the rules, and what is not.
type rulesJSON struct {
	File    string `json:"file"`
	Hash    string `json:"hash,omitempty"`    // of what is in force
	Pending string `json:"pending,omitempty"` // the code that accepts a change of the file
	Broken  string `json:"broken,omitempty"`  // why the file as it is cannot be used
}

// leftOpenJSON is what is unfinished for a harness and environment that no
// connection is to.
type leftOpenJSON struct {
	Harness     string          `json:"harness"`
	Environment string          `json:"environment_id,omitempty"`
	Items       []worker.HoldID `json:"items"`
}

type connectionJSON struct {
	Name        string `json:"name"`
	Harness     string `json:"harness"`
	Environment string `json:"environment_id,omitempty"`
	WorkDir     string `json:"workdir"`
	State       string `json:"state"`
	Detail      string `json:"detail,omitempty"`
	Held        int    `json:"held"`
	Full        bool   `json:"full"` // nothing more is claimed before one is decided
	MaxHeld     int    `json:"max_held"`
	MaxRunning  int    `json:"max_running"`

	RemovedEnv  []string `json:"removed_env"` // names of what commands do not get
	Confinement string   `json:"confinement"`
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

func listing(s control.Status, rules *policy.RulesState) psJSON {
	out := psJSON{
		PID: s.PID, Version: s.Version, Window: s.Window,
		Paused: s.Snapshot.Paused, Away: s.Snapshot.Away, ApproveAll: s.Snapshot.ApproveAll, Quitting: s.Quitting,
		Connections: []connectionJSON{},
		Waiting:     items(s.Snapshot.Waiting), Running: items(s.Snapshot.Running), Finished: items(s.Snapshot.Finished),
	}
	if until := s.Snapshot.PausedUntil; !until.IsZero() {
		out.PausedUntil = &until
	}
	for _, c := range s.Snapshot.Connections {
		held := heldBy(s.Snapshot, c)
		out.Connections = append(out.Connections, connectionJSON{c.Name, c.Origin, c.Environment, c.WorkDir, string(c.State), c.Detail,
			held, held >= c.MaxHeld, c.MaxHeld, c.MaxRunning, append([]string{}, c.RemovedEnv...), c.Confinement})
	}
	if rules != nil {
		out.Rules = &rulesJSON{File: rules.File, Hash: rules.Hash, Broken: rules.Broken}
		if rules.Pending != nil {
			out.Rules.Pending = ruleCode(*rules)
		}
	}
	for _, l := range s.LeftOpen {
		out.LeftOpen = append(out.LeftOpen, leftOpenJSON{l.Origin, l.Environment, l.Holds})
	}
	return out
}

// heldBy counts what a connection holds that has neither started nor ended: what
// max-held bounds.
func heldBy(s worker.Snapshot, c worker.ConnectionView) (n int) {
	for _, views := range [][]worker.View{s.Waiting, s.Running} {
		for _, v := range views {
			if v.Connection == c.Name && !v.Closed && v.Execution == worker.NotStarted && v.Delivery == worker.NothingToDeliver {
				n++
			}
		}
	}
	return n
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

// writeStatus draws what an instance holds; self is how it is asked. Everything an agent or a harness
// wrote goes through safetext.
func writeStatus(w io.Writer, s control.Status, rules *policy.RulesState, self string) error {
	kind := "headless worker"
	if s.Window {
		kind = "window"
	}
	fmt.Fprintf(w, "Countersign %s, %s, process %d\n", safetext.Line(s.Version), kind, s.PID)
	if s.Snapshot.ApproveAll {
		fmt.Fprintln(w, "--approve all is on: everything that the harness accepts runs unasked.")
	}
	switch {
	case s.Quitting:
		fmt.Fprintln(w, "Quitting: nothing more is claimed, and it ends when what runs has ended.")
	case s.Snapshot.Paused && !s.Snapshot.PausedUntil.IsZero():
		fmt.Fprintf(w, "Paused until %s.\n", s.Snapshot.PausedUntil.Local().Format("Mon 15:04:05"))
	case s.Snapshot.Paused:
		fmt.Fprintf(w, "Paused: \"%s resume\" goes on.\n", self)
	case s.Snapshot.Away:
		fmt.Fprintf(w, "Nobody answered: claiming has stopped. \"%s resume\" goes on.\n", self)
	}
	for _, c := range s.Snapshot.Connections {
		fmt.Fprintf(w, "%s: %s\n", safetext.Line(joinNonEmpty(" ", c.Origin, c.Environment)),
			safetext.Line(joinNonEmpty(". ", string(c.State), c.Detail)))
		fmt.Fprintf(w, "  work directory %s, at most %d held and %d running\n", safetext.Line(c.WorkDir), c.MaxHeld, c.MaxRunning)
		if held := heldBy(s.Snapshot, c); held >= c.MaxHeld && c.MaxHeld > 0 {
			fmt.Fprintf(w, "  Full: %d of %d held, so nothing more is claimed before one is decided.\n", held, c.MaxHeld)
		}
	}
	if len(s.Snapshot.Connections) == 0 {
		fmt.Fprintln(w, "No connection is configured.")
	}
	for _, l := range s.LeftOpen {
		fmt.Fprintln(w, safetext.Line(leftOpenWords(l)))
	}
	if words := rulesWords(rules, self); words != "" {
		fmt.Fprintln(w, safetext.Line(words))
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATUS\tKIND\tAGE\tLEASE\tDECIDE\tSESSION\tWHAT")
	rows := 0
	for _, views := range [][]worker.View{s.Snapshot.Waiting, s.Snapshot.Running, s.Snapshot.Finished} {
		for _, v := range views {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.ID, v.WithFailure(v.Word), safetext.Clip(v.Item.Kind, 12),
				age(v), leaseLeft(v), decideLeft(v), safetext.Clip(v.Item.SessionID, 20), safetext.Clip(summary(v.Item), 80))
			rows++
		}
	}
	if rows == 0 {
		fmt.Fprintln(t, "Nothing is held.")
	}
	return t.Flush()
}

// rulesWords says what of the rule file is not in force; "" for nothing.
func rulesWords(rules *policy.RulesState, self string) string {
	switch {
	case rules == nil:
	case rules.Broken != "":
		return fmt.Sprintf("The rule file cannot be used; %s \"%s rules pending\" tells why.", inForceWords(*rules), self)
	case rules.Pending != nil:
		return fmt.Sprintf("The rule file was changed outside Countersign; %s \"%s rules pending\" shows the change.", inForceWords(*rules), self)
	}
	return ""
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

// age is how long ago the session asked. What a harness says of that cannot
// always be had, or believed.
func age(v worker.View) string {
	if v.Item.CreatedAt.IsZero() || v.Age > 365*24*time.Hour {
		return "unknown"
	}
	return brief(v.Age)
}

// brief writes a duration in whole seconds.
func brief(d time.Duration) string { return d.Round(time.Second).String() }
