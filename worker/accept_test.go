package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"countersign/worker"
)

func TestNothingStartsBeforeASuccessfulAccept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "go test ./..."))
		b.start()
		settle(0)
		b.wantCalls("accept", 0)
		b.wantStarts()

		b.approve(b.waiting())
		settle(0)
		b.wantCalls("accept", 1)
		b.wantStarts("go test ./...")
		b.wantCalls("complete", 1)
		if got := b.last(); got.Status() != worker.WordReported || !got.Closed {
			t.Errorf("ended as %q, closed %v", got.Status(), got.Closed)
		}
		entries, err := b.store.Entries(t.Context(), b.last().ID)
		if err != nil {
			t.Fatal(err)
		}
		var steps []worker.Step
		for _, e := range entries {
			steps = append(steps, e.Step)
		}
		want := []worker.Step{worker.StepClaimed, worker.StepDecided, worker.StepAsking, worker.StepAccepted,
			worker.StepStarting, worker.StepFinished, worker.StepDelivered}
		if !slices.Equal(steps, want) {
			t.Errorf("journalled %q, want %q", steps, want)
		}
	})
}

func TestAcceptRefusedMeansNothingRanAndNothingIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		accept, heartbeat []reply
		word              string
		event             worker.EventKind
		accepts           int
	}{
		"the session stopped": {
			accept: []reply{leaseLost}, heartbeat: []reply{leaseLost},
			word: worker.WordSessionStopped, event: worker.EventSessionStopped, accepts: 1,
		},
		"the lease lapsed, and again": {
			accept: []reply{leaseLost}, heartbeat: []reply{ok},
			word: worker.WordLapsed, event: worker.EventLeaseLost, accepts: 2,
		},
		"the lease lapsed and someone took it": {
			accept: []reply{leaseLost}, heartbeat: []reply{notOurs},
			word: worker.WordNotOurs, event: worker.EventLeaseLost, accepts: 1,
		},
		"the lease lapsed and nobody knows more": {
			accept: []reply{leaseLost}, heartbeat: []reply{broken},
			word: worker.WordLapsed, event: worker.EventLeaseLost, accepts: 1,
		},
		"another worker holds it": {
			accept: []reply{notOurs}, word: worker.WordNotOurs, event: worker.EventLeaseLost, accepts: 1,
		},
		"the harness does not know it": {
			accept: []reply{notFound}, word: worker.WordUnknown, event: worker.EventLeaseLost, accepts: 1,
		},
		"the harness finds the request bad": {
			accept: []reply{badRequest}, word: worker.WordRefused, event: worker.EventUnconfirmed, accepts: 1,
		},
		"the credentials are rejected": {
			accept: []reply{forbidden}, word: worker.WordRefused, event: worker.EventUnconfirmed, accepts: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.script.on("accept", test.accept...)
				if test.heartbeat != nil {
					b.script.on("heartbeat", test.heartbeat...)
				}
				b.start(approveAll)
				settle(10 * time.Second)
				b.wantStarts()
				b.wantCalls("complete", 0)
				b.wantCalls("accept", test.accepts)
				b.mustTell(test.event, 1)
				if got := b.last(); got.Status() != test.word || !got.Closed {
					t.Errorf("ended as %q (closed %v), want %q", got.Status(), got.Closed, test.word)
				}
			})
		})
	}
}

func TestALapsedLeaseThatIsOursAgainIsAcceptedOnceMore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", leaseLost, ok)
		b.start(approveAll)
		settle(time.Second)
		b.wantCalls("accept", 2)
		b.wantStarts("true")
		b.wantCalls("complete", 1)
	})
}

func TestAnAcceptWhoseAnswerWasLostIsAskedAgainAndStartsOnce(t *testing.T) {
	for name, lost := range map[string]reply{
		"timeout": lostAnswer, "server error": broken, "a proxy's page": proxyPage,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.script.offer(item("i1", "s", "true"))
				b.script.on("accept", lost, lost, ok)
				b.start(approveAll)
				settle(45 * time.Second)
				b.wantCalls("accept", 3)
				b.wantStarts("true")
				b.wantCalls("complete", 1)
			})
		})
	}
}

