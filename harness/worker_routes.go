package harness

import (
	"context"
	"net/http"

	"countersign/worker/api/wire"
)

// workerRoutes adds the routes of PROTOCOL.md §2.
func (h *Harness) workerRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST "+wire.ClaimPath, h.handleClaim)
	h.holdRoutes(mux, "POST "+wire.AcceptPath, "POST "+wire.HeartbeatPath)
	mux.HandleFunc("POST "+wire.CompletePath, h.handleComplete)
}

func (h *Harness) handleClaim(w http.ResponseWriter, r *http.Request) {
	var req wire.ClaimRequest
	if err := decode(w, r, maxSmallBody, &req); err != nil {
		h.refuse(w, r, err)
		return
	}
	s, err := h.claimScope(req)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	item, found, err := h.claim(r.Context(), req.WorkerID, s)
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case !found:
		w.WriteHeader(http.StatusNoContent)
	default:
		h.options.Log.Debug("claimed", "item", item.ID, "worker", req.WorkerID)
		writeJSON(w, http.StatusOK, item)
	}
}

// claimScope checks a claim and returns what it may take. An environment key
// restricts its claim to one environment. Where environment keys are all that
// guards a harness, a claim without one is refused; an API key stands for all.
func (h *Harness) claimScope(req wire.ClaimRequest) (scope, error) {
	s := scope{session: req.SessionID, environment: req.EnvironmentID}
	if req.WorkerID == "" {
		return scope{}, badRequest("A claim needs a worker_id.")
	}
	if h.options.Generation == Old {
		return s, nil
	}
	if req.EnvironmentKey == "" {
		if len(h.options.EnvironmentKeys) > 0 && len(h.options.APIKeys) == 0 {
			return scope{}, unauthorized("This harness wants an environment key.")
		}
		return s, nil
	}
	allowed, ok := h.environmentOf(req.EnvironmentKey)
	if !ok {
		return scope{}, unauthorized("The environment key is wrong or has expired.")
	}
	if s.environment != "" && s.environment != allowed {
		return scope{}, badRequest("The environment key is not for environment %q.", s.environment)
	}
	s.environment = allowed
	return s, nil
}

// handleHold serves accept and heartbeat, which ask the same way.
func (h *Harness) handleHold(do func(ctx context.Context, id, worker string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req wire.HoldRequest
		err := decode(w, r, maxSmallBody, &req)
		if err == nil {
			err = needsHolder(req.ID, req.WorkerID)
		}
		if err == nil {
			err = do(r.Context(), req.ID, req.WorkerID)
		}
		h.answerOK(w, r, err)
	}
}

func (h *Harness) handleComplete(w http.ResponseWriter, r *http.Request) {
	var req wire.CompleteRequest
	err := decode(w, r, h.options.MaxBody, &req)
	if err == nil {
		err = needsHolder(req.ID, req.WorkerID)
	}
	if err == nil && req.Result == nil {
		// Some harnesses answer 500 here; it is the request that is wrong.
		err = badRequest("A completion needs a result, null at least.")
	}
	if err == nil {
		err = h.complete(r.Context(), req.ID, req.WorkerID, req.Result, req.Failed)
	}
	h.answerOK(w, r, err)
}

func needsHolder(id, worker string) error {
	if id == "" || worker == "" {
		return badRequest("This needs the id of a work item and the worker_id that claimed it.")
	}
	return nil
}

func (h *Harness) answerOK(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, wire.OK{OK: true})
}
