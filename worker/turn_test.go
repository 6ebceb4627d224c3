package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"countersign/worker"
	"countersign/worker/policy"
)

// What follows in the moment in which a turn comes is before the accept.

func TestAPauseRightAfterAResumeLetsNothingStart(t *testing.T) {
	for range 20 { // whoever comes first
		inBubble(t, func(t *testing.T, b *bench) {
			b.script.offer(item("i1", "s", "true"))
			b.start(func(c *worker.Config) { c.Policy = book(policy.ModeAll, "") })
			b.engine.SetRoom(8, 0)
			settle(time.Second)
			b.engine.Pause(time.Time{})
			b.engine.SetRoom(8, 1)
			settle(time.Second)
			b.engine.Resume()
			b.engine.Pause(time.Time{})
			asked := len(b.script.made("accept"))
			settle(time.Second)
			if asked == 0 {
				b.wantStarts()
			}
		})
	}
}

func TestADoubtIsLookedAtBeforeTheAcceptWhateverComesWithTheTurn(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, b *bench) {
			rules := book(policy.ModeAll, "")
			b.script.offer(item("i1", "s", "true"))
			b.start(func(c *worker.Config) { c.Policy = rules })
			b.engine.SetRoom(8, 0)
			settle(time.Second)
			rules.Use(book(policy.ModeRules, "[[rule]]\nname = \"no\"\nkind = \"exec\"\ndeny = [\"true\"]\n").Rules())
			b.engine.Rejudge()
			synctest.Wait()
			b.engine.SetRoom(8, 1)
			b.engine.Rejudge()
			settle(time.Minute)
			if n := len(b.script.made("accept")); n != 0 {
				t.Errorf("%d accepts were asked for of what was denied already", n)
			}
			b.wantStarts()
		})
	}
}
