package harness

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"countersign/worker/api/wire"
)

func (h *Harness) handleHealth(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	var one int
	if err := h.pools.reader.QueryRowContext(ctx, `SELECT 1`).Scan(&one); err != nil {
		h.refuse(w, r, unavailable("The harness cannot read its database."))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"status": "healthy", "name": "countersign", "lease_ms": h.options.Lease.Milliseconds(),
	})
}

func (h *Harness) handleCreateSession(w http.ResponseWriter, r *http.Request) {
	var req NewSession
	err := decode(w, r, maxSmallBody, &req)
	var s Session
	if err == nil {
		s, err = h.createSession(r.Context(), req)
	}
	h.answer(w, r, http.StatusCreated, s, err)
}

func (h *Harness) handleSession(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r.Context(), r.PathValue("id"))
	h.answer(w, r, http.StatusOK, s, err)
}

func (h *Harness) handleSetStatus(w http.ResponseWriter, r *http.Request) {
	var req NewStatus
	err := decode(w, r, maxSmallBody, &req)
	var s Session
	if err == nil {
		s, err = h.setStatus(r.Context(), r.PathValue("id"), req.Status)
	}
	h.answer(w, r, http.StatusOK, s, err)
}

func (h *Harness) handleStop(w http.ResponseWriter, r *http.Request) {
	n, err := h.stopSession(r.Context(), r.PathValue("id"))
	h.answer(w, r, http.StatusOK, Stopped{Stopped: n}, err)
}

func (h *Harness) handleEnqueue(w http.ResponseWriter, r *http.Request) {
	var req Work
	err := decode(w, r, h.options.MaxBody, &req)
	session := r.PathValue("id")
	switch {
	case err != nil:
	case req.Kind == "":
		err = badRequest("Work needs a kind.")
	case len(session) > maxIDLength:
		err = badRequest("A session's id has at most %d bytes.", maxIDLength)
	}
	var item wire.Item
	if err == nil {
		item, err = h.enqueue(r.Context(), session, req)
	}
	h.answer(w, r, http.StatusCreated, item, err)
}

func (h *Harness) handleWorkItems(w http.ResponseWriter, r *http.Request) {
	list, err := h.workItems(r.Context(), r.PathValue("id"))
	h.answer(w, r, http.StatusOK, list, err)
}

// maxWait bounds one wait for a result.
const maxWait = 24 * time.Hour

func (h *Harness) handleAwait(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.ParseInt(r.URL.Query().Get("timeout_ms"), 10, 64)
	if err != nil || ms < 0 || ms > maxWait.Milliseconds() {
		h.refuse(w, r, badRequest("A wait needs timeout_ms, from 0 to %d.", maxWait.Milliseconds()))
		return
	}
	timeout := time.Duration(ms) * time.Millisecond
	untimed(http.NewResponseController(w))
	result, err := h.await(r.Context(), r.PathValue("id"), timeout)
	h.answer(w, r, http.StatusOK, result, err)
}

// untimed lifts a server's time limit on answers from one that is meant to wait.
// Not every ResponseWriter has a limit to lift.
func untimed(c *http.ResponseController) { _ = c.SetWriteDeadline(time.Time{}) }

func (h *Harness) answer(w http.ResponseWriter, r *http.Request, status int, v any, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeJSON(w, status, v)
}
