package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// allowTrue is a rule file that allows one command.
const allowTrue = "[[rule]]\nname = \"nothing\"\nkind = \"exec\"\nallow = [\"true\"]\n"

func withBook(p *policy.Book) func(*worker.Config) {
	return func(c *worker.Config) { c.Policy = p }
}

func TestARuleAllowsWithoutAPersonAndTheJournalNamesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "true"), item("i2", "t", "false"))
		b.start(ruled(allowTrue))
		settle(time.Second)
		b.wantStarts("true")
		done, err := b.store.Hold(t.Context(), b.engine.Snapshot().Finished[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(done.DecidedBy, "nothing") || done.Shown.Explanation.Verdict != policy.Allow {
			t.Errorf("decided by %q, shown %+v", done.DecidedBy, done.Shown)
		}
		if v := b.waiting(); v.Shown.Explanation.Verdict != policy.Ask || len(v.Shown.Explanation.Parts) != 1 {
			t.Errorf("shown with what waits: %+v", v.Shown.Explanation)
		}
		b.mustTell(worker.EventWaiting, 1)
	})
}

func TestARuleThatComesIntoForceDecidesWhatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.script.offer(item("i1", "s", "true"), item("i2", "t", "curl x"), item("i3", "u", "id"))
		b.start(withBook(rules))
		settle(time.Second)
		rules.Use(book(policy.ModeRules, allowTrue+"[[rule]]\nname = \"no\"\nkind = \"exec\"\ndeny = [\"curl\"]\n").Rules())
		b.engine.Rejudge()
		settle(time.Second)
		b.wantStarts("true")
		b.wantCalls("complete", 2)
		if v := b.waiting(); v.Item.ID != "i3" {
			t.Errorf("%s waits", v.Item.ID)
		}
	})
}

func TestApprovalForASessionCoversTheIdenticalAndNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.script.offer(item("i1", "s", "make"))
		b.start(withBook(rules))
		settle(time.Second)
		v := b.waiting()
		if !v.Grantable {
			t.Error("it cannot be approved for the session")
		}
		if err := b.engine.ApproveForSession(v.ID, v.Digest, "operator, for the session"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.script.offer(item("i2", "s", "make"), item("i3", "s", "make x"), item("i4", "other", "make"))
		settle(time.Second)
		b.wantStarts("make", "make")
		if s := b.engine.Snapshot(); len(s.Waiting) != 2 {
			t.Errorf("waiting: %s", describe(s))
		}
		if got := rules.Grants().List(); len(got) != 1 || got[0].Matched != 1 {
			t.Errorf("grants: %+v", got)
		}
	})
}

func TestGrantsOfASessionEndWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.script.offer(item("i1", "s", "make"))
		b.start(withBook(rules))
		settle(time.Second)
		v := b.waiting()
		if err := b.engine.ApproveForSession(v.ID, v.Digest, "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.script.offer(item("i2", "s", "other"))
		settle(time.Second)
		b.script.on("heartbeat", leaseLost)
		settle(time.Minute)
		if got := rules.Grants().List(); len(got) != 0 {
			t.Errorf("grants after the session stopped: %+v", got)
		}
	})
}

func TestAllowingReadsAnswersTheOnesThatWait(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		read := func(id, path string) wire.Item {
			it := item(id, "s", "")
			it.Kind, it.Payload = wire.KindRead, json.RawMessage(`{"path":"`+path+`"}`)
			return it
		}
		b.script.offer(read("i1", "src/a.go"), read("i2", "src/b.go"), read("i3", "etc/c"))
		b.start(withBook(rules), func(c *worker.Config) { c.DecisionTimeout = time.Hour })
		settle(time.Second)
		v := b.engine.Snapshot().Waiting[0]
		if err := b.engine.AllowReads(v.ID, v.Digest, "src", 15*time.Minute, "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if w := b.waiting(); w.Item.ID != "i3" {
			t.Errorf("%s waits", w.Item.ID)
		}
		b.script.offer(item("i4", "s", "exec is not a read"))
		settle(time.Second)
		for _, v := range b.engine.Snapshot().Waiting {
			if v.Item.Kind != wire.KindExec {
				continue
			}
			if err := b.engine.AllowReads(v.ID, v.Digest, ".", time.Minute, "operator"); err == nil || !strings.Contains(err.Error(), "only reads and lists") {
				t.Errorf("a command was approved as a read: %v", err)
			}
		}
		settle(20 * time.Minute)
		b.script.offer(read("i5", "src/d.go"))
		settle(time.Second)
		if n := len(b.engine.Snapshot().Waiting); n != 3 {
			t.Errorf("%d wait after the grant's time was over, want 3", n)
		}
	})
}

func TestEditedWorkRunsInTheItemsPlaceAndTheAgentIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "rm -r build"))
		b.start()
		settle(time.Second)
		v := b.waiting()
		if err := b.engine.ApproveEdited(v.ID, v.Digest, json.RawMessage(`{"command":""}`), "operator"); err == nil {
			t.Error("an empty command was taken")
		}
		if err := b.engine.ApproveEdited(v.ID, "other", json.RawMessage(`{"command":"ls build"}`), "operator"); !errors.Is(err, worker.ErrChanged) {
			t.Errorf("with another digest: %v", err)
		}
		if err := b.engine.ApproveEdited(v.ID, v.Digest, json.RawMessage(`{"command":"ls build"}`), "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.wantStarts("ls build")
		var result wire.ExecResult
		if err := json.Unmarshal(b.script.made("complete")[0].done.Result, &result); err != nil {
			t.Fatal(err)
		}
		const told = "the operator changed the command before it ran. What ran: ls build"
		if !strings.Contains(result.Stdout, told) || result.Stderr != "" {
			t.Errorf("the agent reads %.80q and %.80q", result.Stdout, result.Stderr)
		}
		kept, err := b.store.Hold(t.Context(), v.ID)
		if err != nil || string(kept.Edited) != `{"command":"ls build"}` || !strings.Contains(string(kept.Item.Payload), "rm -r build") {
			t.Errorf("kept: edited %s, asked %s, %v", kept.Edited, kept.Item.Payload, err)
		}
	})
}

func TestWhatTheRulesDenyCannotBeEditedIn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.script.offer(item("i1", "s", "ls"))
		b.start(ruled("[[rule]]\nname = \"no network\"\nkind = \"exec\"\ndeny = [\"curl\"]\n"))
		settle(time.Second)
		v := b.waiting()
		err := b.engine.ApproveEdited(v.ID, v.Digest, json.RawMessage(`{"command":"curl x"}`), "operator")
		if err == nil || !strings.Contains(err.Error(), "no network") {
			t.Errorf("%v", err)
		}
		settle(time.Second)
		b.wantStarts()
	})
}

func TestAFileThatChangedSinceItWasShownBringsTheItemBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.files = []execute.Fingerprint{{Path: "x.sh", State: execute.StateRegular, SHA256: "1"}}
		b.script.offer(item("i1", "s", "sh x.sh"))
		b.start()
		settle(time.Second)
		first := b.waiting()
		b.tools.mu.Lock()
		b.tools.files = []execute.Fingerprint{{Path: "x.sh", State: execute.StateRegular, SHA256: "2"}}
		b.tools.mu.Unlock()
		b.approve(first)
		settle(time.Second)
		b.wantStarts()
		b.wantCalls("accept", 1)
		b.wantCalls("complete", 0)
		again := b.waiting()
		if again.Word != worker.WordChanged || !again.Changed || again.Digest == first.Digest || again.DecisionLeft < time.Minute {
			t.Errorf("back as %q, changed %v, same digest %v, %s left", again.Word, again.Changed, again.Digest == first.Digest, again.DecisionLeft)
		}
		if err := b.engine.Approve(first.ID, first.Digest, "operator"); !errors.Is(err, worker.ErrChanged) {
			t.Errorf("the old approval: %v", err)
		}
		if err := b.engine.Release(first.ID); !errors.Is(err, worker.ErrAccepted) {
			t.Errorf("release of an accepted item: %v", err)
		}
		b.approve(again)
		settle(time.Second)
		b.wantStarts("sh x.sh")
		b.wantCalls("accept", 2)
	})
}

