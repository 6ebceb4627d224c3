package harness

import (
	"encoding/json"

	"countersign/worker/api/wire"
)

// The JSON of the routes that are not a worker's.

// NewSession is the request of POST /v1/sessions. The id is made where it is
// empty; without an environment the session's work is for claims that name none.
type NewSession struct {
	ID            string `json:"id,omitempty"`
	EnvironmentID string `json:"environment_id,omitempty"`
	Title         string `json:"title,omitempty"`
}

// Session is a session as it is told: Status in the public words
// idle, running, rescheduling, terminated; InternalStatus exactly.
type Session struct {
	ID             string        `json:"id"`
	EnvironmentID  string        `json:"environment_id,omitempty"`
	Title          string        `json:"title,omitempty"`
	Status         string        `json:"status"`
	InternalStatus SessionStatus `json:"internal_status"`
	CreatedAt      string        `json:"created_at"`
}

// NewStatus is the request of POST /v1/sessions/{id}/status.
type NewStatus struct {
	Status SessionStatus `json:"status"`
}

// Stopped is the answer to POST /v1/sessions/{id}/stop: how many items were
// marked by it.
type Stopped struct {
	Stopped int `json:"stopped"`
}

// Work is the request of POST /v1/sessions/{id}/work-items. Any kind is taken:
// what a worker cannot do it declines.
type Work struct {
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// WorkItems is the answer to GET /v1/environments/{id}/work-items: the newest 50
// items, newest first, and how many there are of each status.
type WorkItems struct {
	Items  []wire.Item    `json:"items"`
	Counts map[string]int `json:"counts"`
}

// Result is the answer to GET /v1/work-items/{id}/result.
type Result struct {
	Result json.RawMessage `json:"result"`
	Failed bool            `json:"failed"`
}

// Event is one message of GET /v1/sessions/{id}/events/stream.
type Event struct {
	Type      string `json:"type"` // EventSession or EventWorkItem
	SessionID string `json:"session_id"`
	ItemID    string `json:"item_id,omitempty"`
	Status    string `json:"status"` // a public session status; an item status, "claimed" or "stopped"
}

// The types of an Event.
const (
	EventSession  = "session.status"
	EventWorkItem = "work_item.status"
)
