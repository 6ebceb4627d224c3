package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/harness"
)

// Options say what is put under fire, and how hard.
type Options struct {
	Bin       string        // the built program
	Dir       string        // everything is kept in it; it must be empty
	Items     int           // how many
	Sessions  int           // how many they belong to
	Running   int           // commands at once
	Seed      uint64        // decides faults, kills and commands
	Lease     time.Duration // of the harness
	KillEvery time.Duration // the mean time between kills
	Fire      time.Duration // the most that the fire lasts; 0: until nothing waits to be claimed
	Log       func(format string, args ...any)
}

const environment = "chaos"

// Run enqueues the items and has them worked on under fire until none waits any
// more, then calls the fire off, waits until each has its end, and counts.
func Run(ctx context.Context, o Options) (Figures, error) {
	p, err := newPlace(o)
	if err != nil {
		return Figures{}, err
	}
	defer p.harness.kill()
	defer p.proxy.Close()
	began := time.Now()
	if err := p.enqueue(ctx); err != nil {
		return Figures{}, err
	}
	o.Log("%d items wait; seed %d", o.Items, o.Seed)
	if err := p.fire(ctx); err != nil {
		return Figures{}, err
	}
	o.Log("the fire is off after %v and %d kills", time.Since(began).Round(time.Second), p.kills)
	if err := p.calm(ctx); err != nil {
		return Figures{}, err
	}
	return p.audit(ctx, time.Since(began))
}

// place is one machine, its harness, and the proxy between them.
type place struct {
	Options
	harness *process
	client  *harness.Client
	proxy   *proxy
	worker  *process
	chance  *rand.Rand // of the commands and kills
	ids     []string   // of the items, in the order of their numbers
	kills   int
	refused int // starts: what the killed worker was about to start still had its lock
}

func newPlace(o Options) (*place, error) {
	p := &place{Options: o, chance: rand.New(rand.NewPCG(o.Seed, 1))}
	var err error
	if p.Bin, err = filepath.Abs(o.Bin); err != nil {
		return nil, err
	}
	if p.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	for _, dir := range []string{p.config(), p.effects()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	origin, err := p.startHarness()
	if err != nil {
		return nil, err
	}
	p.client = harness.NewClient(origin, "", nil)
	if p.proxy, err = newProxy(origin, rand.New(rand.NewPCG(o.Seed, 2)), o.Lease); err != nil {
		p.harness.kill()
		return nil, err
	}
	return p, nil
}

func (p *place) data() string    { return filepath.Join(p.Dir, "data") }
func (p *place) config() string  { return filepath.Join(p.Dir, "config") }
func (p *place) work() string    { return filepath.Join(p.Dir, "work") }
func (p *place) effects() string { return filepath.Join(p.work(), "effects") }

// process is the program, started, and the last of what it has printed.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	mu     sync.Mutex
	output bytes.Buffer
}

// Write keeps what the process prints, the last megabyte or two.
func (r *process) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.output.Len() > 2<<20 {
		r.output.Next(1 << 20)
	}
	return r.output.Write(text)
}

func (r *process) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

func (p *place) start(args ...string) (*process, error) {
	r := &process{ended: make(chan struct{})}
	r.cmd = exec.Command(p.Bin, append([]string{"--data-dir", p.data(), "--config-dir", p.config(), "--log-level", "warn"}, args...)...)
	r.cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DISPLAY=", "WAYLAND_DISPLAY=", "DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR=")
	r.cmd.Stdout, r.cmd.Stderr = r, r
	// What it left running may hold its output open.
	r.cmd.WaitDelay = 100 * time.Millisecond
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = r.cmd.Wait(); close(r.ended) }()
	return r, nil
}

func (r *process) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
}

