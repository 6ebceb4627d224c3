package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// leave puts a hold into the journal as a killed Countersign would have left it.
func (b *bench) leave(claimStatus string, moves ...worker.Move) worker.HoldID {
	b.t.Helper()
	ctx := b.t.Context()
	id, err := b.store.Open(ctx, worker.Hold{
		Origin: "http://127.0.0.1:1", WorkerID: "w-before", Digest: "d", WorkDir: "/work", OpenedAt: time.Now(),
		Item: worker.Item{ID: "i1", SessionID: "s", Kind: "exec", Payload: json.RawMessage(`{"command":"true"}`),
			ClaimStatus: claimStatus, CreatedAt: time.Now(), ClaimedAt: time.Now()},
		Facts: worker.Facts{Decision: worker.Undecided, Acceptance: worker.NotAsked,
			Execution: worker.NotStarted, Delivery: worker.NothingToDeliver},
	}, "")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range moves {
		m.At = time.Now()
		if err := b.store.Move(ctx, id, m); err != nil {
			b.t.Fatalf("%s: %v", m.Step, err)
		}
	}
	return id
}

func facts(d worker.Decision, a worker.Acceptance, x worker.Execution, v worker.Delivery) *worker.Facts {
	return &worker.Facts{Decision: d, Acceptance: a, Execution: x, Delivery: v}
}

var (
	decided  = worker.Move{Step: worker.StepDecided, Facts: facts(worker.Approved, worker.NotAsked, worker.NotStarted, worker.NothingToDeliver)}
	asking   = worker.Move{Step: worker.StepAsking, Facts: facts(worker.Approved, worker.Asking, worker.NotStarted, worker.NothingToDeliver)}
	accepted = worker.Move{Step: worker.StepAccepted, Facts: facts(worker.Approved, worker.Accepted, worker.NotStarted, worker.NothingToDeliver)}
	starting = worker.Move{Step: worker.StepStarting, Facts: facts(worker.Approved, worker.Accepted, worker.Starting, worker.NothingToDeliver)}
	finished = worker.Move{Step: worker.StepFinished, Facts: facts(worker.Approved, worker.Accepted, worker.Finished, worker.NothingToDeliver),
		Outcome: &execute.Outcome{How: execute.Ended, Result: json.RawMessage(`{"exitCode":0}`)}}
	delivering = worker.Move{Step: worker.StepDelivering, Facts: facts(worker.Approved, worker.Accepted, worker.Finished, worker.Delivering)}
	declined   = worker.Move{Step: worker.StepDecided, Facts: &worker.Facts{Decision: worker.Declined, DecidedBy: "operator", Words: "no",
		Acceptance: worker.NotAsked, Execution: worker.NotStarted, Delivery: worker.NothingToDeliver}}
)

func TestWhatHadNotStartedIsShownAgainUndecided(t *testing.T) {
	for name, moves := range map[string][]worker.Move{
		"undecided": nil,
		"approved":  {decided},
		"asking":    {decided, asking},
		"accepted":  {decided, asking, accepted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.leave("queued", moves...)
				b.start()
				settle(time.Second)
				b.wantStarts()
				b.wantCalls("heartbeat", 1)
				v := b.waiting()
				if v.Word != worker.WordWaiting {
					t.Errorf("shown as %q", v.Word)
				}
				b.approve(v)
				settle(time.Second)
				b.wantStarts("true")
				if done := b.script.made("complete"); len(done) != 1 || done[0].done.WorkerID != "w-before" {
					t.Errorf("reported %+v", done)
				}
			})
		})
	}
}

func TestWhatHadNotStartedAndIsNotOursAnyMoreIsWithdrawn(t *testing.T) {
	for name, answer := range map[string]reply{"stopped": leaseLost, "taken": notOurs, "unknown": notFound} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.on("heartbeat", answer)
				b.leave("queued", decided, asking, accepted)
				b.start()
				settle(time.Second)
				b.wantStarts()
				b.wantCalls("complete", 0)
				if got := b.last(); got.Decision != worker.Withdrawn || !got.Closed {
					t.Errorf("ended as %q", got.Decision)
				}
			})
		})
	}
}

