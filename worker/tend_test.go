package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/worker"
)

func TestADecisionNamesExactlyWhatWasShownAndCountsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		v := b.waiting()
		if err := b.engine.Approve(v.ID, "0000", "operator"); !errors.Is(err, worker.ErrChanged) {
			t.Errorf("another digest: %v", err)
		}
		if err := b.engine.Approve(v.ID+1, v.Digest, "operator"); !errors.Is(err, worker.ErrNoHold) {
			t.Errorf("another number: %v", err)
		}
		if err := b.engine.Stop(v.ID); !errors.Is(err, worker.ErrNotRunning) {
			t.Errorf("stopping what waits: %v", err)
		}
		b.approve(v)
		if err := b.engine.Decline(v.ID, v.Digest, "", "operator"); !errors.Is(err, worker.ErrDecided) {
			t.Errorf("a second decision: %v", err)
		}
		settle(time.Second)
		if err := b.engine.Release(v.ID); !errors.Is(err, worker.ErrAccepted) {
			t.Errorf("releasing what runs: %v", err)
		}
		b.wantStarts("true")
	})
}

func TestTheDigestCoversTheItemAndItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "a"), item("i2", "s", "a"), item("i3", "s", "b"), item("i4", "t", "a"))
		b.start()
		settle(time.Second)
		seen := map[string]bool{}
		for _, v := range b.engine.Snapshot().Waiting {
			seen[v.Digest] = true
		}
		if len(seen) != 4 {
			t.Errorf("%d digests for 4 items", len(seen))
		}
	})
}

func TestItemsOfOneSessionRunInOrderAndTwoAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("a1", "a", "a1"))
		b.start(approveAll)
		settle(time.Second)
		b.script.offer(item("a2", "a", "a2"), item("b1", "b", "b1"), item("c1", "c", "c1"))
		settle(time.Second)
		s := b.engine.Snapshot()
		if len(s.Running) != 2 || s.Running[0].Item.ID != "a1" {
			t.Fatalf("running: %s", describe(s))
		}
		for _, v := range s.Waiting {
			if v.Word != worker.WordInLine {
				t.Errorf("%s is %q", v.Item.ID, v.Word)
			}
		}
		if err := b.engine.Stop(s.Running[0].ID); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if got := b.tools.started(); len(got) != 3 {
			t.Errorf("started %q", got)
		}
	})
}

func TestAnUndecidedItemHoldsBackLaterOnesOfItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("a1", "a", "a1"))
		time.Sleep(time.Millisecond)
		b.script.offer(item("a2", "a", "a2"))
		b.start()
		settle(time.Second)
		s := b.engine.Snapshot()
		b.approve(s.Waiting[1])
		settle(time.Second)
		b.wantStarts()
		v := s.Waiting[0]
		if err := b.engine.Decline(v.ID, v.Digest, "", "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.wantStarts("a2")
	})
}

func TestPausedMeansNoClaimsAndNoStartsAndApprovalsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "a", "one"), item("i2", "b", "two"))
		b.start()
		settle(time.Second)
		s := b.engine.Snapshot()
		b.approve(s.Waiting[0])
		settle(time.Second)
		b.engine.Pause(time.Time{})
		settle(time.Second)
		claims := len(b.script.made("claim"))
		b.approve(s.Waiting[1])
		b.script.offer(item("i3", "c", "three"))
		settle(time.Minute)
		b.wantStarts("one")
		b.wantCalls("claim", claims)
		b.wantCalls("accept", 1)
		s = b.engine.Snapshot()
		if !s.Paused || len(s.Running) != 1 || s.Waiting[0].Word != worker.WordPaused {
			t.Errorf("paused: %s", describe(s))
		}
		b.engine.Resume()
		settle(time.Second)
		b.wantStarts("one", "two")
		if got := len(b.script.made("claim")); got == claims {
			t.Error("nothing was claimed after the pause")
		}
	})
}

func TestAPauseWithAnEndEndsThen(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.start()
		settle(time.Second)
		b.engine.Pause(b.clock.Now().Add(15 * time.Minute))
		settle(14 * time.Minute)
		if !b.engine.Snapshot().Paused {
			t.Fatal("not paused")
		}
		settle(2 * time.Minute)
		if b.engine.Snapshot().Paused {
			t.Error("still paused")
		}
	})
}

func TestStopEverythingStopsWhatRunsAndPauses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "a", "one"), item("i2", "b", "two"), item("i3", "c", "three"))
		b.start(approveAll)
		settle(time.Second)
		b.engine.StopEverything()
		settle(time.Minute)
		if got := b.tools.started(); len(got) != 2 {
			t.Errorf("started %q", got)
		}
		b.wantCalls("complete", 2)
		s := b.engine.Snapshot()
		if !s.Paused || len(s.Running) != 0 || len(s.Waiting) != 1 {
			t.Errorf("after stopping: %s", describe(s))
		}
	})
}

