package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

func TestHowADeliveryEnds(t *testing.T) {
	for name, test := range map[string]struct {
		answers  []reply
		delivery worker.Delivery
		tries    int
		told     int
	}{
		"recorded":                       {[]reply{ok}, worker.Delivered, 1, 0},
		"recorded after failures":        {[]reply{broken, broken, proxyPage, ok}, worker.Delivered, 4, 0},
		"recorded after forbidden":       {[]reply{forbidden, {status: 429, body: "{}"}, ok}, worker.Delivered, 3, 0},
		"409 on the first try":           {[]reply{notOurs}, worker.DeliveryRefused, 1, 1},
		"409 after forbidden":            {[]reply{forbidden, notOurs}, worker.DeliveryRefused, 2, 1},
		"409 after an unanswered try":    {[]reply{lostAnswer, notOurs}, worker.DeliveryUnconfirmed, 2, 1},
		"409 after a server error":       {[]reply{broken, leaseLost}, worker.DeliveryUnconfirmed, 2, 1},
		"400":                            {[]reply{badRequest}, worker.Undelivered, 1, 1},
		"404":                            {[]reply{notFound}, worker.Undelivered, 1, 1},
		"422":                            {[]reply{unfit422}, worker.Undelivered, 1, 1},
		"too large, then shorter":        {[]reply{tooLarge, ok}, worker.Delivered, 2, 0},
		"too large, and shorter as well": {[]reply{tooLarge, tooLarge}, worker.Undelivered, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.script.on("complete", test.answers...)
				b.start(approveAll)
				settle(2 * time.Minute)
				b.wantStarts("true")
				b.wantCalls("complete", test.tries)
				b.mustTell(worker.EventUndelivered, test.told)
				if got := b.last(); got.Delivery != test.delivery || !got.Closed {
					t.Errorf("ended as %q (closed %v), want %q", got.Delivery, got.Closed, test.delivery)
				}
				for _, c := range b.script.made("complete") {
					if c.done.Failed || c.done.WorkerID != "w1" || len(c.done.Result) == 0 {
						t.Errorf("reported %+v", c.done)
					}
				}
			})
		})
	}
}

func TestAReportThatIsTooLargeIsShorterTheSecondTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("complete", tooLarge, ok)
		b.start(approveAll)
		settle(time.Second)
		calls := b.script.made("complete")
		if len(calls) != 2 || len(calls[1].done.Result) >= len(calls[0].done.Result) {
			t.Fatalf("%d tries", len(calls))
		}
		if !strings.Contains(string(calls[1].done.Result), "cut") {
			t.Errorf("the shorter report does not say that it was cut")
		}
	})
}

func TestADeliveryIsRetriedForADayWithItsLeaseRenewedAndNoRunningSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "a", "first"))
		b.script.on("complete", broken)
		b.start(approveAll, func(c *worker.Config) { c.MaxRunning = 1 })
		settle(10 * time.Minute)
		if got := len(b.script.made("heartbeat")); got < 29 {
			t.Errorf("%d heartbeats in 10 minutes of delivering", got)
		}
		b.script.offer(item("i2", "b", "second"))
		settle(time.Minute)
		b.wantStarts("first", "second")
		b.clock.suspend(23 * time.Hour)
		settle(5 * time.Minute)
		if got := b.last(); got.Closed {
			t.Errorf("given up before a day: %q", got.Delivery)
		}
		b.clock.suspend(2 * time.Hour)
		settle(5 * time.Minute)
		if got := b.last(); got.Delivery != worker.Undelivered || !got.Closed {
			t.Errorf("after a day: %q, closed %v", got.Delivery, got.Closed)
		}
	})
}

func TestHeartbeatAnswersDoNotEndADelivery(t *testing.T) {
	for name, answer := range map[string]reply{"stopped": leaseLost, "another's": notOurs, "unknown": notFound} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.script.on("complete", broken)
				b.script.on("heartbeat", answer)
				b.start(approveAll)
				settle(2 * time.Minute)
				b.script.on("complete", ok)
				settle(2 * time.Minute)
				if got := b.last(); got.Delivery != worker.Delivered {
					t.Errorf("ended as %q", got.Delivery)
				}
				b.mustTell(worker.EventLeaseLost, 0)
				b.mustTell(worker.EventSessionStopped, 0)
			})
		})
	}
}

