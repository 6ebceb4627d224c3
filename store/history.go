package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"countersign/worker"
)

// Limits of a page of the history, in holds.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// wholeHold and briefHold read a hold by the order of scanHold; the brief one
// leaves large payloads shortened, and what was shown, what was put in an item's
// place and the result of the outcome out.
const (
	wholeHold = `SELECT p.body, h.edited, h.shown, i.result, ` + holdColumns
	briefHold = `SELECT COALESCE(p.brief, p.body), NULL, '', NULL, ` + holdColumns

	holdColumns = `i.outcome, i.origin, i.item_id,
		h.id, h.connection, h.environment, h.worker_id, h.session, h.kind, h.created_at, h.claimed_at, h.claim_status,
		h.digest, h.work_dir, h.output_path, h.returned, h.opened_at,
		h.decision, h.decided_by, h.words, h.acceptance, h.refusal, i.execution, h.delivery, h.closed`

	joined = ` JOIN items i ON i.id = h.item JOIN payloads p ON p.id = h.payload`
)

// Unfinished implements worker.Journal.
func (s *Store) Unfinished(ctx context.Context, origin, environment string) ([]worker.Hold, error) {
	// Left to itself SQLite walks all items of the origin.
	return s.holds(ctx, wholeHold+` FROM holds h INDEXED BY holds_unfinished`+joined+
		` WHERE h.closed = 0 AND i.origin = ? AND h.environment = ? ORDER BY h.id`, origin, environment)
}

// LeftOpen returns what is unfinished, by harness and environment, those with the
// oldest first.
func (s *Store) LeftOpen(ctx context.Context) ([]worker.LeftOpen, error) {
	rows, err := s.reading.QueryContext(ctx, `SELECT i.origin, h.environment, h.connection, h.id
		FROM holds h INDEXED BY holds_unfinished JOIN items i ON i.id = h.item
		WHERE h.closed = 0 ORDER BY h.id`)
	if err != nil {
		return nil, s.explain("read", err)
	}
	defer rows.Close()
	var left []worker.LeftOpen
	for rows.Next() {
		var one worker.LeftOpen
		var id worker.HoldID
		if err := rows.Scan(&one.Origin, &one.Environment, &one.Connection, &id); err != nil {
			return nil, s.explain("read", err)
		}
		at := slices.IndexFunc(left, func(l worker.LeftOpen) bool { return l.Origin == one.Origin && l.Environment == one.Environment })
		if at < 0 {
			at, left = len(left), append(left, one)
		}
		left[at].Connection = one.Connection
		left[at].Holds = append(left[at].Holds, id)
	}
	return left, s.explain("read", rows.Err())
}

// Last implements worker.Journal. A hold that came with other work under the
// item's id says nothing of the item.
func (s *Store) Last(ctx context.Context, origin, itemID string) (worker.Hold, bool, error) {
	// Most items are new: that shows much sooner than which hold of them is the last.
	var item int64
	err := s.known.QueryRowContext(ctx, origin, itemID).Scan(&item)
	if errors.Is(err, sql.ErrNoRows) {
		return worker.Hold{}, false, nil
	}
	if err != nil {
		return worker.Hold{}, false, s.explain("read", err)
	}
	found, err := s.holds(ctx, wholeHold+` FROM holds h`+joined+
		` WHERE i.id = ? AND h.payload = i.payload AND h.kind = i.kind
		ORDER BY h.id DESC LIMIT 1`, item)
	if err != nil || len(found) == 0 {
		return worker.Hold{}, false, err
	}
	return found[0], true, nil
}

// Hold returns one hold whole, or ErrNoHold.
func (s *Store) Hold(ctx context.Context, id worker.HoldID) (worker.Hold, error) {
	found, err := s.holds(ctx, wholeHold+` FROM holds h`+joined+` WHERE h.id = ?`, id)
	if err != nil {
		return worker.Hold{}, err
	}
	if len(found) == 0 {
		return worker.Hold{}, fmt.Errorf("hold #%d: %w", id, ErrNoHold)
	}
	return found[0], nil
}

// Find returns a page of the history, newest first, at most 500 holds. They are
// for lists: a payload of more than 64 KB is a stand-in with the beginning of
// its texts, and outcomes come without their result. Hold has them whole.
//
// Each word of q.Text, and a word is what stands between spaces, has to begin a
// word of the command, path, written content, output or session; of long texts
// the first 4 KB are searched. A text without letters or digits does not
// restrict.
func (s *Store) Find(ctx context.Context, q worker.HistoryQuery) ([]worker.Hold, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	sel := selecting(q)
	if err := s.catchUp(ctx, sel); err != nil {
		return nil, err
	}
	return s.holds(ctx, briefHold+sel.from+joined+sel.where()+sel.newest+` LIMIT ?`, append(sel.args, min(limit, maxLimit))...)
}

// Count returns how many holds a query selects on all its pages; Before and
// Limit are not looked at.
func (s *Store) Count(ctx context.Context, q worker.HistoryQuery) (int, error) {
	q.Before = 0
	sel := selecting(q)
	if err := s.catchUp(ctx, sel); err != nil {
		return 0, err
	}
	if sel.searched && len(sel.conditions) == 1 {
		sel.from = ` FROM search` // each hold has one row there
	}
	var n int
	err := s.reading.QueryRowContext(ctx, `SELECT COUNT(*)`+sel.from+sel.where(), sel.args...).Scan(&n)
	return n, s.explain("count in", err)
}

