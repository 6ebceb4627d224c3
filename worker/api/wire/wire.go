// Package wire holds the JSON that a worker and a harness exchange, as
// PROTOCOL.md §2 and §4 define it. It is the only code that package harness and
// package worker share: types and field names, no behaviour.
package wire

import "encoding/json"

// Paths of the worker routes. All are POST.
const (
	WorkerBase    = "/v1/x/worker"
	ClaimPath     = WorkerBase + "/claim"
	AcceptPath    = WorkerBase + "/accept"
	HeartbeatPath = WorkerBase + "/heartbeat"
	CompletePath  = WorkerBase + "/complete"
	HealthPath    = "/v1/x/health"
)

// CodeLeaseLost is the error code of work that was stopped, or whose claim
// lease has run out.
const CodeLeaseLost = "work_lease_lost"

// Codes of a wait for a result that ended without one (PROTOCOL.md §5).
const (
	CodeQueueTimeout   = "work_queue_timeout"
	CodeOutcomeUnknown = "work_outcome_unknown"
)

// Whether the work behind a failed wait may be enqueued again.
const (
	Retryable    = "retryable"
	NotRetryable = "not_retryable"
)

// Kinds of work (PROTOCOL.md §4).
const (
	KindExec       = "exec"
	KindRead       = "read"
	KindWrite      = "write"
	KindList       = "list"
	KindCustomTool = "custom_tool"
)

// ClaimRequest asks for one item.
type ClaimRequest struct {
	WorkerID       string `json:"worker_id"`
	SessionID      string `json:"session_id,omitempty"`
	EnvironmentID  string `json:"environment_id,omitempty"`
	EnvironmentKey string `json:"environment_key,omitempty"`
}

// HoldRequest is the request of accept and of heartbeat.
type HoldRequest struct {
	ID       string `json:"id"`
	WorkerID string `json:"worker_id"`
}

// CompleteRequest reports a result. Result is always sent, null at least.
type CompleteRequest struct {
	ID       string          `json:"id"`
	WorkerID string          `json:"worker_id"`
	Result   json.RawMessage `json:"result"`
	Failed   bool            `json:"failed,omitempty"`
}

// OK is the answer to accept, heartbeat and complete.
type OK struct {
	OK bool `json:"ok"`
}

// Item is one work item as a harness writes it. Timestamps are UTC, either
// "2006-01-02 15:04:05" or RFC 3339. Secret is a per-session credential.
type Item struct {
	ID          string          `json:"id"`
	SessionID   string          `json:"sessionId"`
	Kind        string          `json:"kind"`
	Payload     json.RawMessage `json:"payload"`
	Status      string          `json:"status"`
	ClaimedBy   *string         `json:"claimedBy"`
	CreatedAt   string          `json:"createdAt"`
	ClaimedAt   *string         `json:"claimedAt"`
	AcceptedAt  *string         `json:"acceptedAt,omitempty"`
	StoppedAt   *string         `json:"stoppedAt,omitempty"`
	CompletedAt *string         `json:"completedAt"`
	Secret      string          `json:"secret,omitempty"`
}

// Error is the body of every refusal.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says why. Decide on the HTTP status and Code, never on Message.
type ErrorBody struct {
	Type        string `json:"type"`
	Message     string `json:"message"`
	Code        string `json:"code,omitempty"`
	RetryStatus string `json:"retry_status,omitempty"`
}

// Exec is the payload of an exec item. TimeoutMS is nil where none was given.
type Exec struct {
	Command   string            `json:"command"`
	Cwd       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	TimeoutMS *int64            `json:"timeout,omitempty"`
}

// ExecResult is the result of an exec item.
type ExecResult struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	TimedOut bool   `json:"timedOut"`
	Aborted  bool   `json:"aborted"`
}

// Read is the payload of a read item; its result is a JSON string.
type Read struct {
	Path string `json:"path"`
}

// Write is the payload of a write item; its result is OK.
type Write struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// List is the payload of a list item; its result is a JSON array of paths.
type List struct {
	Path string `json:"path,omitempty"`
}

// Failure is the result of an item that is completed with failed: true.
type Failure struct {
	Message string `json:"message"`
}
