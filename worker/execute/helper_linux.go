package execute

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

const (
	// maxIdle is how many helpers wait for another command at most, and idleTime
	// how long. One takes about 4 MB.
	maxIdle  = 8
	idleTime = time.Minute
)

// helper is a process that keeps one command at a time.
type helper struct {
	cmd      *exec.Cmd
	lifeline *os.File    // a socket; to close it is an order, too
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
	lifeline, orders, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer lifeline.Close()
	from, to, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer to.Close()
	// Its environment is empty, so there is nothing to see in it and nothing in
	// it acts on the helper. A session of its own keeps it and the command from
	// our terminal, and tells all that descends from it from what does not.
	//
	// A suspended helper does not see its lifeline close: the kernel wakes it when
	// we are gone. It also does so whenever the thread ends that the helper is a
	// child of, which is nothing to a helper that runs. Two things remain, since
	// nobody is left to act then: what a command started that suspends its helper
	// over and over goes on when we are killed; and so does what a command started
	// that kills its helper in just that moment, but for its first process, which
	// the kernel kills with the helper.
	h := &helper{lifeline: orders, reports: make(chan report, 5), // as many as there are of one command
		cmd: &exec.Cmd{Path: k.program, Args: []string{keep.Name}, Env: []string{}, Dir: "/",
			ExtraFiles:  []*os.File{lifeline, to},
			SysProcAttr: &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGCONT}}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := h.cmd.Start(); err != nil {
		orders.Close()
		from.Close()
		return nil, fmt.Errorf("start the helper %s: %v", k.program, err) // whatever it is, it is not the command's
	}
	k.live[h.cmd.Process.Pid] = true
	go func() {
		h.read(from)
		k.lost(h)
	}()
	return h, nil
}

// socketPair returns the two ends of a lifeline: the helper's, and ours.
func socketPair() (theirs, ours *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(ends[1], true) // a write can have a deadline then
	return os.NewFile(uintptr(ends[0]), "lifeline"), os.NewFile(uintptr(ends[1]), "lifeline"), nil
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
	_ = h.lifeline.SetWriteDeadline(deadline)
	conn, err := h.lifeline.SyscallConn()
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
		_, err = h.lifeline.Write(command)
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
