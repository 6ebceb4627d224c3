package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/worker"
)

func TestTheLeaseIsRenewedEveryThirdWhileAnItemWaitsAndWhileItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "sleep"))
		b.start()
		settle(2*time.Minute + time.Second)
		b.wantCalls("heartbeat", 6)
		b.approve(b.waiting())
		settle(2 * time.Minute)
		if got := len(b.script.made("heartbeat")); got < 11 || got > 13 {
			t.Errorf("%d heartbeats in 4 minutes of waiting and running", got)
		}
		close(b.tools.letGo)
		settle(time.Minute)
		before := len(b.script.made("heartbeat"))
		settle(5 * time.Minute)
		b.wantCalls("heartbeat", before)
	})
}

func TestAStoppedSessionStopsTheRunningCommandAndReportsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "sleep"))
		b.start(approveAll)
		settle(time.Second)
		b.script.on("heartbeat", leaseLost)
		settle(20 * time.Second)
		if _, ran := b.told(worker.EventSessionStopped); !ran {
			t.Error("not told that the running command was stopped")
		}
		b.mustTell(worker.EventSessionStopped, 1)
		b.wantCalls("complete", 1)
		if got := b.last(); got.Execution != worker.Stopped || got.Outcome.Exit == 0 {
			t.Errorf("ended as %q, exit %d", got.Execution, got.Outcome.Exit)
		}
	})
}

func TestAStoppedSessionWithdrawsWhatWaitsAndReportsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.script.on("heartbeat", leaseLost)
		settle(20 * time.Second)
		if n, ran := b.told(worker.EventSessionStopped); n != 1 || ran {
			t.Errorf("told %d times, ran %v", n, ran)
		}
		b.wantStarts()
		b.wantCalls("complete", 0)
		if got := b.last(); got.Decision != worker.Withdrawn || !got.Closed {
			t.Errorf("ended as %q", got.Decision)
		}
	})
}

func TestALeaseHeldByAnotherIsASuspicionWhileTheCommandRuns(t *testing.T) {
	for name, answer := range map[string]reply{"409 without a code": notOurs, "404": notFound} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.tools.hold = true
				b.script.offer(item("i1", "s", "sleep"))
				b.start(approveAll)
				settle(time.Second)
				b.script.on("heartbeat", answer)
				settle(3 * time.Minute)
				if n, ran := b.told(worker.EventLeaseLost); n != 1 || !ran {
					t.Errorf("told %d times, ran %v", n, ran)
				}
				if s := b.engine.Snapshot(); len(s.Running) != 1 || s.Running[0].Word != worker.WordAtRisk {
					t.Errorf("the command no longer runs: %s", describe(s))
				}
				close(b.tools.letGo)
				settle(time.Second)
				b.wantCalls("complete", 1)
				if got := b.last(); got.Execution != worker.Finished {
					t.Errorf("ended as %q", got.Execution)
				}
			})
		})
	}
}

func TestALeaseHeldByAnotherWithdrawsWhatWaits(t *testing.T) {
	for name, answer := range map[string]reply{"409 without a code": notOurs, "404": notFound} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.start()
				settle(time.Second)
				b.script.on("heartbeat", answer)
				settle(20 * time.Second)
				if n, ran := b.told(worker.EventLeaseLost); n != 1 || ran {
					t.Errorf("told %d times, ran %v", n, ran)
				}
				b.wantCalls("complete", 0)
				if got := b.last(); got.Decision != worker.Withdrawn {
					t.Errorf("ended as %q", got.Decision)
				}
			})
		})
	}
}

func TestAnUnansweredHeartbeatKeepsTheItemAndTellsTheRiskBeforeTheLoss(t *testing.T) {
	for name, answer := range map[string]reply{
		"timeout": lostAnswer, "server error": broken, "a proxy's page": proxyPage, "forbidden": forbidden,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.start()
				settle(time.Second)
				b.script.on("heartbeat", answer)
				settle(40 * time.Second)
				b.mustTell(worker.EventLeaseAtRisk, 1)
				b.mustTell(worker.EventLeaseLost, 0)
				if v := b.waiting(); v.Word != worker.WordAtRisk || !v.AtRisk {
					t.Errorf("shown as %q", v.Word)
				}
				settle(30 * time.Second)
				b.mustTell(worker.EventLeaseLost, 1)

				b.script.on("heartbeat", ok)
				settle(20 * time.Second)
				if v := b.waiting(); v.Word != worker.WordWaiting || v.Lease <= 0 {
					t.Errorf("after the answer came back: %q, %v left", v.Word, v.Lease)
				}
				b.approve(b.waiting())
				settle(time.Second)
				b.wantStarts("true")
			})
		})
	}
}

func TestTheLeaseCountsFromWhenTheClaimWasSent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.on("claim", reply{status: 200, wait: 8 * time.Second,
			body: `{"id":"i1","sessionId":"s","kind":"exec","payload":{"command":"true"},"status":"queued"}`},
			reply{status: 204})
		b.start()
		settle(8 * time.Second)
		if left := b.waiting().Lease; left != 52*time.Second {
			t.Errorf("%v left, want 52s", left)
		}
	})
}

func TestAfterASuspendWhatIsHeldIsRenewedBeforeTheNextClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.clock.suspend(time.Hour)
		claims := len(b.script.made("claim"))
		settle(time.Second)
		var next string
		all := 0
		b.script.mu.Lock()
		for _, c := range b.script.calls {
			if c.route == "claim" {
				all++
			}
			if all == claims && c.route == "heartbeat" {
				next = "heartbeat"
			}
		}
		b.script.mu.Unlock()
		if next != "heartbeat" {
			t.Error("a claim was sent before the lapsed lease was renewed")
		}
		if v := b.waiting(); v.Lease <= 0 {
			t.Errorf("the lease was not renewed: %v left", v.Lease)
		}
	})
}

func TestADecisionHasAMinuteLeftAfterASuspend(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.clock.suspend(time.Hour)
		settle(45 * time.Second)
		if left := b.waiting().DecisionLeft; left <= 0 || left > time.Minute {
			t.Errorf("%v left to decide, want up to a minute", left)
		}
		b.mustTell(worker.EventExpired, 0)
		settle(30 * time.Second)
		b.mustTell(worker.EventExpired, 1)
	})
}

func TestTheHarnessHandingAHeldItemOutAgainStartsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		again := item("i1", "s", "sleep")
		b.script.offer(again)
		b.start(approveAll)
		settle(time.Second)
		b.script.offer(again)
		settle(5 * time.Second)
		b.wantStarts("sleep")
		b.wantCalls("accept", 2) // a reclaim cleared the first
		close(b.tools.letGo)
		settle(time.Second)
		b.wantCalls("complete", 1)
	})
}

func TestOtherWorkUnderTheIDOfAWaitingItemIsDeclined(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "ls"), item("i1", "s", "rm -rf /"))
		b.start()
		settle(5 * time.Second)
		if s := b.engine.Snapshot(); len(s.Waiting) != 0 {
			t.Errorf("still waiting: %s", describe(s))
		}
		b.wantStarts()
		b.wantCalls("complete", 1)
		b.mustTell(worker.EventLeaseLost, 0)
		if got := b.last(); got.Decision != worker.Declined || !strings.Contains(got.Words, "other work") {
			t.Errorf("ended as %q: %s", got.Decision, got.Words)
		}
	})
}

func TestQuittingLeavesWhatWaitsInTheJournal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.stop(context.Canceled)
		b.wantCalls("complete", 0)
		left, err := b.store.Unfinished(t.Context(), "http://127.0.0.1:1", "")
		if err != nil || len(left) != 1 {
			t.Fatalf("%d left open, err %v", len(left), err)
		}
	})
}

func TestQuittingStopsWhatRunsAndReportsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "sleep"))
		b.start(approveAll)
		settle(time.Second)
		b.stop(context.Canceled)
		b.wantCalls("complete", 1)
		if got := b.last(); got.Execution != worker.Stopped || got.Delivery != worker.Delivered {
			t.Errorf("ended as %q, %q", got.Execution, got.Delivery)
		}
	})
}

func TestQuittingWhenDoneLetsRunningWorkEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "sleep"), item("i2", "s", "next"))
		b.start(approveAll)
		settle(time.Second)
		b.quit(worker.ErrQuitWhenDone)
		settle(5 * time.Minute)
		if s := b.engine.Snapshot(); len(s.Running) != 1 {
			t.Fatalf("the command was stopped: %s", describe(s))
		}
		close(b.tools.letGo)
		b.stop(worker.ErrQuitWhenDone)
		b.wantStarts("sleep")
		b.wantCalls("complete", 1)
	})
}

func TestHeartbeatsOfALostRunningItemAreNotHammered(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s", "true"))
		b.script.on("heartbeat", notOurs)
		b.start(approveAll)
		settle(time.Hour)
		if n := len(b.script.made("heartbeat")); n > 800 {
			t.Errorf("%d heartbeats in an hour", n)
		}
		b.script.on("heartbeat", lostAnswer)
		c := len(b.script.made("claim"))
		settle(10 * time.Minute)
		if got := len(b.script.made("claim")) - c; got < 500 {
			t.Errorf("%d claims in 10 minutes while heartbeats hang", got)
		}
	})
}

func TestAHeartbeatFollowsASuspendSoonThoughNothingIsClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.engine.Pause(time.Time{})
		settle(time.Second)
		b.clock.suspend(50 * time.Second)
		settle(6 * time.Second)
		if n := len(b.script.made("heartbeat")); n == 0 {
			t.Errorf("no heartbeat 6 s after a suspend of 50 s; lease left %s", b.waiting().Lease)
		}
	})
}

func TestClaimsGoOnWhileResultsHang(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for i := range 6 {
			b.script.offer(item(string(rune('a'+i)), string(rune('a'+i)), "true"))
		}
		b.script.on("complete", lostAnswer)
		b.script.on("heartbeat", notOurs)
		b.start(approveAll)
		settle(5 * time.Minute)
		n := len(b.script.made("claim"))
		settle(10 * time.Minute)
		if got := len(b.script.made("claim")) - n; got < 500 {
			t.Errorf("%d claims in 10 minutes", got)
		}
	})
}

func TestLeaseIsKeptWhileTheJournalIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = slowOpen{b.store, 55 * time.Second}
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(50 * time.Second)
		if n := len(b.script.made("heartbeat")); n < 2 {
			t.Errorf("%d heartbeats in 50 s of a slow disk", n)
		}
	})
}

func TestHeartbeatsGoOnWhileAnItemIsBeingWrittenDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = slowOpen{b.store, 65 * time.Second}
		b.script.offer(item("i1", "s", "true"))
		b.script.on("heartbeat", reply{status: 200, body: ok.body, wait: 9 * time.Second})
		b.start()
		settle(80 * time.Second)
	})
}
