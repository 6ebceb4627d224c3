package harness

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"countersign/worker/api/wire"
)

// refusal is an answer other than success: the status and what the body says.
type refusal struct {
	status int
	body   wire.ErrorBody
}

func (r *refusal) Error() string { return r.body.Message }

func badRequest(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, wire.ErrorBody{Type: "invalid_request", Message: fmt.Sprintf(format, args...)}}
}

func notFound(format string, args ...any) *refusal {
	return &refusal{http.StatusNotFound, wire.ErrorBody{Type: "not_found", Message: fmt.Sprintf(format, args...)}}
}

func conflict(code, format string, args ...any) *refusal {
	return &refusal{http.StatusConflict, wire.ErrorBody{Type: "conflict", Code: code, Message: fmt.Sprintf(format, args...)}}
}

func unauthorized(message string) *refusal {
	return &refusal{http.StatusUnauthorized, wire.ErrorBody{Type: "authentication", Message: message}}
}

func unavailable(message string) *refusal {
	return &refusal{http.StatusServiceUnavailable, wire.ErrorBody{Type: "unavailable", Message: message}}
}

// refuse answers with err. An error that is no refusal is ours, not the caller's:
// its details go to the log alone.
func (h *Harness) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
	case h.isStopping():
		no = unavailable("The harness is shutting down.")
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // nobody is there to be answered
	default:
		h.options.Log.Error("request failed", "route", r.Pattern, "error", err)
		no = &refusal{http.StatusInternalServerError, wire.ErrorBody{Type: "internal", Message: "The harness could not do this. Its log says why."}}
	}
	h.options.Log.Debug("refused", "route", r.Pattern, "status", no.status, slog.String("code", no.body.Code))
	writeJSON(w, no.status, wire.Error{Error: no.body})
}

func (h *Harness) isStopping() bool {
	select {
	case <-h.stopping:
		return true
	default:
		return false
	}
}

// writeJSON answers with v. Payloads and results pass as they came: no character
// is escaped for the sake of HTML.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	// The status is sent: an error here is a client that hung up.
	_ = encoder.Encode(v)
}

// rowMissing reports whether a query for one row found none.
func rowMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }
