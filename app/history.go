package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/safetext"
)

// historyCommand is about what was ever held. It reads the database itself, so it
// works whether or not Countersign runs.
type historyCommand struct {
	List   historyList   `cmd:"" default:"withargs" help:"List it, newest first (what \"countersign history\" alone does)."`
	Verify historyVerify `cmd:"" help:"Check that nobody changed the journal behind Countersign's back."`
}

type historyList struct {
	Search  string `help:"Words, or their beginnings, in command, path, output or session." placeholder:"Q"`
	Session string `help:"Only this session." placeholder:"S"`
	Outcome string `help:"Only this accept status, such as \"Reported\" or \"Declined\"." placeholder:"O"`
	Since   string `help:"Only what was claimed since: a date, a time, or how long ago (24h)." placeholder:"T"`
	Limit   int    `help:"At most this many." default:"100" placeholder:"N"`
	JSON    bool   `name:"json" xor:"form" help:"Print JSON lines."`
	CSV     bool   `name:"csv" xor:"form" help:"Print CSV."`
}

// Run implements the command.
func (c *historyList) Run(g *global) error {
	q, err := c.query(time.Now())
	if err != nil {
		return err
	}
	p, err := g.place()
	if err != nil {
		return err
	}
	ctx := context.Background()
	var holds []worker.Hold
	err = withHistory(ctx, p, func(s *store.Store) (err error) {
		holds, err = pages(ctx, s, q)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	client := control.NewClient(p.data)
	defer client.Close()
	status := statusesNow(ctx, client)
	switch {
	case c.JSON:
		return writeJSONLines(os.Stdout, holds, status)
	case c.CSV:
		return writeCSV(os.Stdout, holds, status)
	}
	return writeHistory(os.Stdout, holds, status)
}

// pages finds as much as was asked for: the store gives a page at a time.
func pages(ctx context.Context, s *store.Store, q worker.HistoryQuery) ([]worker.Hold, error) {
	var all []worker.Hold
	for want := q.Limit; want > 0; want = q.Limit - len(all) {
		page := q
		page.Limit = want
		if len(all) > 0 {
			page.Before = all[len(all)-1].ID
		}
		found, err := s.Find(ctx, page)
		if err != nil || len(found) == 0 {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// withHistory opens the database of a data directory for a question. One that
// was never written is not made.
func withHistory(ctx context.Context, p place, fn func(*store.Store) error) error {
	if _, err := os.Stat(p.database()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no history in data directory %s", p.data)
	}
	s, err := store.Open(ctx, p.database())
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

func (c *historyList) query(now time.Time) (q worker.HistoryQuery, err error) {
	if err := config.IntWithin(c.Limit, 1, 1_000_000); err != nil {
		return q, &config.Invalid{Name: "--limit", Value: fmt.Sprint(c.Limit), Expected: err.Error()}
	}
	q = worker.HistoryQuery{Text: c.Search, Session: c.Session, Limit: c.Limit}
	if c.Outcome != "" {
		i := slices.IndexFunc(outcomes, func(s string) bool { return strings.EqualFold(s, c.Outcome) })
		if i < 0 {
			return q, &config.Invalid{Name: "--outcome", Value: c.Outcome, Expected: "expected one of " + strings.Join(outcomes, ", ")}
		}
		q.Status = outcomes[i]
	}
	if c.Since != "" {
		if q.Since, err = parseSince(c.Since, now); err != nil {
			return q, &config.Invalid{Name: "--since", Value: c.Since, Expected: err.Error()}
		}
	}
	return q, nil
}

// outcomes are the accept statuses that the history can hold.
var outcomes = []string{
	worker.WordReported, worker.WordDeclined, worker.WordExpired, worker.WordWithdrawn, worker.WordReleased,
	worker.WordSessionStopped, worker.WordLapsed, worker.WordNotOurs, worker.WordUnknown, worker.WordRefused,
	worker.WordCannotAccept, worker.WordNotConfirmed, worker.WordCouldNotStart, worker.WordTimedOut, worker.WordStopped,
	worker.WordDelivering, worker.WordNotRecorded, worker.WordUnconfirmed, worker.WordUndelivered, worker.WordInterrupted,
	worker.WordWaiting, worker.WordInLine, worker.WordAsking, worker.WordAccepted, worker.WordRunning,
}

func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New(`expected a date (2030-01-31), a time (2030-01-31 14:00) or how long ago (24h)`)
}

// pastJSON is one line of the history as JSON.
type pastJSON struct {
	ID          worker.HoldID   `json:"id"`
	At          time.Time       `json:"claimed_at"`
	Status      string          `json:"status"`
	Connection  string          `json:"connection"`
	Harness     string          `json:"harness"`
	Environment string          `json:"environment_id,omitempty"`
	ItemID      string          `json:"item_id"`
	Session     string          `json:"session_id"`
	Kind        string          `json:"kind"`
	Payload     json.RawMessage `json:"payload"`
	Decision    string          `json:"decision"`
	DecidedBy   string          `json:"decided_by,omitempty"`
	Words       string          `json:"words,omitempty"`
	Acceptance  string          `json:"acceptance"`
	Execution   string          `json:"execution"`
	Delivery    string          `json:"delivery"`
	Outcome     *outcomeJSON    `json:"outcome,omitempty"`
	WorkDir     string          `json:"workdir"`
}

type outcomeJSON struct {
	How         string    `json:"how"`
	Exit        int       `json:"exit"`
	Signal      string    `json:"signal,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"`
	StdoutBytes int64     `json:"stdout_bytes"`
	StderrBytes int64     `json:"stderr_bytes"`
	Head        string    `json:"head"`
}

func writeJSONLines(w io.Writer, holds []worker.Hold, status statusNow) error {
	for _, h := range holds {
		line := pastJSON{
			ID: h.ID, At: h.OpenedAt, Status: status(h), Connection: h.Connection, Harness: h.Origin, Environment: h.Environment,
			ItemID: h.Item.ID, Session: h.Item.SessionID, Kind: h.Item.Kind, Payload: h.Item.Payload,
			Decision: string(h.Decision), DecidedBy: h.DecidedBy, Words: h.Words, Acceptance: string(h.Acceptance),
			Execution: string(h.Execution), Delivery: string(h.Delivery), WorkDir: h.WorkDir,
		}
		if o := h.Outcome; o != nil {
			line.Outcome = &outcomeJSON{string(o.How), o.Exit, o.Signal, o.Reason, o.StartedAt, o.FinishedAt, o.StdoutBytes, o.StderrBytes, o.Head}
		}
		if err := writeASCII(w, line); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, holds []worker.Hold, status statusNow) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"id", "claimed_at", "status", "kind", "session_id", "what", "decision", "decided_by", "exit", "item_id", "harness", "environment_id", "workdir"}}
	for _, h := range holds {
		exit := ""
		if h.Outcome != nil && h.Item.Kind == "exec" {
			exit = fmt.Sprint(h.Outcome.Exit)
		}
		rows = append(rows, []string{fmt.Sprint(h.ID), h.OpenedAt.UTC().Format(time.RFC3339), status(h), cell(h.Item.Kind),
			cell(h.Item.SessionID), cell(summary(h.Item)), string(h.Decision), cell(h.DecidedBy), exit, cell(h.Item.ID),
			cell(h.Origin), cell(h.Environment), cell(h.WorkDir)})
	}
	return out.WriteAll(rows)
}

// cell makes a text safe for a spreadsheet too, where one that begins like a
// formula would be one.
func cell(s string) string {
	s = safetext.Line(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func writeHistory(w io.Writer, holds []worker.Hold, status statusNow) error {
	if len(holds) == 0 {
		fmt.Fprintln(w, "Nothing was found.")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tCLAIMED\tSTATUS\tKIND\tSESSION\tWHAT")
	ended := false
	for _, h := range holds {
		ended = ended || status(h) == wordWasRunning
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", h.ID, localTime(h.OpenedAt), h.WithFailure(status(h)),
			safetext.Clip(h.Item.Kind, 12), safetext.Clip(h.Item.SessionID, 20), safetext.Clip(summary(h.Item), 80))
	}
	if ended {
		fmt.Fprintf(t, "%s: %s\n", wordWasRunning, wasRunningWords)
	}
	return t.Flush()
}

func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }
