package harness

import (
	"slices"
	"strings"
)

// SessionStatus is the status of a session (PROTOCOL.md §5).
type SessionStatus string

// The session statuses.
const (
	SessionQueued         SessionStatus = "queued"
	SessionRunning        SessionStatus = "running"
	SessionPaused         SessionStatus = "paused"
	SessionRequiresAction SessionStatus = "requires_action"
	SessionRetrying       SessionStatus = "retrying"
	SessionFailed         SessionStatus = "failed" // may run again
	SessionCompleted      SessionStatus = "completed"
	SessionCancelled      SessionStatus = "cancelled"
	SessionTimedOut       SessionStatus = "timed_out"
	SessionCleanupPending SessionStatus = "cleanup_pending"
	SessionArchived       SessionStatus = "archived"
)

// transitions returns, for every status, the statuses that may follow it. It is
// the only list: what is terminal is derived from it.
func transitions() map[SessionStatus][]SessionStatus {
	ends := []SessionStatus{SessionCompleted, SessionCancelled, SessionTimedOut, SessionCleanupPending, SessionArchived}
	goesOn := func(to ...SessionStatus) []SessionStatus { return append(to, ends...) }
	return map[SessionStatus][]SessionStatus{
		SessionQueued:         goesOn(SessionRunning, SessionPaused, SessionFailed),
		SessionRunning:        goesOn(SessionQueued, SessionPaused, SessionRequiresAction, SessionRetrying, SessionFailed),
		SessionPaused:         goesOn(SessionQueued, SessionRunning, SessionFailed),
		SessionRequiresAction: goesOn(SessionQueued, SessionRunning, SessionPaused, SessionFailed),
		SessionRetrying:       goesOn(SessionQueued, SessionRunning, SessionPaused, SessionFailed),
		SessionFailed:         goesOn(SessionQueued, SessionRunning, SessionRetrying),
		SessionCompleted:      {SessionCleanupPending, SessionArchived},
		SessionCancelled:      {SessionCleanupPending, SessionArchived},
		SessionTimedOut:       {SessionCleanupPending, SessionArchived},
		SessionCleanupPending: {SessionArchived},
		SessionArchived:       {},
	}
}

// known reports whether s is a status at all.
func (s SessionStatus) known() bool {
	_, ok := transitions()[s]
	return ok
}

// mayBecome reports whether next may follow s.
func (s SessionStatus) mayBecome(next SessionStatus) bool {
	return slices.Contains(transitions()[s], next)
}

// Terminal reports whether a session in this status has ended for good: no way
// leads from it to running.
func (s SessionStatus) Terminal() bool {
	table := transitions()
	seen := map[SessionStatus]bool{s: true}
	for queue := []SessionStatus{s}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == SessionRunning {
			return false
		}
		for _, next := range table[queue[0]] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return true
}

// Public is the status as GET /v1/sessions/{id} tells it (PROTOCOL.md §2).
func (s SessionStatus) Public() string {
	switch {
	case s.Terminal():
		return "terminated"
	case s == SessionRunning:
		return "running"
	case s == SessionRetrying:
		return "rescheduling"
	}
	return "idle" // waits for something: a turn, a person, another try
}

// terminalSQL is the list of terminal statuses as SQL text, for IN (…).
func terminalSQL() string {
	var quoted []string
	for s := range transitions() {
		if s.Terminal() {
			quoted = append(quoted, "'"+string(s)+"'")
		}
	}
	slices.Sort(quoted)
	return strings.Join(quoted, ", ")
}
