package execute

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

const (
	// maxIdle is how many helpers wait for another command at most, and idleTime
	// how long. One takes 3 to 8 MB.
	maxIdle  = 8
	idleTime = time.Minute
)

// helper is a process that keeps one command at a time.
type helper struct {
	cmd      *exec.Cmd
	commands *os.File    // a socket
	lifeline *os.File    // a pipe, for orders; to close it is one, too
	reports  chan report // closed when it is gone
	reused   bool        // it has kept a command before
	rest     *time.Timer // ends it while it is idle
}

// report is one line of what a helper says.
type report struct{ word, of string }

// hire returns a helper without a command: one that waits for it, or a new one.
func (k *Keeper) hire() (*helper, error) {
	k.mu.Lock()
	if last := len(k.idle) - 1; last >= 0 {
		h := k.idle[last]
		k.idle = k.idle[:last]
		k.mu.Unlock()
		h.rest.Stop()
		h.reused = true
		return h, nil
	}
	k.mu.Unlock()
	return k.launch()
}

// launch starts a helper.
func (k *Keeper) launch() (*helper, error) {
	theirs, ours, err := connections()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	// Its environment is its own, so there is nothing to see in it and nothing of
	// ours acts on the helper. A session of its own keeps it and the command from
	// our terminal, and tells all that descends from it from what does not.
	//
	// A suspended helper does not see its lifeline close: the kernel wakes it when
	// we are gone. It also does so whenever the thread ends that the helper is a
	// child of, which is nothing to a helper that runs. Two things remain, since
	// nobody is left to act then: what a command started that suspends its helper
	// over and over goes on when we are killed; and so does what a command started
	// that kills its helper in just that moment, but for its first process, which
	// the kernel kills with the helper.
	h := &helper{commands: ours.commands, lifeline: ours.lifeline,
		reports: make(chan report, 5), // as many as there are of one command
		cmd: &exec.Cmd{Path: k.program, Args: []string{keep.Name}, Env: keep.Environ, Dir: "/",
			ExtraFiles:  theirs,
			SysProcAttr: &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGCONT}}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := startQuiet(h.cmd); err != nil {
		ours.close()
		return nil, fmt.Errorf("start the helper %s: %v", k.program, err) // whatever it is, it is not the command's
	}
	k.live[h.cmd.Process.Pid] = true
	go func() {
		h.read(ours.reports)
		k.lost(h)
	}()
	return h, nil
}

// startQuiet starts a helper with timers that may be late (keep.Slack).
func startQuiet(helper *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := timerSlack()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(keep.Slack), 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(own), 0, 0, 0) }()
	return helper.Start()
}

// ourEnds are those of what leads to a helper.
type ourEnds struct{ commands, reports, lifeline *os.File }

func (e ourEnds) close() {
	for _, f := range []*os.File{e.commands, e.reports, e.lifeline} {
		f.Close() // nothing to one that is nil
	}
}

// connections makes what a helper is started with, in the order of its
// descriptors, and our ends of it.
func connections() (theirs []*os.File, ours ourEnds, err error) {
	defer func() {
		if err != nil {
			for _, f := range theirs {
				f.Close()
			}
			ours.close()
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, ours, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(pair[1], true) // a write can have a deadline then
	theirs = append(theirs, os.NewFile(uintptr(pair[0]), "commands"))
	ours.commands = os.NewFile(uintptr(pair[1]), "commands")
	from, to, err := os.Pipe()
	if err != nil {
		return theirs, ours, err
	}
	theirs, ours.reports = append(theirs, to), from
	if from, to, err = os.Pipe(); err != nil {
		return theirs, ours, err
	}
	return append(theirs, from), ourEnds{ours.commands, ours.reports, to}, nil
}

// read passes on what the helper reports, to its end.
func (h *helper) read(from *os.File) {
	defer from.Close()
	defer close(h.reports)
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		word, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		h.reports <- report{word, of}
	}
}

// keepIdle has a helper wait for another command, if there is room.
func (k *Keeper) keepIdle(h *helper) {
	k.mu.Lock()
	if len(k.idle) >= maxIdle {
		k.mu.Unlock()
		k.bury(h)
		return
	}
	h.rest = time.AfterFunc(idleTime, func() { k.lost(h) })
	k.idle = append(k.idle, h)
	k.mu.Unlock()
}

// lost ends a helper that is idle still: it ended, or was idle for long. One that
// has a command, or was dismissed, is others' business.
func (k *Keeper) lost(h *helper) {
	k.mu.Lock()
	for i, other := range k.idle {
		if other == h {
			k.idle = append(k.idle[:i], k.idle[i+1:]...)
			k.mu.Unlock()
			h.rest.Stop()
			k.bury(h)
			return
		}
	}
	k.mu.Unlock()
}

// hand gives a command to the helper, with the descriptors that are the command's:
// its own three, and the directory that it starts in. ctx is only asked for its
// deadline: what was handed over in vain is for the caller to see to.
func (h *helper) hand(ctx context.Context, command []byte, files [keep.Handed]int) error {
	h.wake()
	deadline, _ := ctx.Deadline()
	_ = h.commands.SetWriteDeadline(deadline)
	conn, err := h.commands.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(files[:]...)
	var sent error
	err = conn.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte{keep.Run}, rights, nil, unix.MSG_NOSIGNAL)
		return sent != unix.EAGAIN && sent != unix.EINTR
	})
	if err == nil {
		err = sent
	}
	if err == nil {
		_, err = h.commands.Write(command)
	}
	return err
}

// order sends an order.
func (h *helper) order(order byte) {
	h.wake()
	_ = h.lifeline.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = h.lifeline.Write([]byte{order}) // fails only if the helper is gone
}

// wake goes on with a helper that was suspended, by its command for one. It is
// nothing to one that was not.
func (h *helper) wake() { _ = h.cmd.Process.Signal(unix.SIGCONT) }
