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
//
// What comes before the start of the command is done by one thread, without
// waking others: that takes about a millisecond less. The thread stays for as
// long as the helper lives, because the command is killed when it ends.
func Main() int {
	runtime.LockOSThread()
	keepToItself()
	if len(os.Args) > 1 && os.Args[1] == confiner {
		return becomeConfined()
	}
	if err := guard(); err != nil {
		return 3
	}
	c, err := readCommand(pipe(LifelineFD))
	if err != nil {
		return 2 // nothing was started, and whoever holds the other end sees that
	}
	pid, err := start(c)
	letGoOfOutput()
	if err != nil {
		return 1
	}
	catchSignals()
	done := make(chan struct{})
	go func() {
		k := &keeper{command: c, self: unix.Getpid()}
		k.watch(pid)
		close(done)
	}()
	<-done
	return 0
}

// pipe is a descriptor that is read without the runtime's help.
type pipe int

func (fd pipe) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(fd), p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// keepToItself sees to it that a command gets its own three descriptors and no
// other, whatever this process was started with.
func keepToItself() {
	if unix.CloseRange(LifelineFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		unix.CloseOnExec(LifelineFD)
		unix.CloseOnExec(ReportFD)
	}
}

// guard takes the helper out of reach and makes it responsible: nobody of this
// user may look into it. What it starts finds all signals at their defaults,
// because those that are caught here are so there; the Go runtime catches all
// but the two that it finds ignored.
func guard() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unblock(); err != nil {
		return err
	}
	if signal.Ignored(unix.SIGHUP) || signal.Ignored(unix.SIGINT) {
		catchSignals()
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// catchSignals keeps signals that are meant for many from ending the helper.
func catchSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTSTP)
}

// unblock begins anew with no signal blocked, if one is: the Go runtime restores
// in children the mask that it found at its own start.
func unblock() error {
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

// start starts the command in a process group of its own.
func start(c Command) (pid int, err error) {
	report(Starting, "")
	if c.Confine {
		pid, err = startConfined(c)
	} else {
		pid, err = fork(c.Path, c.Args, c.Env, 0, 1, 2)
	}
	var u *unconfined
	var errno syscall.Errno
	switch {
	case err == nil:
		report(Started, strconv.Itoa(pid))
	case errors.As(err, &u):
		report(Unconfined, u.why)
	case errors.As(err, &errno):
		report(Failed, strconv.Itoa(int(errno)))
	default:
		report(Failed, strconv.Itoa(int(syscall.EINVAL)))
	}
	return pid, err
}

func fork(path string, args, env []string, files ...uintptr) (pid int, err error) {
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}})
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
func report(word, of string) {
	line := word + "\n"
	if of != "" {
		line = word + " " + of + "\n"
	}
	for {
		if _, err := unix.Write(ReportFD, []byte(line)); err != unix.EINTR {
			return
		}
	}
}