func TestAnAcceptNeverConfirmedIsGivenUpUnrunWithinAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", lostAnswer)
		b.start(approveAll)
		settle(75 * time.Second)
		b.wantStarts()
		b.wantCalls("complete", 0)
		b.mustTell(worker.EventUnconfirmed, 1)
		calls := b.script.made("accept")
		if took := calls[len(calls)-1].at.Sub(calls[0].at); len(calls) < 3 || took > time.Minute {
			t.Errorf("asked %d times over %v", len(calls), took)
		}
		if got := b.last(); got.Acceptance != worker.Unconfirmed || !got.Closed {
			t.Errorf("ended as %q", got.Acceptance)
		}
	})
}

func TestAnUnansweredAcceptIsNotAskedAgainPastTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"))
		b.script.on("accept", broken)
		b.script.on("heartbeat", broken)
		b.start(approveAll, func(c *worker.Config) { c.Lease = 20 * time.Second })
		settle(2 * time.Minute)
		calls := b.script.made("accept")
		if last := calls[len(calls)-1].at.Sub(calls[0].at); last > 20*time.Second {
			t.Errorf("asked again %v after the lease began", last)
		}
		b.wantStarts()
	})
}

func TestAStartDelayedAfterTheAcceptIsAcceptedAgainFirst(t *testing.T) {
	for name, test := range map[string]struct {
		slowStep worker.Step
		answers  []reply
		starts   []string
		reports  int
	}{
		"slow to write the accept, accepted again":   {worker.StepAccepted, []reply{ok, ok}, []string{"true"}, 1},
		"slow to write the accept, refused":          {worker.StepAccepted, []reply{ok, notOurs}, nil, 0},
		"slow to write the start, accepted again":    {worker.StepStarting, []reply{ok, ok}, []string{"true"}, 1},
		"slow to write the start, refused":           {worker.StepStarting, []reply{ok, leaseLost}, nil, 0},
		"slow to write the start, without an answer": {worker.StepStarting, []reply{ok, broken}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				slept := false
				b.journal = brokenJournal{b.store, func(s worker.Step) bool {
					if s == test.slowStep && !slept {
						slept = true
						b.clock.suspend(30 * time.Second)
					}
					return false
				}}
				b.script.offer(item("i1", "s", "true"))
				b.script.on("accept", test.answers...)
				b.start(approveAll)
				settle(90 * time.Second)
				b.wantStarts(test.starts...)
				b.wantCalls("complete", test.reports)
				if got := b.last(); !got.Closed {
					t.Errorf("not closed: %q", got.Status())
				}
			})
		})
	}
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

func delayedStart(t *testing.T, accepts, beats []reply, starts int, word string) {
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

func TestADelayedStartThatLapsedAndIsOursAgainIsAcceptedOnceMore(t *testing.T) {
	delayedStart(t, []reply{ok, leaseLost, ok}, []reply{ok}, 1, "")
}

func TestADelayedStartOfAStoppedSessionSaysSo(t *testing.T) {
	delayedStart(t, []reply{ok, leaseLost}, []reply{leaseLost}, 0, worker.WordSessionStopped)
}

func TestADelayedStartWithoutAnAnswerIsAskedAgain(t *testing.T) {
	delayedStart(t, []reply{ok, broken, ok}, []reply{ok}, 1, "")
}

func TestADelayedStartThatIsNotOursSaysSo(t *testing.T) {
	delayedStart(t, []reply{ok, notOurs}, []reply{ok}, 0, worker.WordNotOurs)
}

func TestASessionThatStopsWhileTheStartIsWrittenDownStartsAndReportsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		gate := gateJournal{b.store, worker.StepStarting, make(chan struct{}), make(chan struct{})}
		b.journal = gate
		b.script.offer(item("i1", "s", "true"))
		b.start(approveAll, func(c *worker.Config) { c.Lease = 3 * time.Second })
		<-gate.at
		b.script.on("heartbeat", leaseLost)
		settle(2 * time.Second) // the accept is fresh still
		close(gate.gate)
		settle(time.Second)
		b.wantStarts()
		b.wantCalls("complete", 0)
		if got := b.last(); got.Status() != worker.WordSessionStopped || !got.Closed {
			t.Errorf("ended as %q", got.Status())
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

func TestAStartThatTheJournalForbidsIsTold(t *testing.T) {
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