func TestADeclineIsReportedInWordsWithoutAnAccept(t *testing.T) {
	for kind, want := range map[string]struct {
		payload string
		failed  bool
	}{
		wire.KindExec:  {`{"command":"rm -rf build"}`, false},
		wire.KindRead:  {`{"path":"a"}`, true},
		wire.KindWrite: {`{"path":"a","content":"b"}`, true},
		wire.KindList:  {`{}`, true},
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				it := item("i1", "s", "")
				it.Kind, it.Payload = kind, []byte(want.payload)
				b.script.offer(it)
				b.start()
				settle(time.Second)
				v := b.waiting()
				if err := b.engine.Decline(v.ID, v.Digest, "use make clean", "operator"); err != nil {
					t.Fatal(err)
				}
				settle(time.Second)
				b.wantStarts()
				b.wantCalls("accept", 0)
				done := b.script.made("complete")
				if len(done) != 1 || done[0].done.Failed != want.failed {
					t.Fatalf("reported %+v", done)
				}
				result := string(done[0].done.Result)
				for _, words := range []string{"operator", "Nothing was run", "use make clean"} {
					if !strings.Contains(result, words) {
						t.Errorf("%s does not say %q", result, words)
					}
				}
				if kind == wire.KindExec && !strings.Contains(result, `"exitCode":126`) {
					t.Errorf("an exec was declined with %s", result)
				}
				if got := b.last(); got.Status() != worker.WordDeclined || got.DecidedBy != "operator" {
					t.Errorf("ended as %q by %q", got.Status(), got.DecidedBy)
				}
			})
		})
	}
}

func TestWorkThatCannotBeDoneIsDeclinedInWordsUnasked(t *testing.T) {
	for name, it := range map[string]wire.Item{
		"unknown kind":    {ID: "i1", Kind: "telepathy", Payload: []byte(`{}`)},
		"custom tool":     {ID: "i1", Kind: wire.KindCustomTool, Payload: []byte(`{"tool_name":"x"}`)},
		"missing payload": {ID: "i1", Kind: wire.KindExec},
		"no command":      {ID: "i1", Kind: wire.KindExec, Payload: []byte(`{"cwd":"x"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(it)
				b.start(approveAll)
				settle(time.Second)
				b.wantStarts()
				b.wantCalls("accept", 0)
				b.wantCalls("complete", 1)
				b.mustTell(worker.EventWaiting, 0)
				if got := b.last(); got.Status() != worker.WordDeclined || got.DecidedBy != "countersign" {
					t.Errorf("ended as %q by %q", got.Status(), got.DecidedBy)
				}
			})
		})
	}
}

func TestWhatCannotBeWrittenDownDoesNotRun(t *testing.T) {
	for _, step := range []worker.Step{worker.StepClaimed, worker.StepDecided, worker.StepAsking} {
		t.Run(string(step), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.journal = brokenJournal{b.store, func(s worker.Step) bool { return s == step }}
				b.script.offer(item("i1", "s", "true"))
				b.start(approveAll)
				settle(30 * time.Second)
				b.wantStarts()
				b.wantCalls("complete", 0)
			})
		})
	}
}

func TestAStartThatCannotBeWrittenDownIsReportedAsNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return s == worker.StepStarting || s == worker.StepFinished }}
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(30 * time.Second)
		b.wantStarts()
		done := b.script.made("complete")
		if len(done) != 1 || !strings.Contains(string(done[0].done.Result), "126") {
			t.Fatalf("reported %+v", done)
		}
	})
}

func TestWhatCouldNotBeWrittenDownIsOnceTheDiskHasRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var full atomic.Bool
		full.Store(true)
		b.journal = brokenJournal{b.store, func(s worker.Step) bool {
			return full.Load() && (s == worker.StepFinished || s == worker.StepDelivered)
		}}
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(time.Minute)
		b.wantCalls("complete", 1)
		if got := b.last(); got.Closed {
			t.Fatal("the disk was not full")
		}
		full.Store(false)
		settle(time.Minute)
		got, err := b.store.Hold(t.Context(), b.last().ID)
		if err != nil || !got.Closed || got.Status() != worker.WordReported || got.Outcome == nil || got.Outcome.How != execute.Ended {
			t.Errorf("the journal has %q, closed %v, outcome %v, %v", got.Status(), got.Closed, got.Outcome, err)
		}
		b.wantStarts("true")
		b.wantCalls("complete", 1)
	})
}

func TestAnOutcomeThatCannotBeWrittenDownIsDeliveredFromMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.journal = brokenJournal{b.store, func(s worker.Step) bool { return s == worker.StepFinished }}
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll)
		settle(5 * time.Second)
		b.wantStarts("true")
		b.wantCalls("complete", 1)
	})
}

func TestQuittingWhileTheHarnessTakesNoResultKeepsItForTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("complete", broken)
		b.start(approveAll)
		settle(10 * time.Second)
		b.stop(context.Canceled)

		b.script.on("complete", notOurs)
		b.start(approveAll)
		settle(time.Second)
		b.wantStarts("true")
		if got := b.last(); got.Delivery != worker.DeliveryUnconfirmed || !got.Closed {
			t.Errorf("ended as %q", got.Delivery)
		}
	})
}

func TestARuleThatDeclinedIsNotCalledTheOperator(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "curl x"))
		b.start(ruled("[[rule]]\nname = \"no network\"\nkind = \"exec\"\ndeny = [\"curl\"]\n"))
		settle(time.Second)
		if got := string(b.script.made("complete")[0].done.Result); strings.Contains(got, "by the operator") || !strings.Contains(got, "no network") {
			t.Errorf("%s", got)
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

func TestTheLastStepsOfALongDeliveryAreShown(t *testing.T) {
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
