package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/api"
)

func (b *bench) connection() worker.ConnectionView { return b.engine.Snapshot().Connections[0] }

func TestAHarnessWithoutAcceptIsNeverClaimedFrom(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.on("probe", reply{status: 404, body: `{"error":{"type":"not_found","message":"no route"}}`})
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(time.Hour)
		b.wantCalls("claim", 0)
		b.wantStarts()
		b.mustTell(worker.EventCannotAccept, 1)
		if got := b.connection(); got.State != worker.CannotAccept || got.Detail == "" {
			t.Errorf("connection %q: %s", got.State, got.Detail)
		}

		b.script.on("probe", badRequest)
		settle(time.Minute)
		b.wantStarts("true")
	})
}

func TestNothingIsClaimedWhileTheWorkDirectoryCannotBeUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.unusable = errors.New("/work: not a directory")
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(time.Minute)
		b.wantCalls("claim", 0)
		if got := b.connection(); got.State != worker.WorkDirUnusable || !strings.Contains(got.Detail, "/work: not a directory") {
			t.Errorf("connection %q: %s", got.State, got.Detail)
		}
		b.tools.mu.Lock()
		b.tools.unusable = nil
		b.tools.mu.Unlock()
		settle(time.Minute)
		b.wantStarts("true")
	})
}

func TestNothingIsClaimedWhileTheJournalCannotBeWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var full atomic.Bool
		full.Store(true)
		b.journal = fullDisk{b.store, &full}
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(time.Minute)
		b.wantCalls("claim", 0)
		if got := b.connection(); got.State != worker.JournalUnwritable || !strings.Contains(got.Detail, errDisk.Error()) {
			t.Errorf("connection %q: %s", got.State, got.Detail)
		}
		full.Store(false)
		settle(time.Minute)
		b.wantStarts("true")

		full.Store(true)
		for i := range 20 {
			b.script.offer(item(fmt.Sprint("late", i), "s", "late"))
		}
		before := len(b.script.made("claim"))
		settle(10 * time.Minute)
		if n := len(b.script.made("claim")) - before; n > 8 {
			t.Errorf("%d items were claimed onto a full disk", n)
		}
	})
}

func TestAnEmptyQueueIsAskedOncePerIdleInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.start()
		settle(0)
		before := len(b.script.made("claim"))
		settle(time.Minute)
		b.wantCalls("claim", before+60)
		b.wantCalls("probe", 1)
	})
}

func TestWhileAnItemIsHeldTheQueueIsAskedFourTimesASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(0)
		before := len(b.script.made("claim"))
		settle(10 * time.Second)
		b.wantCalls("claim", before+40)
	})
}

func TestAFullQueueIsClaimedWithoutASleepUpToTheRoomThereIs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.script.offer(item(fmt.Sprint("i", i), fmt.Sprint("s", i), "true"))
		}
		b.start()
		settle(0)
		if got := len(b.engine.Snapshot().Waiting); got != 8 {
			t.Fatalf("%d held, want 8", got)
		}
		settle(time.Minute)
		b.wantCalls("claim", 8)
		if err := b.engine.Release(b.engine.Snapshot().Waiting[0].ID); err != nil {
			t.Fatal(err)
		}
		settle(0)
		b.wantCalls("claim", 9)
	})
}

func TestRejectedCredentialsStopClaimingAndAreRetriedSlowly(t *testing.T) {
	for _, status := range []int{401, 403} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.on("claim", reply{status: status, body: `{"error":{"type":"auth","message":"no"}}`})
				b.start()
				settle(10 * time.Minute)
				if got := len(b.script.made("claim")); got > 90 {
					t.Errorf("%d claims in 10 minutes", got)
				}
				b.mustTell(worker.EventCredentials, 1)
				if got := b.connection(); got.State != worker.CredentialsRejected {
					t.Errorf("connection %q", got.State)
				}
				b.script.on("claim", reply{status: 204})
				settle(time.Minute)
				if got := b.connection(); got.State != worker.Connected {
					t.Errorf("connection %q after the credentials were mended", got.State)
				}
			})
		})
	}
}

func TestAHarnessThatWantsAKeyIsToldApartFromOneThatRejectsOurs(t *testing.T) {
	for key, want := range map[string]string{"": "wants a key, and this connection has none", "mine": "Check the API key"} {
		inBubble(t, func(t *testing.T, b *bench) {
			client, err := api.New(api.Options{Origin: "http://127.0.0.1:1", APIKey: key, Transport: b.script})
			if err != nil {
				t.Fatal(err)
			}
			b.script.on("claim", reply{status: 401, body: `{"error":{"type":"auth","message":"no"}}`})
			b.start(func(c *worker.Config) { c.Harness = client })
			settle(time.Second)
			if got := b.connection(); !strings.Contains(got.Detail, want) {
				t.Errorf("with key %q it says %q", key, got.Detail)
			}
		})
	}
}

