package worker_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"countersign/harness"
	"countersign/worker"
)

// The model-based test plays random interleavings of what can happen to two
// machines that work for one harness, and checks after each step what must hold
// whatever happens. -rapid.checks=N plays more of them for each harness.
func TestNothingRunsTwiceAndNothingIsLostWhateverHappens(t *testing.T) {
	fewUnlessAsked(t)
	for name, generation := range map[string]harness.Generation{
		"newest": harness.Newest, "with accept": harness.WithAccept, "old": harness.Old,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent on waiting for the disk
			rapid.Check(t, func(rt *rapid.T) {
				p := play{
					generation: generation,
					lease:      rapid.SampledFrom([]time.Duration{time.Minute, 12 * time.Second}).Draw(rt, "lease"),
					asks:       []bool{rapid.Bool().Draw(rt, "first asks"), rapid.Bool().Draw(rt, "second asks")},
					alone:      rapid.Bool().Draw(rt, "alone"),
					ends:       rapid.Bool().Draw(rt, "sessions end"),
					steps:      rapid.SliceOfN(rapid.Custom(drawStep), 20, 60).Draw(rt, "steps"),
				}
				dir := t.TempDir()
				rapid.SyncTest(rt, func(rt *rapid.T) {
					w := newWorld(rt, dir, p)
					defer w.end()
					p.perform(rt, w)
				})
			})
		})
	}
}

// fewUnlessAsked makes do with a number that does not hold up a usual run.
func fewUnlessAsked(t *testing.T) {
	asked := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if asked {
		return
	}
	if err := flag.Set("rapid.checks", "30"); err != nil {
		t.Fatal(err)
	}
}

// play is one interleaving.
type play struct {
	generation harness.Generation
	lease      time.Duration // of the harness; the machines believe in a minute
	asks       []bool        // by machine: whether an operator is asked
	alone      bool          // whether the second machine is down at first
	ends       bool          // whether the sessions end before the calm
	steps      []step
}

// step is one thing that happens. What n, d and route mean depends on do.
type step struct {
	do      string
	machine int
	n       int
	d       time.Duration
	route   string
}

func (s step) String() string {
	if s.do == "nothing" {
		return s.do
	}
	return fmt.Sprintf("{%q %d n=%d d=%v %s}", s.do, s.machine, s.n, s.d, s.route)
}

// deeds lists what can happen, the likelier the oftener. The first is what a
// failure shrinks to.
var deeds = []string{
	"nothing",
	"enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue", "enqueue",
	"wait", "wait", "wait", "wait", "wait", "wait", "wait", "wait",
	"approve", "approve", "approve", "approve", "approve", "approve",
	"decline", "release", "stop item", "stop all", "pause", "resume", "resume", "resume", "stop session",
	"kill", "trap", "trap", "trap", "start", "start", "start", "start", "start", "start", "start", "quit",
	"suspend", "suspend", "freeze", "fault", "fault", "fault", "fault", "fault", "fault", "heal",
	"touch", "touch", "approve edited", "approve edited", "rejudge", "disk", "slow disk", "slow disk", "slow disk", "slow disk", "steal", "suspend and steal",
}

var (
	waits = []time.Duration{
		0, time.Second, 4 * time.Second, 9 * time.Second, 25 * time.Second, 61 * time.Second, 150 * time.Second, 300 * time.Second,
	}
	routes = []string{"", "", "claim", "accept", "heartbeat", "complete", "accept", "complete"}
)

func drawStep(t *rapid.T) step {
	return step{
		do: oneOf(t, deeds), machine: oneOf(t, []int{0, 1}), n: below(t, 64), d: oneOf(t, waits), route: oneOf(t, routes),
	}
}

// oneOf draws each of them as likely as the others: rapid's own choice is mostly
// one of the first.
func oneOf[T any](t *rapid.T, all []T) T { return all[below(t, len(all))] }

