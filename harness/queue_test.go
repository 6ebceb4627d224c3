package harness

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

func TestTheOldestItemIsHandedOutFirst(t *testing.T) {
	s := serve(t, Options{})
	first, second := s.enqueues("sess_b"), s.enqueues("sess_a")
	if got := s.claims("w1").item(t).ID; got != first {
		t.Errorf("claimed %s first, want %s", got, first)
	}
	if got := s.claims("w1").item(t).ID; got != second {
		t.Errorf("claimed %s second, want %s", got, second)
	}
}

func TestALiveLeaseIsNotHandedOutAndALapsedOneIs(t *testing.T) {
	s := serve(t, Options{Lease: 10 * time.Second})
	id := s.heldItem()
	s.clock.advance(10*time.Second - time.Millisecond)
	wants(t, "claim inside the lease", s.claims("w2"), 204, "")
	s.clock.advance(time.Millisecond)
	again := s.claims("w2").item(t)
	if again.ID != id || *again.ClaimedBy != "w2" || again.AcceptedAt != nil {
		t.Errorf("reclaimed %+v", again)
	}
}

func TestAHeartbeatRestartsTheLeaseBeforeAndAfterTheAccept(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	for range 5 {
		s.clock.advance(DefaultLease - time.Second)
		wants(t, "heartbeat", s.heartbeats(id, "w1"), 200, "")
	}
	wants(t, "accept", s.accepts(id, "w1"), 200, "")
	for range 5 {
		s.clock.advance(DefaultLease - time.Second)
		wants(t, "heartbeat", s.heartbeats(id, "w1"), 200, "")
		wants(t, "claim", s.claims("w2"), 204, "")
	}
	if got := s.status(id); got != statusAccepted {
		t.Errorf("status %s", got)
	}
}

func TestAHeartbeatRenewsALapsedClaimSoThatItCanBeAccepted(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	s.clock.advance(time.Hour)
	wants(t, "accept", s.accepts(id, "w1"), 409, wire.CodeLeaseLost)
	wants(t, "heartbeat", s.heartbeats(id, "w1"), 200, "")
	wants(t, "accept", s.accepts(id, "w1"), 200, "")
}

func TestAcceptingAgainRestampsTheAccept(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	wants(t, "accept", s.accepts(id, "w1"), 200, "")
	before := s.column(id, "accepted_at")
	s.clock.advance(DefaultLease - time.Second)
	wants(t, "accept again", s.accepts(id, "w1"), 200, "")
	if after := s.column(id, "accepted_at"); after == before {
		t.Error("accepted_at was not restamped")
	}
	s.clock.advance(DefaultLease - time.Second)
	wants(t, "accept inside the restamped lease", s.accepts(id, "w1"), 200, "")
}

func TestAnAcceptedItemWhoseLeaseLapsedBecomesUnknownAndIsNeverHandedOutAgain(t *testing.T) {
	s := serve(t, Options{})
	id := s.heldItem()
	acceptIt(s, id)
	s.clock.advance(DefaultLease)
	for range 3 {
		wants(t, "claim", s.claims("w2"), 204, "")
	}
	if got := s.status(id); got != statusUnknown {
		t.Errorf("status %s", got)
	}
	if s.column(id, "accepted_at") == "" {
		t.Error("the accept is forgotten")
	}
}

func TestAClaimForOneSessionOrEnvironmentTakesOnlyItsItems(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_a", "env_a")
	s.makes("sess_b", "env_b")
	a, b := s.enqueues("sess_a"), s.enqueues("sess_b")
	none := s.enqueues("sess_unknown")
	claim := func(req wire.ClaimRequest) answer {
		req.WorkerID = "w1"
		return s.call(wire.ClaimPath, req)
	}
	wants(t, "both", claim(wire.ClaimRequest{SessionID: "sess_a", EnvironmentID: "env_b"}), 204, "")
	if got := claim(wire.ClaimRequest{EnvironmentID: "env_b"}).item(t).ID; got != b {
		t.Errorf("claimed %s, want %s", got, b)
	}
	wants(t, "environment", claim(wire.ClaimRequest{EnvironmentID: "env_b"}), 204, "")
	if got := claim(wire.ClaimRequest{SessionID: "sess_a", EnvironmentID: "env_a"}).item(t).ID; got != a {
		t.Errorf("claimed %s, want %s", got, a)
	}
	wants(t, "session", claim(wire.ClaimRequest{SessionID: "sess_a"}), 204, "")
	if got := claim(wire.ClaimRequest{}).item(t).ID; got != none {
		t.Errorf("claimed %s, want the item of the unknown session", got)
	}
}