// selection is a query in the words of SQL.
type selection struct {
	from       string
	searched   bool // by text
	conditions []string
	args       []any
	newest     string // the order that needs no sorting
}

func selecting(q worker.HistoryQuery) *selection {
	sel := &selection{from: ` FROM holds h`, newest: ` ORDER BY h.id DESC`}
	match := matching(q.Text)
	if match != "" {
		// CROSS keeps SQLite from walking the holds and asking the index for each.
		sel.from, sel.searched = ` FROM search CROSS JOIN holds h ON h.id = search.docid`, true
		sel.newest = ` ORDER BY search.docid DESC`
	}
	sel.add(match != "", `search MATCH ?`, match)
	sel.add(match != "" && q.Before > 0, `search.docid < ?`, q.Before)
	sel.add(match == "" && q.Before > 0, `h.id < ?`, q.Before)
	sel.add(q.Session != "", `h.session = ?`, q.Session)
	sel.add(q.Kind != "", `h.kind = ?`, q.Kind)
	sel.add(q.Status != "", `h.status = ?`, q.Status)
	sel.add(!q.Since.IsZero(), `h.opened_at >= ?`, q.Since.UnixMicro())
	sel.add(!q.Until.IsZero(), `h.opened_at < ?`, q.Until.UnixMicro())
	return sel
}

// catchUp has a search find what was written down up to now. On a full disk it
// finds what it can.
func (s *Store) catchUp(ctx context.Context, sel *selection) error {
	if !sel.searched {
		return nil
	}
	err := s.makeSearchable(ctx)
	if e := (sqlite3.Error{}); errors.As(err, &e) && e.Code == sqlite3.ErrFull {
		return nil
	}
	return s.explain("search", err)
}

func (sel *selection) add(wanted bool, condition string, arg any) {
	if wanted {
		sel.conditions, sel.args = append(sel.conditions, condition), append(sel.args, arg)
	}
}

func (sel *selection) where() string {
	if len(sel.conditions) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(sel.conditions, ` AND `)
}

// Entries returns the journal of one hold, oldest first; none for a hold that
// there is not.
func (s *Store) Entries(ctx context.Context, id worker.HoldID) ([]worker.Entry, error) {
	rows, err := s.reading.QueryContext(ctx, `SELECT at, step, reason,
		decision, decided_by, words, acceptance, refusal, execution, delivery, closed
		FROM entries WHERE hold = ? ORDER BY id`, id)
	if err != nil {
		return nil, s.explain("read", err)
	}
	defer rows.Close()
	var entries []worker.Entry
	for rows.Next() {
		e := worker.Entry{Hold: id}
		if err := rows.Scan(append([]any{when{&e.At}, &e.Step, &e.Reason}, into(&e.Facts)...)...); err != nil {
			return nil, s.explain("read", err)
		}
		entries = append(entries, e)
	}
	return entries, s.explain("read", rows.Err())
}

func (s *Store) holds(ctx context.Context, query string, args ...any) ([]worker.Hold, error) {
	rows, err := s.reading.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.explain("read", err)
	}
	defer rows.Close()
	var found []worker.Hold
	for rows.Next() {
		h, err := scanHold(rows)
		if err != nil {
			return nil, s.explain("read", err)
		}
		found = append(found, h)
	}
	return found, s.explain("read", rows.Err())
}

func scanHold(rows *sql.Rows) (worker.Hold, error) {
	var h worker.Hold
	var payload, edited, result []byte
	var shown string
	var outcome sql.NullString
	err := rows.Scan(append([]any{&payload, &edited, &shown, &result, &outcome, &h.Origin, &h.Item.ID,
		&h.ID, &h.Connection, &h.Environment, &h.WorkerID, &h.Item.SessionID, &h.Item.Kind,
		when{&h.Item.CreatedAt}, when{&h.Item.ClaimedAt}, &h.Item.ClaimStatus,
		&h.Digest, &h.WorkDir, &h.OutputPath, &h.Returned, when{&h.OpenedAt}}, into(&h.Facts)...)...)
	if err != nil {
		return h, err
	}
	h.Item.Payload, h.Edited = json.RawMessage(payload), json.RawMessage(edited)
	if err := decodeShown(shown, &h.Shown); err != nil {
		return h, err
	}
	if h.Outcome, err = decodeOutcome(outcome); h.Outcome != nil && result != nil {
		h.Outcome.Result = json.RawMessage(result)
	}
	return h, err
}

// into lists where the columns of the facts go, in the order of every statement
// here.
func into(f *worker.Facts) []any {
	return []any{&f.Decision, &f.DecidedBy, &f.Words, &f.Acceptance, &f.Refusal, &f.Execution, &f.Delivery, &f.Closed}
}

// micros is a time as it is stored: microseconds since 1970, or NULL for none.
func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

// when reads what micros wrote, in UTC.
type when struct{ t *time.Time }

func (w when) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*w.t = time.Time{}
	case int64:
		*w.t = time.UnixMicro(v).UTC()
	default:
		return errors.New("not a time")
	}
	return nil
}