func below(t *rapid.T, n int) (drawn int) {
	for range 10 {
		drawn *= 2
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

// perform plays the steps, then lets the world calm down and asks for the end of
// every story.
func (p play) perform(rt *rapid.T, w *world) {
	for _, m := range w.machines {
		m.start()
	}
	if p.alone {
		w.machines[1].life.kill()
	}
	for _, s := range p.steps {
		synctest.Wait()
		w.note("step %v", s)
		w.take(s)
		synctest.Wait()
		w.check(rt)
	}
	w.calm(rt, p.ends)
	w.checkEnd(rt)
	for _, m := range w.machines { // the journal is whole, whatever was killed
		v, err := m.store.Verify(context.Background(), "")
		if err != nil || len(v.Problems) > 0 {
			rt.Fatalf("%s: %v %v", m.name, v.Problems, err)
		}
	}
}

// take does one step.
func (w *world) take(s step) {
	m := w.machines[s.machine]
	switch s.do {
	case "enqueue":
		w.enqueue(s.n%3, s.n%8, s.d)
		return
	case "wait":
		time.Sleep(s.d)
		return
	case "touch":
		w.file.Add(1)
		return
	case "stop session":
		w.stopSession(s.n % 3)
		return
	case "suspend":
		w.clock.suspend(s.d)
		return
	case "slow disk":
		m.diskIsSlow(1+s.n%8, s.d)
		return
	case "steal":
		w.steal(s.n % 3)
		return
	case "suspend and steal":
		w.clock.suspend(61 * time.Second) // more than any lease
		w.steal(s.n % 3)
		return
	case "start":
		if m.life.isDead() {
			m.start()
		}
		return
	case "fault":
		m.fails(fault{faults[s.n%len(faults)], s.route, s.d}, 1+s.n/len(faults)*4)
		return
	case "heal":
		m.heal()
		return
	case "disk":
		m.diskFails(1 + s.n%4*s.n)
		return
	}
	if m.life.isDead() {
		return
	}
	switch s.do {
	case "kill":
		m.life.kill()
	case "trap":
		m.life.set(trap{points[s.n%len(points)], s.n / len(points)})
	case "freeze":
		m.life.freeze()
		time.Sleep(s.d)
		m.life.thaw()
	case "quit":
		m.quit(s.n%2 == 0)
	default:
		m.intend(s)
	}
}

// intend is what an operator does at a machine.
func (m *machine) intend(s step) {
	e := m.life.engine
	snapshot := e.Snapshot()
	pick := func(views []worker.View, do func(worker.View) error) {
		if len(views) > 0 {
			_ = do(views[s.n%len(views)]) // it may have moved on meanwhile
		}
	}
	switch s.do {
	case "approve":
		pick(snapshot.Waiting, func(v worker.View) error { return e.Approve(v.ID, v.Digest, "operator") })
	case "rejudge":
		e.Rejudge()
	case "approve edited":
		pick(snapshot.Waiting, func(v worker.View) error {
			p := fmt.Appendf(nil, "%s,\"timeout\":%d}", v.Item.Payload[:len(v.Item.Payload)-1], 1000+s.n)
			return e.ApproveEdited(v.ID, v.Digest, p, "operator")
		})
	case "decline":
		pick(snapshot.Waiting, func(v worker.View) error { return e.Decline(v.ID, v.Digest, "no", "operator") })
	case "release":
		pick(snapshot.Waiting, func(v worker.View) error { return e.Release(v.ID) })
	case "stop item":
		pick(snapshot.Running, func(v worker.View) error { return e.Stop(v.ID) })
	case "stop all":
		e.StopEverything()
	case "pause":
		e.Pause(time.Time{})
	case "resume":
		e.Resume()
	}
}

// calm ends all trouble and waits until every hold is closed, an hour at most.
func (w *world) calm(rt *rapid.T, endSessions bool) {
	w.note("calm")
	for _, m := range w.machines {
		m.heal()
		m.life.set(trap{})
		if m.life.isDead() {
			m.start()
		}
		m.life.engine.Resume()
	}
	if endSessions {
		for session := range 3 {
			w.stopSession(session)
		}
	}
	for round := range 120 {
		settle(30 * time.Second)
		if round == 60 {
			w.restartAfterDiskFailures()
		}
		w.check(rt)
		open := 0
		for _, m := range w.machines {
			m.life.engine.Present()
			for _, v := range m.life.engine.Snapshot().Waiting {
				_ = m.life.engine.Approve(v.ID, v.Digest, "operator")
			}
			open += len(m.unfinished())
		}
		if open == 0 && round > 4 {
			return
		}
	}
	for _, m := range w.machines {
		for _, h := range m.unfinished() {
			w.breach("%s: #%d of %s is still open after an hour of calm: %s, %+v", m.name, h.ID, h.Item.ID, h.Status(), h.Facts)
		}
	}
	w.check(rt)
}

// restartAfterDiskFailures takes up what could not be written down to its end.
func (w *world) restartAfterDiskFailures() {
	for _, m := range w.machines {
		if m.diskFailed {
			m.quit(false)
			m.start()
		}
	}
}

// check fails the test where something was breached, and says all that happened.
func (w *world) check(rt *rapid.T) {
	for _, m := range w.machines {
		if !m.life.isDead() {
			w.checkSnapshot(m, m.life.engine.Snapshot())
		}
	}
	w.mu.Lock()
	breaches, story := slices.Clone(w.breaches), slices.Clone(w.story)
	w.mu.Unlock()
	if len(breaches) == 0 {
		return
	}
	for _, line := range story {
		rt.Log(line)
	}
	rt.Fatalf("breached: %q", breaches)
}

// checkSnapshot sees that no item is shown twice while something is still done
// with it, and no hold twice at all.
func (w *world) checkSnapshot(m *machine, s worker.Snapshot) {
	items, holds := map[string]bool{}, map[worker.HoldID]bool{}
	for _, v := range slices.Concat(s.Waiting, s.Running, s.Finished) {
		if holds[v.ID] || !v.Closed && items[v.Item.ID] {
			w.breach("%s shows %s twice: %s", m.name, v.Item.ID, describe(s))
		}
		holds[v.ID] = true
		items[v.Item.ID] = items[v.Item.ID] || !v.Closed
	}
}
