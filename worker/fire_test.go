package worker_test

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/policy"
)

// What an engine has to stand: a machine that is busy, a disk that hangs, a clock
// that somebody sets.

// saturate keeps four goroutines for each processor busy until the test ends.
func saturate(t *testing.T) {
	var over atomic.Bool
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for n := 0; !over.Load(); n++ {
				_ = n * n
			}
		}()
	}
	t.Cleanup(func() { over.Store(true) })
}

func TestNoLeaseLapsesOnASaturatedMachine(t *testing.T) {
	const lease = 3 * time.Second
	var seen alarms
	r := startReal(t, harness.Options{Lease: lease}, func(c *worker.Config) {
		c.Lease, c.Observer, c.Policy = lease, &seen, book(policy.ModeRules, "")
		c.Harness = &renewals{Harness: c.Harness, seen: &seen, lease: lease}
	})
	saturate(t)
	// Claims go on all the while: one would make the harness give up what has lapsed.
	runs := r.enqueue("runs", wire.KindExec, wire.Exec{Command: "sleep 8; echo done"})
	r.until("the first waits", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 })
	first := r.engine.Snapshot().Waiting[0]
	if err := r.engine.Approve(first.ID, first.Digest, "operator"); err != nil {
		t.Fatal(err)
	}
	waits := r.enqueue("waits", wire.KindExec, wire.Exec{Command: "echo waited"})
	r.until("one runs and one waits", func(s worker.Snapshot) bool { return len(s.Waiting) == 1 && len(s.Running) == 1 })
	check := func(id, want string) {
		t.Helper()
		var got wire.ExecResult
		if err := json.Unmarshal(r.await(id).Result, &got); err != nil || got.Stdout != want {
			t.Errorf("it printed %q, %v", got.Stdout, err)
		}
	}
	check(runs, "done\n")
	second := r.engine.Snapshot().Waiting[0]
	if err := r.engine.Approve(second.ID, second.Digest, "operator"); err != nil {
		t.Fatal(err)
	}
	check(waits, "waited\n")
	if n := seen.lost.Load(); n != 0 {
		t.Errorf("a lease was lost %d times", n)
	}
	if n := seen.renewed.Load(); n < 8 {
		t.Errorf("%d renewals of two items in 8 s of a lease of %v", n, lease)
	}
}

// alarms counts leases that were lost: that was told, or renewals came too late.
type alarms struct{ lost, renewed atomic.Int64 }

// renewals sees that each renewal of a lease is asked for before the one before
// it has certainly run out.
type renewals struct {
	worker.Harness
	seen  *alarms
	lease time.Duration
	mu    sync.Mutex
	last  map[string]time.Time // answers
}

func (r *renewals) Claim(ctx context.Context, workerID string) (worker.Item, bool, error) {
	it, found, err := r.Harness.Claim(ctx, workerID)
	if found {
		r.answered(it.ID)
	}
	return it, found, err
}

func (r *renewals) Accept(ctx context.Context, itemID, workerID string) error {
	return r.renew(ctx, itemID, workerID, r.Harness.Accept)
}

func (r *renewals) Heartbeat(ctx context.Context, itemID, workerID string) error {
	return r.renew(ctx, itemID, workerID, r.Harness.Heartbeat)
}

func (r *renewals) renew(ctx context.Context, itemID, workerID string, ask func(context.Context, string, string) error) error {
	r.mu.Lock()
	late := time.Since(r.last[itemID]) > r.lease
	r.mu.Unlock()
	if late {
		r.seen.lost.Add(1)
	}
	err := ask(ctx, itemID, workerID)
	if err == nil {
		r.seen.renewed.Add(1)
		r.answered(itemID)
	}
	return err
}

func (r *renewals) answered(itemID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[itemID] = time.Now()
}

func (a *alarms) Changed() {}

func (a *alarms) Happened(ev worker.Event) {
	if ev.Kind == worker.EventLeaseLost {
		a.lost.Add(1)
	}
}

