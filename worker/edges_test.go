package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

func TestARunningItemFreesRoomToClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		b.script.offer(item("i1", "s1", "one"), item("i2", "s2", "two"))
		b.start(approveAll, func(c *worker.Config) { c.MaxHeld = 1; c.MaxRunning = 2 })
		settle(10 * time.Minute)
		b.wantStarts("one", "two")
	})
}

type gateJournal struct {
	worker.Journal
	step worker.Step
	at   chan struct{}
	gate chan struct{}
}

func (j gateJournal) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	for _, s := range steps {
		if s.Step == j.step {
			close(j.at)
			<-j.gate
		}
	}
	return j.Journal.Move(ctx, id, steps...)
}

func TestQuitWhileTheStartIsWrittenDownStartsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.hold = true
		g := gateJournal{b.store, worker.StepStarting, make(chan struct{}), make(chan struct{})}
		b.journal = g
		b.script.offer(item("i1", "s1", "one"))
		b.start(approveAll)
		<-g.at
		b.quit(context.Canceled)
		settle(time.Second)
		close(g.gate)
		settle(3 * time.Minute)
		b.wantStarts()
		select {
		case err := <-b.ended:
			b.ended <- err
		default:
			t.Error("Run has not returned 3 min after the quit")
			close(b.tools.letGo)
		}
	})
}

func TestPausedWhileAnAcceptIsAskedAgainStartsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s1", "one"))
		b.script.on("accept", broken, broken, broken, ok)
		b.start(approveAll)
		settle(500 * time.Millisecond)
		b.engine.Pause(time.Time{})
		n := len(b.script.made("accept"))
		settle(time.Minute)
		if m := len(b.script.made("accept")); m != n {
			t.Errorf("%d accepts were sent while paused", m-n)
		}
		b.wantStarts()
	})
}

func TestNoAcceptIsSentAfterAQuit(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s1", "one"))
		b.script.on("accept", broken, broken, broken, ok)
		b.start(approveAll)
		settle(2 * time.Second)
		n := len(b.script.made("accept"))
		b.stop(context.Canceled)
		if m := len(b.script.made("accept")); m != n {
			t.Errorf("%d accepts were sent after the quit", m-n)
		}
	})
}

func TestAnInterruptionThatCannotBeWrittenIsNotReportedAsNothingRan(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("claimed", decided, asking, accepted, starting)
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return s == worker.StepRecovered }}
		b.start()
		settle(5 * time.Second)
		for _, c := range b.script.made("complete") {
			t.Logf("reported %s", c.done.Result)
			if strings.Contains(string(c.done.Result), "Nothing was run") {
				t.Error("what may have run was reported as not run")
			}
		}
	})
}

func TestADeclinedChangedItemIsStillDeclinedAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(5 * time.Second)
		b.script.on("complete", broken)
		b.script.offer(item("i1", "s", "rm -rf /"))
		settle(5 * time.Second)
		b.stop(context.Canceled)
		b.script.on("complete", ok)
		b.start(approveAll)
		settle(5 * time.Second)
		done := b.script.made("complete")
		last := done[len(done)-1].done
		if !strings.Contains(string(last.Result), "126") {
			t.Errorf("the other work's outcome was reported: %.120s", last.Result)
		}
	})
}

func TestARecoveredItemShownWithAnotherWorkDirectoryIsLetGoAndShownAfresh(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("queued")
		b.start(func(c *worker.Config) { c.Runner = elsewhere{b.tools} })
		settle(time.Second)
		if s := b.engine.Snapshot(); len(s.Waiting) != 0 {
			t.Fatalf("shown: %s", describe(s))
		}
		if got := b.last(); got.Status() != worker.WordReleased || !got.Closed {
			t.Errorf("ended as %q", got.Status())
		}
		b.script.offer(item("i1", "s", "true"))
		settle(2 * time.Second)
		if v := b.waiting(); v.WorkDir != "/elsewhere" || v.Word != worker.WordReturned {
			t.Errorf("shown with %s, %q", v.WorkDir, v.Word)
		}
	})
}

type elsewhere struct{ *tools }

func (elsewhere) Dir() string { return "/elsewhere" }

func TestAResultThatDoesNotArriveIsRetriedWithBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("complete", broken)
		b.script.on("heartbeat", notOurs)
		b.start(approveAll)
		settle(time.Hour)
		if n := len(b.script.made("complete")); n > 200 {
			t.Errorf("%d completions in an hour", n)
		}
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

func TestARecoveredItemKeepsItsAge(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.start()
		settle(time.Second)
		b.stop(context.Canceled)
		settle(10 * time.Minute)
		b.start()
		settle(time.Second)
		v := b.waiting()
		if v.DecisionLeft > time.Minute || v.Age < 10*time.Minute {
			t.Errorf("10 min after its creation: decision left %s, age %s", v.DecisionLeft, v.Age)
		}
	})
}

func brkStale(t *testing.T, accepts, beats []reply, starts int, word string) {
	inBubble(t, func(t *testing.T, b *bench) {
		slept := false
		b.journal = brokenJournal{b.store, func(s worker.Step) bool {
			if s == worker.StepStarting && !slept {
				slept = true
				b.clock.suspend(90 * time.Second)
			}
			return false
		}}
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", accepts...)
		if beats != nil {
			b.script.on("heartbeat", beats...)
		}
		b.start(approveAll)
		settle(30 * time.Second)
		if n := len(b.tools.started()); n != starts {
			t.Errorf("%d starts, want %d; ended as %q", n, starts, b.last().Status())
		}
		if got := b.last().Status(); word != "" && got != word {
			t.Errorf("ended as %q, want %q", got, word)
		}
	})
}

func TestStaleStartLapsedAndOursAgainIsAcceptedOnceMore(t *testing.T) {
	brkStale(t, []reply{ok, leaseLost, ok}, []reply{ok}, 1, "")
}

func TestStaleStartSessionStoppedSaysSo(t *testing.T) {
	brkStale(t, []reply{ok, leaseLost}, []reply{leaseLost}, 0, worker.WordSessionStopped)
}

func TestStaleStartUnanswered(t *testing.T) {
	brkStale(t, []reply{ok, broken, ok}, []reply{ok}, 1, "")
}
func TestStaleStartNotOurs(t *testing.T) {
	brkStale(t, []reply{ok, notOurs}, []reply{ok}, 0, worker.WordNotOurs)
}

type denyRule struct{}

func (denyRule) Judge(execute.Task) policy.Judgement {
	return policy.Judgement{Verdict: policy.Deny, By: `rule "no network"`, Reason: "commands that use the network are denied"}
}

func TestARuleThatDeclinedIsNotCalledTheOperator(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "curl x"))
		b.start(func(c *worker.Config) { c.Policy = denyRule{} })
		settle(time.Second)
		if got := string(b.script.made("complete")[0].done.Result); strings.Contains(got, "by the operator") || !strings.Contains(got, "no network") {
			t.Errorf("%s", got)
		}
	})
}

func TestAnApprovedItemThatCannotAskDoesNotVanish(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		failing := true
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return failing && s == worker.StepAsking }}
		it := item("i1", "s", "true")
		b.script.offer(it)
		b.start(approveAll)
		settle(30 * time.Second)
		s := b.engine.Snapshot()
		if len(s.Waiting)+len(s.Running)+len(s.Finished) == 0 {
			t.Errorf("the item is nowhere; events %v", b.events)
		}
		b.script.offer(it)
		settle(30 * time.Second)
		b.stop(context.Canceled)
		failing = false
		b.start()
		settle(time.Second)
		if s := b.engine.Snapshot(); len(s.Waiting) > 1 {
			t.Errorf("one item is shown more than once: %s", describe(s))
		}
	})
}

