package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/http"
	"strings"

	"countersign/worker/api/wire"
)

// maxIDLength bounds the ids that callers choose, in bytes.
const maxIDLength = 256

// createSession stores a session, and takes in the work that arrived before it.
func (h *Harness) createSession(ctx context.Context, n NewSession) (Session, error) {
	switch {
	case len(n.ID) > maxIDLength, len(n.EnvironmentID) > maxIDLength:
		return Session{}, badRequest("A session's id and environment_id have at most %d bytes.", maxIDLength)
	case strings.Trim(n.ID, ".") == "" && n.ID != "":
		return Session{}, badRequest("A session's id cannot be dots alone: it is part of paths.")
	case n.ID == "":
		n.ID = "sess_" + rand.Text()
	}
	var s Session
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		s, err = scanSession(tx.QueryRowContext(ctx, `
			INSERT INTO sessions (id, environment_id, title, status, created_at, updated_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING
			RETURNING `+sessionColumns, n.ID, n.EnvironmentID, n.Title, SessionQueued, h.now()))
		if rowMissing(err) {
			return conflict("", "There is a session %q already.", n.ID)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE work_items SET environment_id = ? WHERE session_id = ? AND environment_id = ''
			AND status IN ('queued', 'accepted') AND stopped_at IS NULL AND completed_at IS NULL`, n.EnvironmentID, n.ID)
		return err
	})
	if err == nil {
		h.hub.publish(sessionEvent(s))
	}
	return s, err
}

func (h *Harness) session(ctx context.Context, id string) (Session, error) {
	s, err := scanSession(h.pools.reader.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id))
	if rowMissing(err) {
		return Session{}, noSession(id)
	}
	return s, err
}

func noSession(id string) *refusal { return notFound("There is no session %q.", id) }

// setStatus moves a session along the transition table. A terminal status stops
// the session's unfinished items in the same transaction. The status that it has
// already is no transition, and no error.
func (h *Harness) setStatus(ctx context.Context, id string, to SessionStatus) (Session, error) {
	if !to.known() {
		return Session{}, badRequest("There is no session status %q.", to)
	}
	var s Session
	var stopped []itemRef
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var from SessionStatus
		err := tx.QueryRowContext(ctx, `SELECT status FROM sessions WHERE id = ?`, id).Scan(&from)
		switch {
		case rowMissing(err):
			return noSession(id)
		case err != nil:
			return err
		case from != to && !from.mayBecome(to):
			return conflict("", "A session that is %s cannot become %s.", from, to)
		}
		s, err = scanSession(tx.QueryRowContext(ctx,
			`UPDATE sessions SET status = ?, updated_at = ? WHERE id = ? RETURNING `+sessionColumns, to, h.now(), id))
		if err == nil && to.Terminal() {
			stopped, err = markStopped(ctx, tx, id, h.now())
		}
		return err
	})
	if err != nil {
		return Session{}, err
	}
	h.hub.publish(sessionEvent(s))
	h.stoppedEvents(stopped)
	return s, nil
}

// stopSession marks the session's unfinished items, held ones too, and returns
// how many it marked: none the second time. The session itself can go on.
func (h *Harness) stopSession(ctx context.Context, id string) (int, error) {
	var stopped []itemRef
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		stopped, err = markStopped(ctx, tx, id, h.now())
		if err != nil || len(stopped) > 0 {
			return err
		}
		var known bool
		err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)
			OR EXISTS (SELECT 1 FROM work_items WHERE session_id = ?1)`, id).Scan(&known)
		if err == nil && !known {
			return noSession(id)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	h.stoppedEvents(stopped)
	return len(stopped), nil
}

func markStopped(ctx context.Context, tx *sql.Tx, session string, now int64) ([]itemRef, error) {
	return queryRefs(ctx, tx, stopStatement, now, session)
}

const stopStatement = `
	UPDATE work_items SET stopped_at = ?
	WHERE session_id = ? AND status IN ('queued', 'accepted') AND stopped_at IS NULL AND completed_at IS NULL
	RETURNING id, session_id`

func (h *Harness) stoppedEvents(stopped []itemRef) {
	for _, ref := range stopped {
		h.changed(ref.session, ref.id, "stopped")
	}
}

const listStatement = `SELECT ` + itemColumns + `
	FROM work_items WHERE environment_id = ? ORDER BY seq DESC LIMIT 50`

// countStatement groups by whether an item was ever held too: the words of the
// older generations need it.
const countStatement = `SELECT status, claimed_by IS NOT NULL, COUNT(*)
	FROM work_items WHERE environment_id = ? GROUP BY status, claimed_by IS NOT NULL`

// workItems returns an environment's newest items and its counts by status.
func (h *Harness) workItems(ctx context.Context, environment string) (WorkItems, error) {
	list := WorkItems{Items: []wire.Item{}, Counts: map[string]int{}}
	rows, err := h.pools.reader.QueryContext(ctx, listStatement, environment)
	if err != nil {
		return WorkItems{}, err
	}
	defer rows.Close()
	for rows.Next() {
		item, err := h.scanItem(rows)
		if err != nil {
			return WorkItems{}, err
		}
		list.Items = append(list.Items, item)
	}
	if err := rows.Err(); err != nil {
		return WorkItems{}, err
	}
	return list, h.countItems(ctx, environment, list.Counts)
}

func (h *Harness) countItems(ctx context.Context, environment string, counts map[string]int) error {
	rows, err := h.pools.reader.QueryContext(ctx, countStatement, environment)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var status string
		var held bool
		var n int
		if err := rows.Scan(&status, &held, &n); err != nil {
			return err
		}
		counts[h.options.Generation.word(status, held)] += n
	}
	return rows.Err()
}

const sessionColumns = `id, environment_id, title, status, created_at`

func scanSession(row interface{ Scan(...any) error }) (Session, error) {
	var s Session
	var created int64
	if err := row.Scan(&s.ID, &s.EnvironmentID, &s.Title, &s.InternalStatus, &created); err != nil {
		return Session{}, err
	}
	s.Status = s.InternalStatus.Public()
	s.CreatedAt = *timestamp(&created)
	return s, nil
}

// sessionRoutes adds what is not a worker's: sessions, enqueueing, waiting.
func (h *Harness) sessionRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+wire.HealthPath, h.handleHealth)
	mux.HandleFunc("POST /v1/sessions", h.handleCreateSession)
	mux.HandleFunc("GET /v1/sessions/{id}", h.handleSession)
	mux.HandleFunc("POST /v1/sessions/{id}/status", h.handleSetStatus)
	mux.HandleFunc("POST /v1/sessions/{id}/stop", h.handleStop)
	mux.HandleFunc("POST /v1/sessions/{id}/work-items", h.handleEnqueue)
	mux.HandleFunc("GET /v1/sessions/{id}/events/stream", h.handleEvents)
	mux.HandleFunc("GET /v1/environments/{id}/work-items", h.handleWorkItems)
	mux.HandleFunc("GET /v1/work-items/{id}/result", h.handleAwait)
}
