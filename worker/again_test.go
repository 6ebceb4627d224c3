package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// What a decision still covers when the item could start, and what brings it back.

const denyTrue = "[[rule]]\nname = \"no\"\nkind = \"exec\"\ndeny = [\"true\"]\n"

func TestADenyThatComesIntoForceHoldsForWhatIsInLine(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, allowTrue)
		b.tools.hold = true
		b.script.offer(item("i1", "s", "true"))
		b.start(withBook(rules))
		settle(time.Second)
		b.script.offer(item("i2", "s", "true")) // waits for i1 of its session
		settle(time.Second)
		rules.Use(book(policy.ModeRules, denyTrue).Rules())
		b.engine.Rejudge()
		close(b.tools.letGo)
		settle(time.Second)
		b.wantStarts("true")
		b.wantCalls("accept", 1)
		b.wantCalls("complete", 2)
		if got := b.last(); got.Decision != worker.Declined || got.DecidedBy == worker.ByOperator {
			t.Errorf("%s by %q", got.Decision, got.DecidedBy)
		}
	})
}

func TestARevokedGrantLetsNothingInLineStart(t *testing.T) {
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
		b.script.offer(item("i2", "s", "make"))
		settle(time.Second)
		if err := rules.Grants().Revoke(rules.Grants().List()[0].ID); err != nil {
			t.Fatal(err)
		}
		close(b.tools.letGo)
		settle(time.Second)
		b.wantStarts("make")
		again := b.waiting()
		if again.Decision != worker.Undecided || again.Shown.Explanation.Verdict != policy.Ask {
			t.Errorf("%s, shown as %s", again.Decision, again.Shown.Explanation.Verdict)
		}
		b.approve(again)
		settle(time.Second)
		b.wantStarts("make", "make")
	})
}

func TestWhatARuleAllowedIsJudgedOnceMoreAfterTheAccept(t *testing.T) {
	for name, rules := range map[string]string{"denied": denyTrue, "asked for": ""} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				p := book(policy.ModeRules, allowTrue)
				b.script.on("accept", reply{status: 200, body: `{"ok":true}`, wait: 2 * time.Second})
				b.script.offer(item("i1", "s", "true"))
				b.start(withBook(p))
				settle(time.Second) // the accept is on its way
				p.Use(book(policy.ModeRules, rules).Rules())
				settle(5 * time.Second)
				b.wantStarts()
				if name == "denied" {
					b.wantCalls("complete", 1)
					return
				}
				v := b.waiting()
				if err := b.engine.Release(v.ID); !errors.Is(err, worker.ErrAccepted) {
					t.Errorf("released: %v", err)
				}
				b.approve(v)
				settle(5 * time.Second)
				b.wantStarts("true")
			})
		})
	}
}

func TestGrantsEndWhereAnAcceptTellsThatTheSessionStopped(t *testing.T) {
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
		b.script.on("accept", leaseLost)
		b.script.on("heartbeat", leaseLost)
		b.script.offer(item("i2", "s", "make"))
		settle(time.Second)
		if got := rules.Grants().List(); len(got) != 0 {
			t.Errorf("grants after the session stopped: %+v", got)
		}
	})
}

// gatedPolicy has one explanation wait.
type gatedPolicy struct {
	worker.Policy
	gate
}

func (p *gatedPolicy) Explain(i policy.Item) policy.Explanation {
	e := p.Policy.Explain(i)
	if p.pass() {
		e.Verdict, e.By = policy.Allow, "rule new"
	}
	return e
}

// gate stops whoever passes it once after it was armed.
type gate struct {
	mu       sync.Mutex
	armed    bool
	at, open chan struct{}
}

func newGate() gate { return gate{at: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = true
}

func (g *gate) pass() (stopped bool) {
	g.mu.Lock()
	stopped, g.armed = g.armed, false
	g.mu.Unlock()
	if stopped {
		close(g.at)
		<-g.open
	}
	return stopped
}

func TestARuleThatIsLateDoesNotDecideWhatChangedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		p := &gatedPolicy{Policy: book(policy.ModeRules, ""), gate: newGate()}
		b.changeFiles("1")
		b.script.offer(item("i1", "s", "sh x.sh"))
		b.start(func(c *worker.Config) { c.Policy = p })
		settle(time.Second)
		first := b.waiting()
		p.arm()
		go b.engine.Rejudge()
		<-p.at
		b.changeFiles("2")
		b.approve(first)
		settle(time.Second)
		if !b.waiting().Changed {
			t.Fatal("it is not back")
		}
		close(p.open)
		settle(time.Second)
		b.wantStarts()
	})
}