func TestAnOutcomeThatCannotBeWrittenIsShownFinished(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = brokenJournal{b.store, func(s worker.Step) bool {
			return s == worker.StepFinished || s == worker.StepDelivered || s == worker.StepDelivering
		}}
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(5 * time.Second)
		b.wantCalls("complete", 1)
		b.mustTell(worker.EventFinished, 1)
		if s := b.engine.Snapshot(); len(s.Finished) != 1 {
			t.Error("the finished item is nowhere to be seen")
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

func TestHeartbeatSoonAfterASuspendWhilePaused(t *testing.T) {
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

func TestEventFinishedOfWhatCouldNotStartSaysItDidNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", reply{status: 200, body: ok.body, wait: 2 * time.Second})
		b.start(approveAll)
		settle(time.Second)
		s := b.engine.Snapshot()
		if err := b.engine.Stop(s.Running[0].ID); err != nil {
			t.Fatal(err)
		}
		settle(5 * time.Second)
		b.wantStarts()
		if n, ran := b.told(worker.EventFinished); n != 1 || ran {
			t.Errorf("told %d times, ran %v, %q", n, ran, b.last().Status())
		}
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

func TestWorkDirBackIsNotHarnessAnswersAgain(t *testing.T) {
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

func TestAReclaimWhileTheStartIsWrittenDownIsAcceptedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		g := gateJournal{b.store, worker.StepStarting, make(chan struct{}), make(chan struct{})}
		b.journal = g
		it := item("i1", "s1", "one")
		b.script.offer(it)
		b.tools.hold = true
		b.start(approveAll)
		<-g.at
		b.script.offer(it)
		settle(2 * time.Second)
		close(g.gate)
		settle(2 * time.Second)
		b.wantCalls("claim", len(b.script.made("claim")))
		if n := len(b.script.made("accept")); n < 2 {
			t.Errorf("started with %d accept, which the reclaim had cleared", n)
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

func TestNotOursBetweenAcceptAndStartIsNotReported(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		g := gateJournal{b.store, worker.StepStarting, make(chan struct{}), make(chan struct{})}
		b.journal = g
		b.script.offer(item("i1", "s1", "one"))
		b.start(approveAll)
		<-g.at
		b.script.on("heartbeat", notOurs)
		settle(25 * time.Second)
		close(g.gate)
		settle(5 * time.Second)
		b.wantStarts()
		b.wantCalls("complete", 0)
	})
}

func TestQuitDuringWhyLostKeepsTheHold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s1", "one"))
		b.script.on("accept", leaseLost)
		b.script.on("heartbeat", reply{status: 200, body: ok.body, wait: 5 * time.Second})
		b.start(approveAll)
		settle(time.Second)
		b.stop(context.Canceled)
		if got := b.last(); got.Closed {
			t.Errorf("closed as %q by a quit", got.Status())
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

func TestADeclineThatIsTakenIsNotIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("queued")
		var failing atomic.Bool
		failing.Store(true)
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return failing.Load() && s == worker.StepDecided }}
		b.start(approveAll)
		settle(time.Second)
		v := b.waiting()
		err := b.engine.Decline(v.ID, v.Digest, "no", "operator")
		failing.Store(false)
		settle(30 * time.Second)
		if err == nil {
			b.wantStarts()
		}
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

func TestStoppedWhileAskingSendsNoMoreAccepts(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", broken, broken, broken, ok)
		b.start(approveAll)
		settle(500 * time.Millisecond)
		n := len(b.script.made("accept"))
		b.engine.StopEverything()
		settle(time.Minute)
		if m := len(b.script.made("accept")); m != n {
			t.Errorf("%d accepts after the stop; %s", m-n, b.last().Status())
		}
	})
}

func TestRecoveredNotOursIsNotAnnouncedAsWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("queued")
		b.script.on("heartbeat", notOurs)
		b.start()
		settle(5 * time.Second)
		b.mustTell(worker.EventWaiting, 0)
	})
}