// hangingDisk answers nothing while it hangs.
type hangingDisk struct {
	worker.Journal
	hangs *atomic.Bool
	works chan struct{} // closed when it does again
}

func (j hangingDisk) wait() {
	if j.hangs.Load() {
		<-j.works
	}
}

func (j hangingDisk) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	j.wait()
	return j.Journal.Open(ctx, h, reason, then...)
}

func (j hangingDisk) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	j.wait()
	return j.Journal.Move(ctx, id, steps...)
}

func (j hangingDisk) Usable(ctx context.Context) error {
	j.wait()
	return j.Journal.Usable(ctx)
}

func TestHeartbeatsGoOnWhileTheDiskHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		disk := hangingDisk{b.store, new(atomic.Bool), make(chan struct{})}
		b.journal = disk
		b.tools.hold = true
		b.script.offer(item("runs", "s1", "sleep"), item("waits", "s2", "true"), item("approved", "s3", "true"))
		b.start()
		settle(5 * time.Second)
		views := map[string]worker.View{}
		for _, v := range b.engine.Snapshot().Waiting {
			views[v.Item.ID] = v
		}
		b.approve(views["runs"])
		settle(time.Second)
		disk.hangs.Store(true)
		b.approve(views["approved"]) // cannot be written down, so it cannot start
		b.script.offer(item("late", "s4", "true"))
		settle(time.Second)
		count := func() map[string]int {
			n := map[string]int{}
			for _, c := range b.script.made("heartbeat") {
				n[c.id]++
			}
			return n
		}
		before := count()
		b.script.on("heartbeat", ok, broken, ok, broken, ok) // with what there is to note
		settle(2 * time.Minute)
		for id, n := range count() {
			if got := n - before[id]; got < 5 {
				t.Errorf("%s: %d heartbeats in 2 minutes of a disk that hangs", id, got)
			}
		}
		if n := len(count()); n != 4 {
			t.Errorf("heartbeats for %d items, want 4", n)
		}
		b.wantStarts("sleep")
		disk.hangs.Store(false)
		close(disk.works)
		close(b.tools.letGo)
		settle(time.Minute)
		b.wantStarts("sleep", "true")
	})
}

// setClock is the bubble's clock, whose wall clock somebody sets.
type setClock struct {
	*bedClock
	ahead *atomic.Int64 // nanoseconds
}

func (c setClock) Now() time.Time { return c.bedClock.Now().Add(time.Duration(c.ahead.Load())) }

func TestAWallClockThatIsSetMovesNoLeaseAndNoDecision(t *testing.T) {
	for name, by := range map[string]time.Duration{"two hours on": 2 * time.Hour, "two hours back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				clock := setClock{b.clock, new(atomic.Int64)}
				b.tools.hold = true
				b.script.offer(item("i1", "s1", "sleep"), item("i2", "s2", "true"))
				b.start(func(c *worker.Config) { c.Clock = clock })
				settle(30 * time.Second)
				b.approve(b.engine.Snapshot().Waiting[0])
				settle(time.Second)
				before, beats := b.waiting(), len(b.script.made("heartbeat"))
				clock.ahead.Store(int64(by))
				settle(time.Minute)
				after := b.waiting()
				if got := before.DecisionLeft - after.DecisionLeft; got != time.Minute {
					t.Errorf("a minute took %v of the time to decide", got)
				}
				if got := after.Age - before.Age; got != time.Minute {
					t.Errorf("a minute made it %v older", got)
				}
				if got := len(b.script.made("heartbeat")) - beats; got != 6 {
					t.Errorf("%d heartbeats for two items in a minute, want 6", got)
				}
				if v := b.engine.Snapshot().Running; len(v) != 1 || v[0].Lease <= 0 {
					t.Errorf("running: %+v", v)
				}
				b.mustTell(worker.EventLeaseLost, 0)
				b.mustTell(worker.EventExpired, 0)
				b.approve(after)
				close(b.tools.letGo)
				settle(time.Second)
				b.wantStarts("sleep", "true")
				b.wantCalls("complete", 2)
			})
		})
	}
}
