package harness

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"time"

	"countersign/worker/api/wire"
)

// await returns an item's result as soon as there is one, or says at the deadline
// what became of it (PROTOCOL.md §5). It sleeps until the item changes.
func (h *Harness) await(ctx context.Context, id string, timeout time.Duration) (Result, error) {
	changes := h.hub.subscribe(itemTopic(id), 1)
	defer h.hub.unsubscribe(changes)
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		row, err := readWaited(ctx, h.pools.reader, id)
		switch {
		case rowMissing(err):
			return Result{}, notFound("There is no work item %q.", id)
		case err == nil && row.result != nil:
			return row.answer(), nil
		case err == nil && row.hopeless():
			return h.giveUp(ctx, id)
		}
		select {
		case <-changes.events:
		case <-deadline.C:
			return h.giveUp(ctx, id)
		case <-ctx.Done():
			return Result{}, ctx.Err()
		case <-h.stopping:
			return Result{}, unavailable("The harness is shutting down.")
		}
	}
}

// giveUp ends a wait: with a result that came in time after all, or with a code.
// The item's state and the mark are one transaction.
func (h *Harness) giveUp(ctx context.Context, id string) (Result, error) {
	var row waited
	err := h.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if row, err = readWaited(ctx, tx, id); err != nil || row.result != nil {
			return err
		}
		// A record for whoever looks later, never a fence: the holder may go on.
		_, err = tx.ExecContext(ctx, `
			UPDATE work_items SET abandoned_at = ?
			WHERE id = ? AND claimed_by IS NOT NULL AND accepted_at IS NULL AND abandoned_at IS NULL`, h.now(), id)
		return err
	})
	switch {
	case err != nil:
		h.options.Log.Error("wait ended on a row that cannot be read", "item", id, "error", err)
		return Result{}, outcomeUnknown()
	case row.result != nil:
		return row.answer(), nil
	case row.stopped:
		return Result{}, gaveUp(http.StatusConflict, wire.CodeLeaseLost, wire.NotRetryable,
			"The session was stopped before this work had a result.")
	case row.status == statusQueued && !row.claimed:
		return Result{}, gaveUp(http.StatusGatewayTimeout, wire.CodeQueueTimeout, wire.Retryable,
			"No worker took this work in time, so it has not run. It is still queued: a worker that comes later can run it, and asked for again it may run twice.")
	}
	return Result{}, outcomeUnknown()
}

func outcomeUnknown() *refusal {
	return gaveUp(http.StatusGatewayTimeout, wire.CodeOutcomeUnknown, wire.NotRetryable,
		"There is no result in time. The work may have run wholly, partly or not at all, and a worker that has it may still run it.")
}

func gaveUp(status int, code, retry, message string) *refusal {
	kind := "timeout"
	if status == http.StatusConflict {
		kind = "conflict"
	}
	return &refusal{status, wire.ErrorBody{Type: kind, Code: code, RetryStatus: retry, Message: message}}
}

// waited is what a wait needs to know of an item.
type waited struct {
	status           string
	stopped, claimed bool
	result           *string
}

// hopeless reports whether no result can come any more, so that the answer at the
// deadline is known now: nobody holds it and nobody will, or it was given up.
func (w waited) hopeless() bool {
	return w.status == statusUnknown || w.stopped && !w.claimed
}

func (w waited) answer() Result {
	return Result{Result: json.RawMessage(*w.result), Failed: w.status == statusFailed}
}

func readWaited(ctx context.Context, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, id string) (w waited, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT status, stopped_at IS NOT NULL, claimed_by IS NOT NULL, result FROM work_items WHERE id = ?`, id).
		Scan(&w.status, &w.stopped, &w.claimed, &w.result)
	return w, err
}
