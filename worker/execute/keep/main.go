//go:build linux

// Package keep is the helper that a command runs under on Linux (DESIGN.md
// "Running a tool call"). It is a subreaper: whatever descends from the command
// stays below it, also what called setsid or forked twice. It watches a lifeline
// and ends all of it when it is told to, or when the lifeline closes because
// Countersign is gone.
//
// A helper of which nothing is left but itself may be given another command: to
// start one takes longer than most commands run. What it was born with is what
// the next command gets, or it gets another helper (state.go).
//
// It imports little, because its start is part of a command's.
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

// The descriptors that a helper is started with, besides three that lead nowhere.
const (
	LifelineFD = 3 // a stream socket: from it come commands and orders
	ReportFD   = 4 // to it go reports
)

// Orders are single bytes. The end of the lifeline is one too: Ask. An order is
// about the command before it, and none where that has come to its end.
const (
	Run  = 'c' // with it come four descriptors (Handed), and after it a Command
	Ask  = 't' // ask all to end, and kill what is left after the grace
	Kill = 'k' // kill all
)

// Handed is how many descriptors come with a command: its own three, and the
// directory that it starts in.
const Handed = 4

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
// Commands are started by one thread, which stays for as long as the helper
// lives: a command is killed when the thread that started it ends.
func Main() int {
	runtime.LockOSThread()
	keepToItself()
	if len(os.Args) > 1 && os.Args[1] == confiner {
		return becomeConfined()
	}
	if err := guard(); err != nil {
		return 3
	}
	catchSignals()
	files := openKernelFiles()
	born := files.stateNow()
	first, err := receive() // without waking other threads: that takes about a millisecond less
	if err != nil || first.order != Run {
		return 2 // nothing was started, and whoever holds the other end sees that
	}
	orders := make(chan order)
	for next, isFirst := first, true; ; next, isFirst = nextCommand(orders), false {
		if next.order != Run {
			return 0
		}
		if files.stateNow() != born {
			return 4 // something changed us: this command is for another helper
		}
		if Now() > next.command.Until {
			return 5 // whoever wanted it started does not any more
		}
		pid, err := start(next)
		next.letGo()
		if err != nil {
			return 1
		}
		if isFirst {
			go listen(orders)
		}
		done := make(chan bool)
		go func() {
			k := &keeper{command: next.command, self: unix.Getpid(), orders: orders}
			done <- k.watch(pid)
		}()
		if alone := <-done; !alone {
			return 0
		}
	}
}

// nextCommand waits for a command, or for the end of the lifeline. Orders come
// late for a command that has ended.
func nextCommand(orders <-chan order) order {
	for {
		if o := <-orders; o.order == Run || o.cut {
			return o
		}
	}
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
// user may look into it.
func guard() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unblock(); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// catchSignals keeps signals from ending or suspending the helper, whoever sends
// them: its first command can as soon as it runs. What is started finds them at
// their defaults, because what is caught here is so there; to ignore them would
// have it ignore them, too.
//
// SIGKILL and SIGSTOP cannot be caught. The others left out do nothing to a
// process and would only wake it, or are the Go runtime's own, which also drops
// real-time signals by itself: all but the first three, which the C libraries keep
// to themselves and which are as good as SIGKILL here.
func catchSignals() {
	var caught []os.Signal
	for s := unix.SIGHUP; s <= unix.SIGSYS; s++ {
		switch s {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH:
		default:
			caught = append(caught, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), caught...)
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

// start starts a command in a process group of its own.
func start(o order) (pid int, err error) {
	report(Starting, "")
	c, files := o.command, o.files
	err = unix.Fchdir(files[Handed-1])
	switch {
	case err != nil:
	case c.Confine:
		pid, err = startConfined(c, uintptr(files[0]), uintptr(files[1]), uintptr(files[2]))
	default:
		pid, err = fork(c.Path, c.Args, c.Env, uintptr(files[0]), uintptr(files[1]), uintptr(files[2]))
	}
	_ = unix.Chdir("/") // the directory is the command's to remove
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

// report says something to Countersign.
func report(word, of string) { say(line(word, of)) }

func line(word, of string) string {
	if of != "" {
		word += " " + of
	}
	return word + "\n"
}

// say writes whole lines at once. If Countersign is gone nobody misses them.
func say(lines string) {
	for {
		if _, err := unix.Write(ReportFD, []byte(lines)); err != unix.EINTR {
			return
		}
	}
}
