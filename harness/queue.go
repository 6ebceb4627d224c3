package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"countersign/worker/api/wire"
)

// The statuses of a work item, in the newest harness's words (PROTOCOL.md §5).
const (
	statusQueued   = "queued" // held or not: the hold is claimed_by and lease_until
	statusAccepted = "accepted"
	statusApplied  = "applied"
	statusFailed   = "failed"
	statusUnknown  = "unknown"
)

// enqueue stores one item. The session's status is read in the same statement: a
// session that ends at this moment either marks the item, or is seen here, and
// the item is stored already stopped.
func (h *Harness) enqueue(ctx context.Context, session string, work Work) (wire.Item, error) {
	query := `
		INSERT INTO work_items (id, session_id, environment_id, kind, payload, status, created_at, stopped_at)
		VALUES (?1, ?2, COALESCE((SELECT environment_id FROM sessions WHERE id = ?2), ''), ?3, ?4, 'queued', ?5,
			(SELECT ?5 FROM sessions WHERE id = ?2 AND status IN (` + h.ended + `)))
		RETURNING ` + itemColumns
	payload := string(work.Payload)
	if payload == "" {
		payload = "null"
	}
	var item wire.Item
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		item, err = h.scanItem(tx.QueryRowContext(ctx, query, "work_"+rand.Text(), session, work.Kind, payload, h.now()))
		return err
	})
	if err == nil {
		h.changed(item.SessionID, item.ID, statusQueued)
	}
	return item, err
}

// scope restricts a claim; empty fields do not.
type scope struct{ session, environment string }

// claim hands out the oldest item that nobody holds, or none.
func (h *Harness) claim(ctx context.Context, worker string, s scope) (item wire.Item, found bool, err error) {
	now := h.now()
	query, args := h.claimStatement(worker, s, now)
	var lost []itemRef
	err = h.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if lost, err = h.sweep(ctx, tx, now); err != nil {
			return err
		}
		item, err = h.scanItem(tx.QueryRowContext(ctx, query, args...))
		if rowMissing(err) {
			return nil
		}
		found = err == nil
		return err
	})
	if err != nil {
		return wire.Item{}, false, err
	}
	for _, gone := range lost {
		h.changed(gone.session, gone.id, statusUnknown)
	}
	if found {
		h.changed(item.SessionID, item.ID, "claimed")
	}
	return item, found, nil
}

// claimStatement is selection and update in one, so that no row is selected and
// then refused, which would starve those behind it. Whether the session ended is
// asked of the session itself: an item left unmarked is not handed out either.
func (h *Harness) claimStatement(worker string, s scope, now int64) (query string, args []any) {
	args = []any{worker, now, h.leaseFrom(now), now}
	only := ""
	if s.environment != "" {
		only += " AND w.environment_id = ?"
		args = append(args, s.environment)
	}
	if s.session != "" {
		only += " AND w.session_id = ?"
		args = append(args, s.session)
	}
	return `
		UPDATE work_items
		SET claimed_by = ?, claimed_at = ?, lease_until = ?, status = 'queued', accepted_at = NULL
		WHERE seq = (
			SELECT w.seq FROM work_items w
			WHERE w.stopped_at IS NULL AND w.completed_at IS NULL
				AND w.status IN (` + h.options.Generation.claimable() + `)
				AND (w.lease_until IS NULL OR w.lease_until <= ?)
				AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = w.session_id AND s.status IN (` + h.ended + `))` + only + `
			ORDER BY w.seq LIMIT 1)
		RETURNING ` + itemColumns, args
}

// sweep makes accepted items whose lease lapsed unknown: their effect may have
// happened, so they are nobody's to run. Those of a stopped session stay: their
// holder may still report.
func (h *Harness) sweep(ctx context.Context, tx *sql.Tx, now int64) ([]itemRef, error) {
	if !h.options.Generation.sweeps() {
		return nil, nil
	}
	return queryRefs(ctx, tx, sweepStatement, now)
}

const sweepStatement = `
	UPDATE work_items SET status = 'unknown'
	WHERE status = 'accepted' AND lease_until <= ? AND stopped_at IS NULL AND completed_at IS NULL
	RETURNING id, session_id`

// accept commits an item to its holder: the one answer that authorizes a start.
// It wants a live lease, and restarts it. Asked again it answers the same.
func (h *Harness) accept(ctx context.Context, id, worker string) error {
	now := h.now()
	return h.held(ctx, id, worker, statusAccepted, `
		UPDATE work_items SET status = 'accepted', accepted_at = ?, lease_until = ?
		WHERE id = ? AND claimed_by = ? AND stopped_at IS NULL AND status IN ('queued', 'accepted') AND lease_until > ?
		RETURNING session_id`, now, h.leaseFrom(now), id, worker, now)
}