func TestWhatHadFinishedIsDeliveredAndAConflictMeansUnconfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		answer reply
		want   worker.Delivery
	}{
		"recorded": {ok, worker.Delivered},
		"conflict": {notOurs, worker.DeliveryUnconfirmed},
	} {
		for state, moves := range map[string][]worker.Move{
			"finished":   {decided, asking, accepted, starting, finished},
			"delivering": {decided, asking, accepted, starting, finished, delivering},
		} {
			t.Run(name+" "+state, func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bench) {
					b.script.on("complete", test.answer)
					b.leave("queued", moves...)
					b.start()
					settle(time.Second)
					b.wantStarts()
					done := b.script.made("complete")
					if len(done) != 1 || string(done[0].done.Result) != `{"exitCode":0}` {
						t.Errorf("reported %+v", done)
					}
					if got := b.last(); got.Delivery != test.want || !got.Closed {
						t.Errorf("ended as %q", got.Delivery)
					}
				})
			})
		}
	}
}

func TestADeclineIsDeliveredAfterARestartNotAskedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("queued", declined)
		b.start()
		settle(time.Second)
		b.mustTell(worker.EventWaiting, 0)
		b.wantCalls("complete", 1)
		if got := b.last(); got.Status() != worker.WordDeclined || !got.Closed {
			t.Errorf("ended as %q", got.Status())
		}
	})
}

func TestWhatHadStartedWithoutAnOutcomeIsInterruptedAndNeverRunAgain(t *testing.T) {
	for claimStatus, reports := range map[string]int{"queued": 0, "claimed": 1} {
		t.Run("claim answered "+claimStatus, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.leave(claimStatus, decided, asking, accepted, starting)
				b.start(approveAll)
				settle(5 * time.Second)
				b.wantStarts()
				b.wantCalls("complete", reports)
				b.mustTell(worker.EventInterrupted, 1)
				if steps := b.engine.Snapshot().Finished[0].Steps; len(steps) < 6 || steps[4].Step != worker.StepStarting {
					t.Errorf("the steps from before the restart are not shown: %v", steps)
				}
				got := b.last()
				if got.Status() != worker.WordInterrupted || got.Execution != worker.Interrupted || !got.Closed {
					t.Errorf("ended as %q", got.Status())
				}

				again := item("i1", "s", "true")
				b.script.offer(again)
				settle(5 * time.Second)
				b.wantStarts()
				b.wantCalls("complete", reports+1)
			})
		})
	}
}

func TestAHarnessThatIsDownAtTheStartLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		for _, route := range []string{"probe", "claim", "heartbeat", "complete", "accept"} {
			b.script.on(route, broken)
		}
		b.leave("queued", decided, asking, accepted, starting, finished)
		b.start()
		settle(10 * time.Minute)
		b.script.on("complete", ok)
		settle(2 * time.Minute)
		if got := b.last(); got.Delivery != worker.Delivered {
			t.Errorf("ended as %q", got.Delivery)
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
		// What came first under the id was run.
		if got := string(last.Result); strings.Contains(got, "Nothing was run") || !strings.Contains(got, "Nothing of this was run") {
			t.Errorf("reported %.200s", got)
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

func TestADeclineThatIsTakenIsNotIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.leave("queued")
		var failing atomic.Bool
		failing.Store(true)
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return failing.Load() && s == worker.StepDecided }}
		rules := book(policy.ModeRules, "")
		b.start(func(c *worker.Config) { c.Policy = rules })
		settle(time.Second)
		v := b.waiting()
		err := b.engine.Decline(v.ID, v.Digest, "no", "operator")
		rules.Use(book(policy.ModeRules, allowTrue).Rules())
		b.engine.Rejudge()
		failing.Store(false)
		settle(30 * time.Second)
		if err == nil {
			b.wantStarts()
		}
	})
}

func TestARecoveredItemThatIsNotOursIsNotAnnouncedAsWaiting(t *testing.T) {
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

func TestWhatIsOwedIsDeliveredBeforeTheFirstClaim(t *testing.T) {
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

func TestRecoveredItemsKeepTheirSessionsOrder(t *testing.T) {
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

func TestAnItemThatMayHaveBeenAcceptedBeforeARestartCannotBeReleased(t *testing.T) {
	for name, moves := range map[string][]worker.Move{"asking": {decided, asking}, "accepted": {decided, asking, accepted}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				id := b.leave("queued", moves...)
				b.start()
				settle(time.Second)
				if err := b.engine.Release(id); !errors.Is(err, worker.ErrAccepted) {
					t.Errorf("released: %v", err)
				}
				b.wantStarts()
			})
		})
	}
}