func TestADecisionNobodyMakesIsDeclinedFourMinutesAfterCreation(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(2*time.Minute + 30*time.Second)
		b.mustTell(worker.EventExpiring, 0)
		settle(time.Minute)
		b.mustTell(worker.EventExpiring, 1)
		b.wantCalls("complete", 0)
		settle(time.Minute)
		done := b.script.made("complete")
		if len(done) != 1 || !strings.Contains(string(done[0].done.Result), "nobody answered") {
			t.Fatalf("reported %+v", done)
		}
		b.mustTell(worker.EventExpired, 1)
		b.wantStarts()
		if got := b.last(); got.Status() != worker.WordExpired {
			t.Errorf("ended as %q", got.Status())
		}
	})
}

func TestAnOldItemStillHasAMinuteOnceShown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		old := item("i1", "s", "true")
		old.CreatedAt = time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339)
		b.script.offer(old)
		b.start()
		settle(59 * time.Second)
		if v := b.waiting(); v.Age < 10*time.Minute {
			t.Errorf("shown as %v old", v.Age)
		}
		settle(2 * time.Second)
		b.mustTell(worker.EventExpired, 1)
	})
}

func TestTwoExpiriesInARowMeanAway(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for i := range 3 {
			b.script.offer(item(fmt.Sprint("i", i), fmt.Sprint("s", i), "true"))
			time.Sleep(time.Second)
		}
		last := item("i3", "s3", "true")
		last.CreatedAt = time.Now().Add(2 * time.Minute).UTC().Format(time.RFC3339)
		b.script.offer(last)
		b.start()
		settle(5 * time.Minute)
		b.mustTell(worker.EventAway, 1)
		s := b.engine.Snapshot()
		if !s.Away || len(s.Waiting) != 0 {
			t.Fatalf("away %v: %s", s.Away, describe(s))
		}
		claims := len(b.script.made("claim"))
		settle(time.Minute)
		b.wantCalls("claim", claims)
		b.engine.Present()
		settle(time.Second)
		if b.engine.Snapshot().Away || len(b.script.made("claim")) == claims {
			t.Error("claiming did not go on when the operator came back")
		}
	})
}

func TestWhilePausedAnUndecidedItemIsReleasedAtItsLimitNotDeclined(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.engine.Pause(time.Time{})
		settle(5 * time.Minute)
		b.wantCalls("complete", 0)
		if got := b.last(); got.Status() != worker.WordReleased {
			t.Errorf("ended as %q", got.Status())
		}
	})
}

func TestAWithdrawnItemSaysSoWhilePaused(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.engine.Pause(time.Time{})
		b.approve(b.waiting())
		settle(time.Second)
		b.script.on("heartbeat", leaseLost)
		settle(time.Minute)
		s := b.engine.Snapshot()
		if len(s.Finished) != 1 || s.Finished[0].Word != worker.WordWithdrawn {
			t.Errorf("%s", describe(s))
		}
	})
}

func TestAReturnedItemThatIsReleasedSaysReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		it := item("i1", "s", "true")
		b.script.offer(it)
		b.start()
		settle(time.Second)
		_ = b.engine.Release(b.waiting().ID)
		settle(time.Second)
		b.script.offer(it)
		settle(5 * time.Second)
		_ = b.engine.Release(b.waiting().ID)
		settle(time.Second)
		s := b.engine.Snapshot()
		if s.Finished[0].Word != worker.WordReleased || s.Finished[0].DecisionLeft != 0 {
			t.Errorf("%s, decision left %s", describe(s), s.Finished[0].DecisionLeft)
		}
	})
}

func TestApprovedAndAtOnceReleasedSaysReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		v := b.waiting()
		b.approve(v)
		if err := b.engine.Release(v.ID); err != nil {
			t.Log(err)
			return
		}
		settle(time.Second)
		b.wantStarts()
		if got := b.last(); got.Status() != worker.WordReleased {
			t.Errorf("ended as %q", got.Status())
		}
		b.mustTell(worker.EventLeaseLost, 0)
	})
}

func TestAutomaticReleaseIsNotPutOnTheOperator(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.engine.Pause(time.Time{})
		settle(5 * time.Minute)
		entries, err := b.store.Entries(context.Background(), b.last().ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Reason, "operator") {
				t.Errorf("journal: %s: %s", e.Step, e.Reason)
			}
		}
	})
}

func TestExpiringIsToldAgainAfterASuspend(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s1", "one"))
		b.start()
		settle(3*time.Minute + 10*time.Second)
		b.mustTell(worker.EventExpiring, 1)
		b.clock.suspend(time.Hour)
		settle(10 * time.Second)
		b.mustTell(worker.EventExpiring, 2)
	})
}

func TestAPauseUntilEndsOnTimeThoughTheMachineSlept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.start()
		settle(time.Second)
		b.engine.Pause(b.clock.Now().Add(10 * time.Minute))
		b.clock.suspend(time.Hour)
		settle(time.Minute)
		if s := b.engine.Snapshot(); s.Paused {
			t.Errorf("paused until %s, it is %s", s.PausedUntil, s.At)
		}
	})
}