// heartbeat restarts the lease, also one that lapsed and that nobody has taken.
func (h *Harness) heartbeat(ctx context.Context, id, worker string) error {
	return h.held(ctx, id, worker, "", `
		UPDATE work_items SET lease_until = ?
		WHERE id = ? AND claimed_by = ? AND stopped_at IS NULL AND status IN ('queued', 'accepted')
		RETURNING session_id`, h.leaseFrom(h.now()), id, worker)
}

// complete records a result. It wants the holder, and neither an accept (a
// declined item has none) nor a session that goes on.
func (h *Harness) complete(ctx context.Context, id, worker string, result json.RawMessage, failed bool) error {
	status := statusApplied
	if failed {
		status = statusFailed
	}
	return h.held(ctx, id, worker, status, `
		UPDATE work_items SET status = ?, result = ?, completed_at = ?
		WHERE id = ? AND claimed_by = ? AND status IN ('queued', 'accepted')
		RETURNING session_id`, status, string(result), h.now(), id, worker)
}

// held runs one conditional update of an item for its holder, and says why when
// it changed nothing. status is what the item became, "" where it did not change.
func (h *Harness) held(ctx context.Context, id, worker, status, update string, args ...any) error {
	var session string
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, update, args...).Scan(&session)
		if rowMissing(err) {
			return classify(ctx, tx, id, worker)
		}
		return err
	})
	if err == nil && status != "" {
		h.changed(session, id, status)
	}
	return err
}

// classify says why a conditional update changed nothing: what is true of the
// work before what is true of the caller.
func classify(ctx context.Context, tx *sql.Tx, id, worker string) error {
	var stopped bool
	var holder sql.Null[string]
	var status string
	err := tx.QueryRowContext(ctx, `SELECT stopped_at IS NOT NULL, claimed_by, status FROM work_items WHERE id = ?`, id).
		Scan(&stopped, &holder, &status)
	switch {
	case rowMissing(err):
		return notFound("There is no work item %q.", id)
	case err != nil:
		return err
	case stopped:
		return conflict(wire.CodeLeaseLost, "Work item %s was stopped by its session.", id)
	case !holder.Valid:
		return conflict("", "Work item %s is held by nobody.", id)
	case holder.V != worker:
		return conflict("", "Work item %s is held by another worker.", id)
	case status == statusApplied, status == statusFailed:
		return conflict("", "Work item %s is finished already.", id)
	case status == statusUnknown:
		return conflict("", "The lease of work item %s ran out after it was accepted; its outcome is recorded as unknown.", id)
	}
	return conflict(wire.CodeLeaseLost, "The claim lease of work item %s has run out.", id)
}

// itemColumns are what scanItem reads.
const itemColumns = `id, session_id, kind, payload, status, claimed_by, created_at, claimed_at, accepted_at, stopped_at, completed_at`

// scanItem reads one item as it goes over the wire.
func (h *Harness) scanItem(row interface{ Scan(...any) error }) (wire.Item, error) {
	var item wire.Item
	var payload string
	var created int64
	var claimed, accepted, stopped, completed *int64
	err := row.Scan(&item.ID, &item.SessionID, &item.Kind, &payload, &item.Status, &item.ClaimedBy,
		&created, &claimed, &accepted, &stopped, &completed)
	if err != nil {
		return wire.Item{}, err
	}
	item.Payload = json.RawMessage(payload)
	item.Status = h.options.Generation.word(item.Status, item.ClaimedBy != nil)
	item.CreatedAt = *timestamp(&created)
	item.ClaimedAt, item.AcceptedAt = timestamp(claimed), timestamp(accepted)
	item.StoppedAt, item.CompletedAt = timestamp(stopped), timestamp(completed)
	return item, nil
}

// timestamp is a time as PROTOCOL.md §2 writes it.
func timestamp(ms *int64) *string {
	if ms == nil {
		return nil
	}
	s := time.UnixMilli(*ms).UTC().Format(time.DateTime)
	return &s
}

// itemRef names an item that changed.
type itemRef struct{ id, session string }

func queryRefs(ctx context.Context, tx *sql.Tx, query string, args ...any) (refs []itemRef, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var ref itemRef
		if err := rows.Scan(&ref.id, &ref.session); err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, rows.Err()
}