func (p *place) startHarness() (origin string, err error) {
	p.harness, err = p.start("harness", "--listen", "127.0.0.1:0", "--no-auth",
		"--db", filepath.Join(p.Dir, "harness.db"), "--lease-ms", strconv.FormatInt(p.Lease.Milliseconds(), 10))
	if err != nil {
		return "", err
	}
	said := regexp.MustCompile(`Harness at (http://\S+)`)
	for range 1000 {
		if m := said.FindStringSubmatch(p.harness.printed()); m != nil {
			return m[1], nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.harness.kill()
	return "", errors.New("the harness does not come up: " + p.harness.printed())
}

func (p *place) startWorker() (err error) {
	p.worker, err = p.start("worker", "--harness", p.proxy.origin(), "--workdir", p.work(), "--approve", "all",
		"--environment-id", environment, "--interval-ms", "20", "--lease-ms", strconv.FormatInt(p.Lease.Milliseconds(), 10),
		"--max-held", strconv.Itoa(2*p.Running), "--max-running", strconv.Itoa(p.Running), "--grace", "5s")
	return err
}

// enqueue puts all items into the queue. Each leaves its mark once for each time
// that it runs: at once, late, before it takes its time, or with much to say.
func (p *place) enqueue(ctx context.Context) error {
	for i := range p.Sessions {
		if _, err := p.client.CreateSession(ctx, harness.NewSession{ID: fmt.Sprint("s", i), EnvironmentID: environment}); err != nil {
			return err
		}
	}
	for i := range p.Items {
		mark := fmt.Sprintf("echo %d >> effects/%d", i, i)
		command := mark
		switch p.chance.IntN(8) {
		case 0:
			command = fmt.Sprintf("%s; sleep 0.%d", mark, p.chance.IntN(9))
		case 1:
			command = fmt.Sprintf("sleep 0.%02d; %s", p.chance.IntN(30), mark)
		case 2:
			command = mark + "; seq 1 30000"
		}
		item, err := p.client.Enqueue(ctx, fmt.Sprint("s", i%p.Sessions), "exec", map[string]string{"command": command})
		if err != nil {
			return err
		}
		p.ids = append(p.ids, item.ID)
	}
	return nil
}

// fire works on the queue with the proxy at its worst and kills the worker again
// and again, until nothing waits to be claimed or the time for it is over.
func (p *place) fire(ctx context.Context) error {
	p.proxy.misbehave(true)
	if err := p.startWorker(); err != nil {
		return err
	}
	began := time.Now()
	for queued := p.Items; queued > 0 && (p.Fire == 0 || time.Since(began) < p.Fire); {
		ended, err := p.live(ctx)
		switch {
		case err != nil:
			p.worker.kill()
			return err
		case ended:
			err = p.startAgain()
		default:
			p.worker.kill()
			p.kills++
			err = p.startWorker()
		}
		if err != nil {
			return err
		}
		list, err := p.client.WorkItems(ctx, environment)
		if err != nil {
			return err
		}
		if queued = list.Counts["queued"]; p.kills%25 == 0 {
			p.Log("%d kills, %v", p.kills, list.Counts)
		}
	}
	return nil
}

// live leaves the worker its time: as a rule it is counted from its first request,
// so that a slow machine gets somewhere too. It says whether the worker ended by
// itself.
func (p *place) live(ctx context.Context) (ended bool, err error) {
	if p.chance.IntN(4) > 0 { // else it may be killed while it starts
		if ended, err := p.pass(ctx, p.proxy.nextRequest(), time.Minute); ended || err != nil {
			return ended, err
		}
	}
	return p.pass(ctx, nil, time.Duration(p.chance.ExpFloat64()*float64(p.KillEvery)))
}

// pass lets time pass until something, and for so long at most.
func (p *place) pass(ctx context.Context, until <-chan struct{}, atMost time.Duration) (ended bool, err error) {
	select {
	case <-until:
	case <-time.After(atMost):
	case <-p.worker.ended:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// startAgain is for a worker that found the lock of the killed one. A child that
// was made and had not become its own program yet has it for a moment more.
func (p *place) startAgain() error {
	if p.refused++; p.refused > p.kills || !strings.Contains(p.worker.printed(), "already running") {
		return errors.New("the worker ended by itself: " + p.worker.printed())
	}
	return p.startWorker()
}

// allClosed says whether the worker has nothing open: it may still be sending a
// report again that the harness has.
func (p *place) allClosed(ctx context.Context) (bool, error) {
	items, _, err := p.holds(ctx)
	for _, holds := range items {
		for _, h := range holds {
			if !h.Closed {
				return false, err
			}
		}
	}
	return true, err
}

// calm waits until the harness knows an end of every item and the worker has nothing
// open, and then ends the worker in order.
func (p *place) calm(ctx context.Context) error {
	p.proxy.misbehave(false)
	defer p.worker.kill()
	patience := time.Minute + 10*p.Lease // without any change
	var last string
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		list, err := p.client.WorkItems(ctx, environment)
		if err != nil {
			return err
		}
		if list.Counts["queued"]+list.Counts["accepted"] == 0 {
			closed, err := p.allClosed(ctx)
			if err != nil {
				return err
			}
			if closed {
				break
			}
		}
		if now := fmt.Sprint(list.Counts); now != last {
			last, end = now, time.Now().Add(patience)
		}
		if time.Now().After(end) {
			return fmt.Errorf("no end of it: %v; the worker printed %s", list.Counts, p.worker.printed())
		}
	}
	if err := p.worker.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-p.worker.ended:
		return nil
	case <-time.After(time.Minute):
		return errors.New("the worker does not end: " + p.worker.printed())
	}
}
