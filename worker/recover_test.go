package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
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
