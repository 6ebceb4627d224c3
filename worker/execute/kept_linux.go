package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

const (
	// startTime is how long a helper may take to start a command.
	startTime = time.Minute

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

// start starts cmd under a helper. Its error is of a command that did not start,
// unless it is errMayHaveRun.
func (k *Keeper) start(cmd *exec.Cmd, grace time.Duration, confined *confinement) (process, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	order := keep.Command{Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(), Grace: grace, LeftGrace: min(grace, leftGrace)}
	if confined != nil {
		order.Confine, order.Writable = true, confined.writable
	}
	files, close, err := handed(cmd)
	if err != nil {
		return nil, err
	}
	defer close()
	encoded := order.Encode()
	for {
		h, err := k.hire()
		if err != nil {
			return nil, err
		}
		p := &kept{keeper: k, helper: h, began: keep.Now(), ended: make(chan struct{}), gone: make(chan struct{})}
		started, err := p.begin(cmd.Path, encoded, files)
		if err == nil {
			go p.follow()
			return p, nil
		}
		starting := p.abandon() || started
		switch {
		case starting && !answered(err):
			return nil, errMayHaveRun
		case h.reused && !answered(err):
			continue // it ended while it waited: nothing was started
		}
		return nil, err
	}
}

// handed returns what goes to the helper with a command: its three descriptors
// and its directory.
func handed(cmd *exec.Cmd) (files [keep.Handed]int, close func(), err error) {
	in, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return files, nil, &fs.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	dir, err := unix.Open(cmd.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(in)
		return files, nil, fmt.Errorf("its directory %s: %v", cmd.Dir, err) // whatever it is, the shell is there
	}
	files = [keep.Handed]int{in, int(cmd.Stdout.(*os.File).Fd()), int(cmd.Stderr.(*os.File).Fd()), dir}
	for _, fd := range files[1:3] {
		_ = unix.SetNonblock(fd, false) // what a program expects
	}
	return files, func() { unix.Close(in); unix.Close(dir) }, nil
}

// begin tells the helper what to start, and waits until it says that it did. With
// an error it reports whether the helper had begun to.
func (p *kept) begin(path string, order []byte, files [keep.Handed]int) (starting bool, err error) {
	if err := p.helper.hand(order, files); err != nil {
		return false, fmt.Errorf("tell the helper what to start: %w", err)
	}
	late := time.NewTimer(startTime)
	defer late.Stop()
	for {
		select {
		case r, some := <-p.helper.reports:
			switch {
			case !some:
				return starting, fmt.Errorf("the helper %s did not start it: it ended", p.keeper.program)
			case r.word == keep.Starting:
				starting = true
			case r.word == keep.Started:
				return true, nil
			case r.word == keep.Failed:
				errno, _ := strconv.Atoi(r.of)
				return true, &failed{&fs.PathError{Op: "start", Path: path, Err: syscall.Errno(errno)}}
			case r.word == keep.Unconfined:
				return true, &failed{&unconfined{r.of}}
			}
		case <-late.C:
			return starting, fmt.Errorf("the helper %s did not start it: it does not answer", p.keeper.program)
		}
	}
}

// failed is a start of which the helper itself says that it failed.
type failed struct{ error }

func (f *failed) Unwrap() error { return f.error }

func answered(err error) bool {
	var f *failed
	return errors.As(err, &f)
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
