package execute

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
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
)

// kept is a command that runs under a helper.
type kept struct {
	keeper  *Keeper
	helper  *exec.Cmd
	began   uint64   // the helper's start, in the kernel's ticks
	orders  *os.File // the lifeline: to close it is an order, too
	reports *os.File

	ended  chan struct{} // the command's end is known, or it is that it cannot be
	status status
	err    error
	left   int

	gone  chan struct{} // the helper has ended
	alive bool          // and something it kept has not

	once  sync.Once
	hurry *time.Timer
}

// start starts cmd under a helper. Its error is of a command that did not start,
// unless it is errMayHaveRun.
func (k *Keeper) start(cmd *exec.Cmd, grace time.Duration, confined *confinement) (process, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	helper, orders, reports, err := k.launch(cmd)
	if err != nil {
		return nil, err
	}
	p := &kept{keeper: k, helper: helper, orders: orders, reports: reports,
		ended: make(chan struct{}), gone: make(chan struct{})}
	if self, ok := keep.Look(helper.Process.Pid); ok {
		p.began = self.Start
	}
	order := keep.Command{Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(), Grace: grace, LeftGrace: min(grace, leftGrace)}
	if confined != nil {
		order.Confine, order.Writable = true, confined.writable
	}
	lines := bufio.NewReader(reports)
	if err := p.begin(order.Encode(), lines); err != nil {
		p.abandon()
		return nil, err
	}
	go p.follow(lines)
	return p, nil
}

// begin tells the helper what to start, and waits until it says that it did.
func (p *kept) begin(order []byte, lines *bufio.Reader) error {
	then := time.Now().Add(startTime)
	_ = p.orders.SetWriteDeadline(then)
	_ = p.reports.SetReadDeadline(then)
	if _, err := p.orders.Write(order); err != nil {
		return fmt.Errorf("tell the helper what to start: %w", err)
	}
	for starting := false; ; {
		word, of, err := readReport(lines)
		switch {
		case err != nil && starting:
			return errMayHaveRun
		case err != nil:
			return fmt.Errorf("the helper %s did not start it: %w", p.keeper.program, err)
		case word == keep.Starting:
			starting = true
		case word == keep.Started:
			_ = p.reports.SetReadDeadline(time.Time{})
			return nil
		case word == keep.Failed:
			errno, _ := strconv.Atoi(of)
			return &fs.PathError{Op: "start", Path: p.helper.Path, Err: syscall.Errno(errno)}
		case word == keep.Unconfined:
			return &unconfined{of}
		}
	}
}

func readReport(lines *bufio.Reader) (word, of string, err error) {
	line, err := lines.ReadString('\n')
	word, of, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	return word, of, err
}

// follow takes in what the helper reports until it is gone, and ends what it
// leaves if it was killed.
func (p *kept) follow(lines *bufio.Reader) {
	known, done := false, false
	for !done {
		word, of, err := readReport(lines)
		if err != nil {
			break
		}
		switch word {
		case keep.Ended:
			ws, _ := strconv.Atoi(of)
			p.status, known = statusOfWait(syscall.WaitStatus(ws)), true
			// What it left is told right after, if anything is.
			close(p.ended)
		case keep.Left:
			p.left, _ = strconv.Atoi(of)
		case keep.Done:
			done = true
		}
	}
	if !done {
		p.abandon()
	} else {
		p.close()
	}
	if !known {
		p.err = errHelperKilled
		close(p.ended)
	}
	close(p.gone)
}

// abandon ends a helper that is of no use any more, and what it leaves.
func (p *kept) abandon() {
	_ = p.helper.Process.Kill()
	// Until it is waited for nobody else gets its number.
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, p.helper.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.alive = !p.keeper.endOrphans(p.helper.Process.Pid, p.began)
	p.close()
}

func (p *kept) close() {
	p.keeper.bury(p.helper)
	p.once.Do(func() {})
	if p.hurry != nil {
		p.hurry.Stop()
	}
	p.orders.Close()
	p.reports.Close()
}

func (p *kept) wait() (status, error) {
	<-p.ended
	return p.status, p.err
}

func (p *kept) ask() { p.order(keep.Ask) }

// kill has the helper kill everything, and kills it if it does not in time: then
// its own end makes what it kept ours.
func (p *kept) kill() {
	p.once.Do(func() {
		p.hurry = time.AfterFunc(helperTime, func() { _ = p.helper.Process.Kill() })
	})
	p.order(keep.Kill)
}

// order sends an order. The command can suspend its helper, so it is woken.
func (p *kept) order(o byte) {
	_ = p.helper.Process.Signal(unix.SIGCONT)
	_ = p.orders.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = p.orders.Write([]byte{o}) // fails only if the helper is gone
}

// sweep waits for the helper, which ends by itself what the command left.
func (p *kept) sweep(grace time.Duration) leftover {
	if !p.isGone(grace + goneTime) {
		p.kill()
		if !p.isGone(helperTime + orphanTime + goneTime) {
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
