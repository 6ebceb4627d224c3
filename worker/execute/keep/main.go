//go:build linux

// Package keep is the helper that a command runs under on Linux (DESIGN.md
// "Running a tool call"). It is a subreaper: whatever descends from the command
// stays below it, also what called setsid or forked twice. It watches a lifeline
// pipe and ends all of it when it is told to, or when the pipe closes because
// Countersign is gone.
//
// It imports little, because its start is part of every command's.
package keep

import (
	"errors"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is argument 0 of a helper: the program beside Countersign's own, or its
// own again.
const Name = "countersign-keeper"

// The descriptors that a helper is started with, besides the command's own three.
const (
	LifelineFD = 3 // from it come the command and then orders
	ReportFD   = 4 // to it go reports
)

// Orders are single bytes. The end of the lifeline is one too: Ask.
const (
	Ask  = 't' // ask all to end, and kill what is left after the grace
	Kill = 'k' // kill all
)

// Reports are lines: one of these words and, after a space, what it says of.
const (
	Starting   = "starting"   // from here on the command may have an effect
	Started    = "started"    // its pid
	Failed     = "failed"     // it was not started: errno
	Unconfined = "unconfined" // it was not started: why it could not be confined
	Ended      = "ended"      // the command itself ended: wait status
	Left       = "left"       // how many processes it left running
	Done       = "done"       // none is left
)

// Main is the helper's whole life. It returns an exit code.
func Main() int {
	keepToItself()
	if err := guard(); err != nil {
		return 3
	}
	lifeline := os.NewFile(LifelineFD, "lifeline")
	c, err := readCommand(lifeline)
	if err != nil {
		return 2 // nothing was started, and whoever holds the other end sees that
	}
	k := &keeper{command: c, reports: os.NewFile(ReportFD, "reports"), self: os.Getpid()}
	orders := make(chan byte)
	go listen(lifeline, orders)
	pid, err := k.start()
	letGoOfOutput()
	if err != nil {
		return 1
	}
	k.watch(pid, orders)
	return 0
}

// keepToItself sees to it that a command gets its own three descriptors and no
// other, whatever this process was started with.
func keepToItself() {
	if unix.CloseRange(LifelineFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		unix.CloseOnExec(LifelineFD)
		unix.CloseOnExec(ReportFD)
	}
}

// guard takes the helper out of reach and makes it responsible. Nobody of this
// user may look into it; signals meant for others do not end it. Because they
// are caught, not ignored, what it starts finds all of them at their defaults.
func guard() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unblock(); err != nil {
		return err
	}
	signal.Notify(make(chan os.Signal, 1))
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// unblock begins anew with no signal blocked, if one is: the Go runtime restores
// in children the mask that it found at its own start.
func unblock() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil || old == none {
		return err
	}
	// The pipes go along.
	for _, fd := range []uintptr{LifelineFD, ReportFD} {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// listen passes on orders as they come. Without the other end there is one more.
func listen(lifeline io.Reader, orders chan<- byte) {
	var order [1]byte
	for {
		if _, err := lifeline.Read(order[:]); err != nil {
			orders <- Ask
			return
		}
		orders <- order[0]
	}
}

// start starts the command in a process group of its own.
func (k *keeper) start() (pid int, err error) {
	type result struct {
		pid int
		err error
	}
	started := make(chan result)
	// On a thread that lives as long as the helper: the command is confined as
	// its thread is, and it is killed when its thread ends.
	go func() {
		runtime.LockOSThread()
		if k.command.Confine {
			if err := confine(k.command.Writable); err != nil {
				k.report(Unconfined, err.Error())
				started <- result{err: err}
				return
			}
		}
		k.report(Starting, "")
		pid, err := syscall.ForkExec(k.command.Path, k.command.Args, &syscall.ProcAttr{
			Env:   k.command.Env,
			Files: []uintptr{0, 1, 2},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			k.report(Failed, strconv.Itoa(int(errno)))
		} else if err != nil {
			k.report(Failed, strconv.Itoa(int(syscall.EINVAL)))
		} else {
			k.report(Started, strconv.Itoa(pid))
		}
		started <- result{pid, err}
		select {}
	}()
	r := <-started
	return r.pid, r.err
}

// letGoOfOutput closes the command's descriptors here: its output ends with it.
func letGoOfOutput() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			unix.Close(fd)
		}
	}
	_ = unix.Chdir("/")
}

// report says something to Countersign. If that is gone nobody misses it.
func (k *keeper) report(word, of string) {
	line := word + "\n"
	if of != "" {
		line = word + " " + of + "\n"
	}
	_, _ = k.reports.WriteString(line)
}
