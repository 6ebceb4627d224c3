package harness

import (
	"errors"
	"net/http"
	"testing"

	"countersign/worker/api/wire"
)

// The statuses of PROTOCOL.md §5, as written there. The code derives the second
// list; this test is where both are spelled.
func TestTerminalStatusesAreThoseOfTheProtocol(t *testing.T) {
	want := map[SessionStatus]bool{
		SessionQueued: false, SessionRunning: false, SessionPaused: false, SessionRequiresAction: false,
		SessionRetrying: false, SessionFailed: false,
		SessionCompleted: true, SessionCancelled: true, SessionTimedOut: true, SessionCleanupPending: true, SessionArchived: true,
	}
	table := transitions()
	if len(table) != len(want) {
		t.Errorf("%d statuses in the table, want %d", len(table), len(want))
	}
	for status, terminal := range want {
		if !status.known() {
			t.Errorf("%s is not in the table", status)
		}
		if got := status.Terminal(); got != terminal {
			t.Errorf("%s: terminal %v, want %v", status, got, terminal)
		}
		for _, next := range table[status] {
			if !next.known() {
				t.Errorf("%s leads to %s, which is not in the table", status, next)
			}
			if terminal && !next.Terminal() {
				t.Errorf("%s is terminal and leads back to %s", status, next)
			}
		}
	}
	const sql = `'archived', 'cancelled', 'cleanup_pending', 'completed', 'timed_out'`
	if got := terminalSQL(); got != sql {
		t.Errorf("as SQL: %s", got)
	}
}

func TestThePublicStatusHasFourWords(t *testing.T) {
	want := map[SessionStatus]string{
		SessionQueued: "idle", SessionRunning: "running", SessionPaused: "idle", SessionRequiresAction: "idle",
		SessionRetrying: "rescheduling", SessionFailed: "idle", SessionCompleted: "terminated",
		SessionCancelled: "terminated", SessionTimedOut: "terminated", SessionCleanupPending: "terminated", SessionArchived: "terminated",
	}
	for status := range transitions() {
		if got := status.Public(); got != want[status] {
			t.Errorf("%s is told as %q, want %q", status, got, want[status])
		}
	}
}

// A session with these statuses one after another, and the last refused.
func TestImpossibleTransitionsAreRefused(t *testing.T) {
	for _, path := range [][]SessionStatus{
		{SessionRunning, SessionCompleted, SessionRunning},
		{SessionCancelled, SessionQueued},
		{SessionRunning, SessionTimedOut, SessionFailed},
		{SessionArchived, SessionCleanupPending},
		{SessionRequiresAction}, // a queued session asks for nothing yet
	} {
		s := serve(t, Options{})
		s.makes("sess_1", "")
		for _, to := range path[:len(path)-1] {
			s.moves("sess_1", to)
		}
		last := path[len(path)-1]
		wants(t, string(last), s.call("/v1/sessions/sess_1/status", NewStatus{last}), 409, "")
	}
}

func TestAFailedSessionMayRunAgainAndKeepsItsWork(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	id := s.enqueues("sess_1")
	s.moves("sess_1", SessionRunning)
	s.moves("sess_1", SessionFailed)
	s.moves("sess_1", SessionRunning)
	if got := s.claims("w1").item(t).ID; got != id {
		t.Errorf("claimed %s, want %s", got, id)
	}
}

func TestEveryTerminalStatusStopsTheSessionsUnfinishedWork(t *testing.T) {
	for status := range transitions() {
		if !status.Terminal() {
			continue
		}
		t.Run(string(status), func(t *testing.T) {
			s := serve(t, Options{})
			s.makes("sess_1", "")
			done := s.heldItem()
			wants(t, "complete", s.completes(done, "w1"), 200, "")
			accepted, held := s.heldItem(), s.heldItem()
			acceptIt(s, accepted)
			waiting, other := s.enqueues("sess_1"), s.enqueues("sess_2")
			s.moves("sess_1", status)
			for id, marked := range map[string]bool{done: false, accepted: true, held: true, waiting: true, other: false} {
				if got := s.column(id, "stopped_at") != ""; got != marked {
					t.Errorf("%s item: marked %v, want %v", s.status(id), got, marked)
				}
			}
			wants(t, "heartbeat", s.heartbeats(accepted, "w1"), 409, wire.CodeLeaseLost)
			wants(t, "report of what ran", s.completes(accepted, "w1"), 200, "")
			if got := s.claims("w1").item(t).ID; got != other {
				t.Errorf("claimed %s, want %s", got, other)
			}
		})
	}
}

