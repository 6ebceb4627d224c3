package execute

import (
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

const (
	// helperTime is how long a helper may take to kill its command. One that
	// was suspended, by the command for one, is killed itself then.
	helperTime = 3 * time.Second

	// wakeTime is how long a helper may stay suspended that has a command.
	wakeTime = time.Second
)

// kept is a command that runs under a helper.
type kept struct {
	keeper *Keeper
	helper *helper
	began  uint64 // when it was told to start, in the kernel's ticks

	ended  chan struct{} // the command's end is known, or it is that it cannot be
	status status
	err    error
	left   int

	gone  chan struct{} // nothing of it is left, and the helper is not its own any more
	alive bool          // something that it started is left all the same

	mu      sync.Mutex
	ordered bool // it was to end
	over    bool // the helper may have another command
	hurry   *time.Timer
}

// follow takes in what the helper reports until nothing of the command is left,
// and ends what it leaves if it was killed.
func (p *kept) follow() {
	known, done := p.listen()
	switch asNew := p.letGo() && p.left == 0; {
	case !done:
		p.abandon()
	case asNew:
		p.keeper.keepIdle(p.helper)
	default:
		p.keeper.bury(p.helper)
	}
	if !known {
		p.err = errHelperKilled
		close(p.ended)
	}
	close(p.gone)
}

// listen takes in what the helper reports, to Done or to its end. A command may
// have suspended it: it is woken again and again.
func (p *kept) listen() (known, done bool) {
	awake := time.NewTicker(wakeTime)
	defer awake.Stop()
	for {
		var r report
		some := true
		select {
		case <-awake.C:
			p.helper.wake()
			continue
		case r, some = <-p.helper.reports:
		}
		switch {
		case !some:
			return known, false
		case r.word == keep.Ended:
			ws, _ := strconv.Atoi(r.of)
			p.status, known = statusOfWait(syscall.WaitStatus(ws)), true
			// What it left is told right after, if anything is.
			close(p.ended)
		case r.word == keep.Left:
			p.left, _ = strconv.Atoi(r.of)
		case r.word == keep.Done:
			return known, true
		}
	}
}

// letGo sees to it that nothing more is done to the helper on behalf of this
// command, and reports whether nothing was.
func (p *kept) letGo() (untouched bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.hurry != nil {
		p.hurry.Stop()
	}
	return !p.ordered
}

// abandon ends a helper that is of no use any more, and what it leaves. It reports
// whether the helper had something to say still: that it was starting the command.
func (p *kept) abandon() (starting bool) {
	process := p.helper.cmd.Process
	_ = process.Kill()
	// Until it is waited for nobody else gets its number.
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	for r := range p.helper.reports {
		starting = starting || r.word == keep.Starting
	}
	p.alive = !p.keeper.endOrphans(process.Pid, p.began)
	p.keeper.bury(p.helper)
	return starting
}

func (p *kept) wait() (status, error) {
	<-p.ended
	return p.status, p.err
}

func (p *kept) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order(keep.Ask)
}

// kill has the helper kill everything, and kills it if it does not in time: then
// its own end makes what it kept ours.
func (p *kept) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hurry == nil && !p.over {
		p.hurry = time.AfterFunc(helperTime, p.killHelper)
	}
	p.order(keep.Kill)
}

func (p *kept) killHelper() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = p.helper.cmd.Process.Kill()
	}
}

// order sends an order for as long as the helper is this command's. p.mu is held.
func (p *kept) order(o byte) {
	if !p.over {
		p.ordered = true
		p.helper.order(o)
	}
}

// sweep waits for the helper, which ends by itself what the command left.
func (p *kept) sweep(grace time.Duration) leftover {
	if !p.isGone(grace + goneTime) {
		p.kill()
		if !p.isGone(helperTime + mostTime + goneTime) {
			return leftover{some: true, alive: true}
		}
	}
	return leftover{some: p.left > 0 || p.alive, count: p.left, alive: p.alive}
}

func (p *kept) isGone(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.gone:
		return true
	case <-timer.C:
		return false
	}
}