func TestAnAcceptedItemThatChangedAndExpiresIsDeclinedNotLeftToLapse(t *testing.T) {
	for name, then := range map[string]func(*bench){
		"unanswered": func(*bench) {},
		"paused":     func(b *bench) { b.engine.Pause(time.Time{}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.tools.files = []execute.Fingerprint{{Path: "x.sh", SHA256: "1"}}
				b.script.offer(item("i1", "s", "sh x.sh"))
				b.start()
				settle(time.Second)
				v := b.waiting()
				b.tools.mu.Lock()
				b.tools.files = nil
				b.tools.mu.Unlock()
				b.approve(v)
				settle(time.Second)
				then(b)
				settle(5 * time.Minute)
				b.wantStarts()
				b.wantCalls("complete", 1)
			})
		})
	}
}

func TestWhatChangedIsShownAgainAfterARestartToo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.tools.files = []execute.Fingerprint{{Path: "x.sh", SHA256: "1"}}
		b.script.offer(item("i1", "s", "sh x.sh"))
		b.start()
		settle(time.Second)
		first := b.waiting()
		b.stop(context.Canceled)
		b.tools.files = []execute.Fingerprint{{Path: "x.sh", SHA256: "2"}}
		b.start()
		settle(time.Second)
		if again := b.waiting(); again.Digest == first.Digest {
			t.Error("another script, and the approval of the old one would do")
		}
	})
}

func TestAnEditedPayloadKeepsTheRest(t *testing.T) {
	for kind, want := range map[string]string{
		wire.KindExec:  `{"command":"ls \u003e x","cwd":"sub","env":{"A":"1"},"path":"p","timeout":5}`,
		wire.KindWrite: `{"command":"rm","content":"ls \u003e x\n","cwd":"sub","env":{"A":"1"},"path":"p","timeout":5}`,
	} {
		got, err := worker.EditPayload(worker.Item{Kind: kind, Payload: json.RawMessage(`{"timeout":5,"command":"rm","cwd":"sub","env":{"A":"1"},"path":"p"}`)}, "ls > x\n")
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
	if _, err := worker.EditPayload(worker.Item{Kind: wire.KindRead, Payload: json.RawMessage(`{"path":"p"}`)}, "x"); err == nil {
		t.Error("a read was edited")
	}
}

// changeFiles has what a command names be another from now on.
func (b *bench) changeFiles(hash string) {
	b.tools.mu.Lock()
	defer b.tools.mu.Unlock()
	b.tools.files = []execute.Fingerprint{{Path: "x.sh", State: execute.StateRegular, SHA256: hash}}
}

func TestWhatChangedSinceItWasShownIsForAPersonToDecide(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.changeFiles("1")
		b.script.offer(item("i1", "s", "true"))
		b.start(withBook(rules))
		settle(time.Second)
		v := b.waiting()
		b.changeFiles("2")
		b.approve(v)
		settle(time.Second)
		rules.Use(book(policy.ModeRules, allowTrue).Rules())
		b.engine.Rejudge()
		settle(time.Second)
		b.wantStarts()
		if again := b.waiting(); !again.Changed {
			t.Error("it does not wait, marked")
		}
	})
}

func TestAnEditDoesNotOutliveTheApprovalItCameWith(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.changeFiles("1")
		b.script.offer(item("i1", "s", "sh x.sh"))
		b.start()
		settle(time.Second)
		v := b.waiting()
		b.changeFiles("2")
		if err := b.engine.ApproveEdited(v.ID, v.Digest, json.RawMessage(`{"command":"sh -n x.sh"}`), "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		again := b.waiting()
		if again.Edited != nil {
			t.Errorf("edited to %s still", again.Edited)
		}
		b.approve(again)
		settle(time.Second)
		b.wantStarts("sh x.sh")
		if result := string(b.script.made("complete")[0].done.Result); strings.Contains(result, "changed the command") {
			t.Errorf("the agent is told of an edit that did not run: %.200s", result)
		}
	})
}

func TestGrantsEndWithASessionThatStopsWhileItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.tools.hold = true
		b.script.offer(item("i1", "s", "make"))
		b.start(withBook(rules))
		settle(time.Second)
		v := b.waiting()
		if err := b.engine.ApproveForSession(v.ID, v.Digest, "operator"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		b.script.on("heartbeat", leaseLost)
		settle(time.Minute)
		if got := rules.Grants().List(); len(got) != 0 {
			t.Errorf("grants after the session stopped: %+v", got)
		}
	})
}