func TestStoppingTwiceMarksNothingMore(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	held, waiting := s.heldItem(), s.enqueues("sess_1")
	if n := s.stops("sess_1"); n != 2 {
		t.Errorf("stopped %d, want 2", n)
	}
	at := s.column(held, "stopped_at") + s.column(waiting, "stopped_at")
	s.clock.advance(DefaultLease)
	if n := s.stops("sess_1"); n != 0 {
		t.Errorf("stopped %d more", n)
	}
	if again := s.column(held, "stopped_at") + s.column(waiting, "stopped_at"); again != at {
		t.Error("the time of the stop moved")
	}
	wants(t, "claim", s.claims("w2"), 204, "")
	// The session itself goes on.
	next := s.enqueues("sess_1")
	if got := s.claims("w1").item(t).ID; got != next {
		t.Errorf("claimed %s, want %s", got, next)
	}
}

func TestStoppingASessionNobodyHeardOfIsNotFound(t *testing.T) {
	s := serve(t, Options{})
	wants(t, "stop", s.post("/v1/sessions/sess_none/stop", `{}`), 404, "")
	s.heldItem() // of sess_1, which was never created either, but has work
	if n := s.stops("sess_1"); n != 1 {
		t.Errorf("stopped %d, want 1", n)
	}
}

func TestWorkForAnEndedSessionIsStoredStopped(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	s.moves("sess_1", SessionCompleted)
	item, err := s.client.Enqueue(t.Context(), "sess_1", wire.KindRead, wire.Read{Path: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if item.StoppedAt == nil {
		t.Error("the answer does not say that it is stopped")
	}
	wants(t, "claim", s.claims("w1"), 204, "")
}

func TestSessionsAreCreatedOnceAndTold(t *testing.T) {
	s := serve(t, Options{})
	const id = "subsess_a.b#sub_c/d e?f"
	created, err := s.client.CreateSession(t.Context(), NewSession{ID: id, EnvironmentID: "env_a", Title: "Tests"})
	if err != nil {
		t.Fatal(err)
	}
	want := Session{ID: id, EnvironmentID: "env_a", Title: "Tests", Status: "idle", InternalStatus: SessionQueued, CreatedAt: "2026-09-28 06:03:00"}
	if created != want {
		t.Errorf("created %+v", created)
	}
	if got, err := s.client.Session(t.Context(), id); err != nil || got != want {
		t.Errorf("told %+v, %v", got, err)
	}
	_, err = s.client.CreateSession(t.Context(), NewSession{ID: id})
	if answer, ok := errors.AsType[*AnswerError](err); !ok || answer.HTTPStatus != http.StatusConflict {
		t.Errorf("created twice: %v", err)
	}
	made, err := s.client.CreateSession(t.Context(), NewSession{})
	if err != nil || made.ID == "" {
		t.Errorf("made %+v, %v", made, err)
	}
}

func TestSessionRequestsThatCannotBeAreRefused(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_1", "")
	long := string(make([]byte, maxIDLength+1))
	wants(t, "dots", s.call("/v1/sessions", NewSession{ID: ".."}), 400, "")
	wants(t, "long id", s.call("/v1/sessions", NewSession{ID: long}), 400, "")
	wants(t, "status", s.call("/v1/sessions/sess_1/status", NewStatus{"done"}), 400, "")
	wants(t, "unknown session", s.call("/v1/sessions/sess_2/status", NewStatus{SessionRunning}), 404, "")
	wants(t, "no kind", s.post("/v1/sessions/sess_1/work-items", `{"payload":{}}`), 400, "")
	if _, err := s.client.Session(t.Context(), "sess_2"); err == nil {
		t.Error("a session that does not exist is told")
	}
}

func TestAnEnvironmentsWorkIsListedNewestFirstAndCounted(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_a", "env_a")
	s.makes("sess_b", "env_b")
	s.enqueues("sess_b")
	var newest string
	for range 55 {
		newest = s.enqueues("sess_a")
	}
	first := s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentID: "env_a"}).item(t).ID
	wants(t, "complete", s.completes(first, "w1"), 200, "")
	list, err := s.client.WorkItems(t.Context(), "env_a")
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 50 || list.Items[0].ID != newest {
		t.Errorf("%d items, first %s", len(list.Items), list.Items[0].ID)
	}
	if list.Counts[statusQueued] != 54 || list.Counts[statusApplied] != 1 || len(list.Counts) != 2 {
		t.Errorf("counts %v", list.Counts)
	}
	if none, err := s.client.WorkItems(t.Context(), "env_none"); err != nil || none.Items == nil || len(none.Items) != 0 {
		t.Errorf("an environment without work: %+v, %v", none, err)
	}
}