func TestWorkThatArrivedBeforeItsSessionBelongsToTheSessionsEnvironment(t *testing.T) {
	s := serve(t, Options{})
	id := s.enqueues("sess_late")
	s.makes("sess_late", "env_a")
	got := s.call(wire.ClaimPath, wire.ClaimRequest{WorkerID: "w1", EnvironmentID: "env_a"}).item(t).ID
	if got != id {
		t.Errorf("claimed %s, want %s", got, id)
	}
}

func TestItemsOfAnEndedSessionDoNotStarveThoseBehindThem(t *testing.T) {
	s := serve(t, Options{})
	s.makes("sess_ended", "")
	for range 3 {
		s.enqueues("sess_ended")
	}
	behind := s.enqueues("sess_on")
	// Ended without marking its items, as a crash of another program might.
	if _, err := s.pools.writer.Exec(`UPDATE sessions SET status = 'completed' WHERE id = 'sess_ended'`); err != nil {
		t.Fatal(err)
	}
	if got := s.claims("w1").item(t).ID; got != behind {
		t.Errorf("claimed %s, want %s", got, behind)
	}
	wants(t, "claim", s.claims("w1"), 204, "")
}

func TestWorkersRacingForTheSameItemsNeverGetOneTwice(t *testing.T) {
	s := serve(t, Options{})
	const items, workers = 60, 4
	for i := range items {
		s.enqueues(fmt.Sprint("sess_", i%3))
	}
	var mu sync.Mutex
	accepted := map[string]string{}
	var group sync.WaitGroup
	for w := range workers {
		worker := fmt.Sprint("w", w)
		group.Go(func() {
			for {
				a := s.claims(worker)
				if a.status == http.StatusNoContent {
					return
				}
				id := a.item(t).ID
				wants(t, "accept", s.accepts(id, worker), 200, "")
				mu.Lock()
				if other, twice := accepted[id]; twice {
					t.Errorf("%s went to %s and %s", id, other, worker)
				}
				accepted[id] = worker
				mu.Unlock()
				wants(t, "complete", s.completes(id, worker), 200, "")
			}
		})
	}
	group.Wait()
	if len(accepted) != items {
		t.Errorf("%d items were handed out, want %d", len(accepted), items)
	}
}

func TestRacingAcceptsOfALapsedItemLetOneWorkerStart(t *testing.T) {
	s := serve(t, Options{})
	for range 20 {
		id := s.heldItem()
		s.clock.advance(DefaultLease)
		starts := make(chan string, 2)
		var group sync.WaitGroup
		group.Go(func() { // the first holder renews and accepts
			if s.heartbeats(id, "w1").status == 200 && s.accepts(id, "w1").status == 200 {
				starts <- "w1"
			}
		})
		group.Go(func() { // another claims and accepts
			if s.claims("w2").status == 200 && s.accepts(id, "w2").status == 200 {
				starts <- "w2"
			}
		})
		group.Wait()
		if len(starts) != 1 {
			t.Fatalf("%d workers may start %s", len(starts), id)
		}
		wants(t, "complete", s.completes(id, <-starts), 200, "")
	}
}

func TestTheQueueOutlivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a dir?#%", "harness.db")
	if _, err := openPools(t.Context(), path); err == nil {
		t.Fatal("opened a database in a directory that does not exist")
	}
	path = filepath.Join(t.TempDir(), "harness ?#%41.db")
	now := newClock()
	first := serve(t, Options{Path: path, Now: now.Now})
	held, waiting := first.heldItem(), first.enqueues("sess_1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := serve(t, Options{Path: path, Now: now.Now})
	wants(t, "accept", second.accepts(held, "w1"), 200, "")
	if got := second.claims("w2").item(t).ID; got != waiting {
		t.Errorf("claimed %s, want %s", got, waiting)
	}
}