func TestAHarnessThatGivesNoUsableAnswerIsAskedLessAndLess(t *testing.T) {
	for name, answer := range map[string]reply{
		"server error": broken, "a proxy's page": proxyPage, "timeout": lostAnswer,
		"not an item": {status: 200, body: `{"id":7}`}, "truncated": {status: 200, body: `{"id":"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.on("claim", answer)
				b.start()
				settle(10 * time.Minute)
				if got := len(b.script.made("claim")); got < 20 || got > 100 {
					t.Errorf("%d claims in 10 minutes", got)
				}
				b.mustTell(worker.EventUnreachable, 1)
				if got := b.connection(); got.State != worker.Unreachable || got.Detail == "" {
					t.Errorf("connection %q", got.State)
				}

				b.script.on("claim", reply{status: 204})
				settle(time.Minute)
				b.mustTell(worker.EventReachable, 1)
				if probes := len(b.script.made("probe")); probes < 2 {
					t.Error("the accept route was not looked for after the reconnect")
				}
			})
		})
	}
}

func TestWhenAnyRequestIsAnsweredAgainAClaimFollowsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start(func(c *worker.Config) { c.DecisionTimeout = 12 * time.Hour })
		settle(time.Second)
		for outage := range 10 {
			b.script.on("claim", broken)
			b.script.on("heartbeat", broken)
			settle(5 * time.Minute)
			if got := b.connection(); got.State != worker.Unreachable {
				t.Fatalf("connection %q in outage %d", got.State, outage)
			}
			b.script.on("claim", reply{status: 204})
			b.script.on("heartbeat", ok)
			before := len(b.script.made("heartbeat"))
			for len(b.script.made("heartbeat")) == before {
				settle(time.Millisecond)
			}
			settle(0)
			if got := b.connection(); got.State != worker.Connected {
				t.Errorf("connection %q after a heartbeat was answered, after outage %d", got.State, outage)
			}
		}
	})
}

func TestAShortOutageIsNotWorthANotification(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.on("claim", broken, broken, reply{status: 204})
		b.start()
		settle(time.Minute)
		b.mustTell(worker.EventUnreachable, 0)
		b.mustTell(worker.EventReachable, 0)
	})
}

func TestOnceSeesOneItemThroughAndEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "first"), item("i2", "s", "second"))
		b.start(approveAll, func(c *worker.Config) { c.Once = true })
		if err := <-b.ended; err != nil {
			t.Fatal(err)
		}
		b.ended <- nil
		b.wantStarts("first")
		b.wantCalls("complete", 1)
	})
}

func TestAnItemDeclinedHereAndHandedOutAgainIsDeclinedAgainUnasked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		again := item("i1", "s", "true")
		b.script.offer(again)
		b.start()
		settle(time.Second)
		v := b.waiting()
		if err := b.engine.Decline(v.ID, v.Digest, "no", "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.script.offer(again)
		settle(2 * time.Second)
		b.wantCalls("complete", 2)
		b.mustTell(worker.EventWaiting, 1)
		b.wantStarts()
	})
}

func TestAnItemFinishedHereAndHandedOutAgainIsReportedAgainNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		again := item("i1", "s", "true")
		b.script.offer(again)
		b.start(approveAll)
		settle(time.Second)
		b.script.offer(again)
		settle(2 * time.Second)
		b.wantStarts("true")
		done := b.script.made("complete")
		if len(done) != 2 || string(done[0].done.Result) != string(done[1].done.Result) {
			t.Fatalf("%d reports", len(done))
		}
		if got := b.last(); !got.Returned || got.Status() != worker.WordReported {
			t.Errorf("the second hold ended as %q, returned %v", got.Status(), got.Returned)
		}
	})
}

func TestAReleasedItemHandedOutAgainIsShownAsReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		again := item("i1", "s", "true")
		b.script.offer(again)
		b.start()
		settle(time.Second)
		first := b.waiting()
		if err := b.engine.Release(first.ID); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.wantCalls("complete", 0)
		if got := b.last(); got.Status() != worker.WordReleased {
			t.Errorf("ended as %q", got.Status())
		}
		b.script.offer(again)
		settle(2 * time.Second)
		v := b.waiting()
		if v.Word != worker.WordReturned || v.ID == first.ID {
			t.Errorf("shown as %q, #%d", v.Word, v.ID)
		}
		b.approve(v)
		settle(time.Second)
		b.wantStarts("true")
	})
}

func TestAnIDHandedOutWithOtherWorkIsDeclined(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "ls"))
		b.start(approveAll)
		settle(time.Second)
		b.script.offer(item("i1", "s", "rm -rf /"))
		settle(2 * time.Second)
		b.wantStarts("ls")
		b.wantCalls("accept", 1)
		if got := b.last(); got.Decision != worker.Declined || got.DecidedBy != "countersign" {
			t.Errorf("ended as %q by %q", got.Decision, got.DecidedBy)
		}
	})
}

func TestARunningItemFreesRoomToClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s1", "one"), item("i2", "s2", "two"))
		b.start(approveAll, func(c *worker.Config) { c.MaxHeld = 1; c.MaxRunning = 2 })
		settle(10 * time.Minute)
		b.wantStarts("one", "two")
	})
}

func TestAnItemOfferedWithoutEndIsNotClaimedInASpin(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		data, _ := json.Marshal(item("i1", "s", "true"))
		b.script.on("claim", reply{status: 200, body: string(data), wait: time.Millisecond})
		b.start()
		settle(10 * time.Second)
		if n := len(b.script.made("claim")); n > 100 {
			t.Errorf("%d claims in 10 s", n)
		}
	})
}

func TestPausedDuringTheProbeClaimsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.on("probe", reply{status: 400, body: badRequest.body, wait: 5 * time.Second})
		b.start()
		settle(time.Second)
		b.engine.Pause(time.Time{})
		settle(time.Minute)
		b.wantCalls("claim", 0)
	})
}

func TestAWorkDirectoryThatComesBackIsNotAHarnessThatAnswersAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.unusable = context.DeadlineExceeded
		b.start()
		settle(time.Minute)
		b.tools.mu.Lock()
		b.tools.unusable = nil
		b.tools.mu.Unlock()
		settle(time.Minute)
		b.mustTell(worker.EventReachable, 0)
	})
}

func TestAClaimRefusedWith400IsSaidToBeRefusedNotUnanswered(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.on("claim", badRequest)
		b.start()
		settle(10 * time.Minute)
		b.mustTell(worker.EventUnreachable, 0)
		b.mustTell(worker.EventClaimsRefused, 1)
		if got := b.connection(); got.State != worker.ClaimsRefused || !strings.Contains(got.Detail, "400") {
			t.Errorf("connection %q: %s", got.State, got.Detail)
		}
		if n := len(b.script.made("claim")); n < 20 || n > 100 {
			t.Errorf("%d claims in 10 minutes", n)
		}
	})
}

func TestTheFirstWorkAgainIsNotSaidNotToHaveRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		a := item("i1", "s", "true")
		b.script.offer(a)
		b.start(approveAll)
		settle(2 * time.Second)
		b.script.offer(item("i1", "s", "other"))
		settle(2 * time.Second)
		b.script.offer(a)
		settle(2 * time.Second)
		done := b.script.made("complete")
		if got := string(done[len(done)-1].done.Result); strings.Contains(got, "Nothing was run") {
			t.Errorf("reported %.200s", got)
		}
	})
}

func TestAnotherEngineOfTheOriginDoesNotInterruptWhatRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		it := item("i1", "s", "true")
		it.Status = "claimed"
		b.script.offer(it)
		b.start(approveAll)
		settle(2 * time.Second)
		b.wantStarts("true")
		other := &bench{t: t, script: &script{}, store: b.store, journal: b.store, tools: b.tools, clock: b.clock}
		other.script.offer(it)
		other.start(approveAll, func(c *worker.Config) { c.Environment = "env_5b"; c.WorkerID = "w2" })
		settle(2 * time.Second)
		for _, c := range other.script.made("complete") {
			t.Errorf("reported while it runs: %.200s", c.done.Result)
		}
		close(b.tools.letGo)
		settle(2 * time.Second)
		b.mustTell(worker.EventFinished, 1)
		h, _, _ := b.store.Last(context.Background(), "http://127.0.0.1:1", "i1")
		if h.Execution != worker.Finished {
			t.Errorf("history: %s", h.Execution)
		}
		other.stop(context.Canceled)
	})
}

func TestAnItemHandedOutAgainWhileItIsWrittenDownIsOneHold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = slowOpen{b.store, 90 * time.Second}
		it := item("i1", "s", "true")
		b.script.offer(it)
		b.script.on("heartbeat", broken)
		b.start()
		settle(80 * time.Second)
		b.script.offer(it)
		settle(30 * time.Second)
		for _, ev := range b.events {
			t.Log(ev.Kind, ev.Hold, ev.Text)
			if ev.Hold == 0 {
				t.Error("an event of #0")
			}
		}
	})
}

func TestAnItemWithoutANumberYetCannotBeReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = slowOpen{b.store, 10 * time.Second}
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(2 * time.Second)
		if err := b.engine.Release(0); err != worker.ErrNoHold {
			t.Errorf("released an item without a number: %v", err)
		}
	})
}

func TestSnapshotsSayWhatCommandsDoNotGetFromTheFirstClaimOn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		captured := make(chan struct{})
		b.start(func(c *worker.Config) {
			c.Confinement = "none"
			c.RemovedEnv = func() []string { <-captured; return []string{"DISPLAY"} }
		})
		settle(time.Minute)
		if c := b.engine.Snapshot().Connections[0]; c.RemovedEnv != nil || c.Confinement != "none" {
			t.Errorf("before the environment is known: %+v", c)
		}
		b.wantCalls("claim", 0)
		close(captured)
		settle(time.Second)
		if c := b.engine.Snapshot().Connections[0]; !slices.Equal(c.RemovedEnv, []string{"DISPLAY"}) {
			t.Errorf("once it is: %+v", c)
		}
		if len(b.script.made("claim")) == 0 {
			t.Error("nothing is claimed")
		}
	})
}