func TestAnInterruptedItemLeftToLapseIsNotRenewed(t *testing.T) {
	n := 0
	for range 20 {
		inBubble(t, func(t *testing.T, b *bench) {
			b.leave("queued", decided, asking, accepted, starting)
			b.start()
			settle(5 * time.Second)
			n += len(b.script.made("heartbeat"))
		})
	}
	if n > 0 {
		t.Errorf("%d heartbeats in 20 starts", n)
	}
}

func TestRecoveredIsDeliveredBeforeTheFirstClaim(t *testing.T) {
	for name, moves := range map[string][]worker.Move{"declined": {declined}, "finished": {decided, asking, accepted, starting, finished}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.leave("queued", moves...)
				b.start()
				settle(5 * time.Second)
				for _, c := range b.script.calls {
					if c.route == "complete" {
						return
					}
					if c.route == "claim" {
						t.Fatal("claimed first")
					}
				}
			})
		})
	}
}

func TestRecoveredSessionOrder(t *testing.T) {
	bad := 0
	for range 30 {
		inBubble(t, func(t *testing.T, b *bench) {
			ctx := b.t.Context()
			for i, id := range []string{"late", "early"} {
				_, err := b.store.Open(ctx, worker.Hold{
					Origin: "http://127.0.0.1:1", WorkerID: "w1", Digest: "d", WorkDir: "/work", OpenedAt: time.Now(),
					Item: worker.Item{ID: id, SessionID: "s", Kind: "exec", Payload: json.RawMessage(`{"command":"` + id + `"}`),
						ClaimStatus: "queued", CreatedAt: time.Now().Add(-time.Duration(i) * time.Minute), ClaimedAt: time.Now()},
				}, "")
				if err != nil {
					t.Fatal(err)
				}
			}
			b.start(approveAll)
			settle(5 * time.Second)
			if s := b.tools.started(); len(s) > 0 && s[0] != "early" {
				bad++
			}
		})
	}
	if bad > 0 {
		t.Errorf("%d of 30 out of order", bad)
	}
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

func TestForbiddenStartIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.journal = forbidding{brokenJournal{b.store, func(s worker.Step) bool { return false }}}
		b.start(approveAll)
		settle(5 * time.Second)
		s := b.engine.Snapshot()
		if len(s.Waiting)+len(s.Running)+len(s.Finished) == 0 {
			t.Errorf("the item is nowhere; events %v", b.events)
		}
	})
}

func TestLateStepsAreInTheView(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("complete", broken)
		b.script.on("heartbeat", notOurs)
		b.start(approveAll)
		settle(10 * time.Minute)
		b.script.on("complete", ok)
		settle(2 * time.Minute)
		s := b.engine.Snapshot()
		v := s.Finished[0]
		if last := v.Steps[len(v.Steps)-1]; last.Step != worker.StepDelivered {
			t.Errorf("%d steps, the last is %s %s; %s", len(v.Steps), last.Step, last.Reason, v.Word)
		}
	})
}

type forbidding struct{ brokenJournal }

func (j forbidding) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	for _, s := range steps {
		if s.Step == worker.StepStarting {
			return worker.ErrForbidden
		}
	}
	return j.brokenJournal.Move(ctx, id, steps...)
}

type slowOpen struct {
	worker.Journal
	d time.Duration
}

func (j slowOpen) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	time.Sleep(j.d)
	return j.Journal.Open(ctx, h, reason, then...)
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

func TestReofferedWhileOpening(t *testing.T) {
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

func TestReleaseZero(t *testing.T) {
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

func TestRaceOpening(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = slowOpen{b.store, 65 * time.Second}
		b.script.offer(item("i1", "s", "true"))
		b.script.on("heartbeat", reply{status: 200, body: ok.body, wait: 9 * time.Second})
		b.start()
		settle(80 * time.Second)
	})
}