// gatedTools have one look at the files wait.
type gatedTools struct {
	*tools
	gate
}

func (r *gatedTools) Fingerprint(ctx context.Context, t execute.Task, named []string) []execute.Fingerprint {
	r.pass()
	return r.tools.Fingerprint(ctx, t, named)
}

func TestAStopWhileTheFilesAreLookedAtIsCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.changeFiles("1")
		r := &gatedTools{tools: b.tools, gate: newGate()}
		b.script.offer(item("i1", "s", "sh x.sh"))
		b.start(func(c *worker.Config) { c.Runner = r })
		settle(time.Second)
		v := b.waiting()
		b.changeFiles("2")
		r.arm()
		b.approve(v)
		<-r.at
		if err := b.engine.Stop(v.ID); err != nil {
			t.Fatal(err)
		}
		close(r.open)
		settle(time.Second)
		b.wantStarts()
		b.wantCalls("complete", 1)
		if s := b.engine.Snapshot(); len(s.Waiting) != 0 {
			t.Errorf("the stop was told as done, and the item waits: %s", describe(s))
		}
	})
}

func TestWhatChangedStaysTheOperatorsAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		rules := book(policy.ModeRules, "")
		b.changeFiles("1")
		b.script.offer(item("i1", "s", "true"))
		b.start(withBook(rules))
		settle(time.Second)
		first := b.waiting()
		b.changeFiles("2")
		b.approve(first)
		settle(time.Second)
		rules.Use(book(policy.ModeRules, allowTrue).Rules())
		b.stop(context.Canceled)
		b.start(withBook(rules))
		settle(time.Second)
		b.wantStarts()
		if !b.waiting().Changed {
			t.Error("the mark is gone")
		}
	})
}

func TestWhatMayHaveBeenAcceptedCannotBeReleased(t *testing.T) {
	t.Run("after two restarts", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			id := b.leave("queued", decided, asking, accepted)
			for range 2 {
				b.start()
				settle(time.Second)
				if err := b.engine.Release(id); !errors.Is(err, worker.ErrAccepted) {
					t.Errorf("released: %v", err)
				}
				b.stop(context.Canceled)
			}
		})
	})
	t.Run("after a pause without an answer", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.script.on("accept", lostAnswer)
			b.script.offer(item("i1", "s", "true"))
			b.start(approveAll)
			settle(5 * time.Second)
			b.engine.Pause(time.Time{})
			settle(15 * time.Second)
			if err := b.engine.Release(b.waiting().ID); !errors.Is(err, worker.ErrAccepted) {
				t.Errorf("released: %v", err)
			}
		})
	})
}

// asking everything, with real commands in a real directory.
func startAsking(t *testing.T) *real {
	t.Helper()
	return startReal(t, harness.Options{}, func(c *worker.Config) {
		b, err := policy.NewBook(policy.Context{Root: c.Runner.Dir()}, policy.ModeAsk, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = b
	})
}

func (r *real) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) effect() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "effect"))
	return string(text)
}

func TestAScriptThatAppearsAfterTheItemWasShownBringsItBack(t *testing.T) {
	for _, command := range []string{"sh new.sh", "sh new.sh a.sh"} {
		t.Run(command, func(t *testing.T) {
			r := startAsking(t)
			r.write("a.sh", "true\n")
			r.enqueue("s", wire.KindExec, wire.Exec{Command: command})
			r.until("it waits", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 })
			v := r.engine.Snapshot().Waiting[0]
			r.write("new.sh", "echo unseen >effect\n")
			if err := r.engine.Approve(v.ID, v.Digest, "operator"); err != nil {
				t.Fatal(err)
			}
			r.until("it is back", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 && s.Waiting[0].Changed })
			if r.effect() != "" {
				t.Error("a script that nobody was shown ran")
			}
		})
	}
}

func TestAnEditThatNamesAnotherFileRuns(t *testing.T) {
	r := startAsking(t)
	r.write("a.sh", "echo a >>effect\n")
	r.write("b.sh", "echo b >>effect\n")
	r.enqueue("s", wire.KindExec, wire.Exec{Command: "sh a.sh"})
	r.until("it waits", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 })
	v := r.engine.Snapshot().Waiting[0]
	if err := r.engine.ApproveEdited(v.ID, v.Digest, json.RawMessage(`{"command":"sh b.sh"}`), "operator"); err != nil {
		t.Fatal(err)
	}
	r.until("it ran", func(s worker.Snapshot) bool { return len(s.Finished) == 1 && s.Finished[0].Closed })
	if r.effect() != "b\n" {
		t.Errorf("the effect is %q", r.effect())
	}
}
