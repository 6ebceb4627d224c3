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
	CommandFD  = 3 // a stream socket: from it come commands
	ReportFD   = 4 // to it go reports
	LifelineFD = 5 // a pipe: from it come orders
)

// Run is the byte before a Command, and with it come four descriptors (Handed).
const Run = 'c'

// Orders are single bytes. The end of the lifeline is one too: Ask. An order is
// about the command before it, and no command comes after an order.
const (
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
	caught := make(chan bool)
	go func() {
		catchSignals() // which takes a millisecond for a thread of its own
		close(caught)
	}()
	<-caught
	files := openKernelFiles()
	born := files.stateNow()
	var k *keeper
	for {
		next, err := receive()
		if err != nil {
			return 2 // nothing was started, and whoever holds the other end sees that
		}
		if k == nil {
			if k, err = newKeeper(); err != nil {
				return 3
			}
		}
		if files.stateNow() != born {
			return 4 // something changed us: this command is for another helper
		}
		if Now() > next.command.Until {
			return 5 // whoever wanted it started does not any more
		}
		if asNew := k.keep(next); !asNew {
			return 0
		}
		k.tidy(next.size)
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
	if unix.CloseRange(CommandFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		for fd := CommandFD; fd <= LifelineFD; fd++ {
			unix.CloseOnExec(fd)
		}
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
	// What it was started with goes along.
	for fd := CommandFD; fd <= LifelineFD; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// start starts a command in a process group of its own.
func start(g given) (pid int, err error) {
	say(line(Starting, ""))
	defer g.letGo()
	c, files := g.command, g.files
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
		say(line(Started, strconv.Itoa(pid)))
	case errors.As(err, &u):
		say(line(Unconfined, u.why))
	case errors.As(err, &errno):
		say(line(Failed, strconv.Itoa(int(errno))))
	default:
		say(line(Failed, strconv.Itoa(int(syscall.EINVAL))))
	}
	return pid, err
}

func fork(path string, args, env []string, files ...uintptr) (pid int, err error) {
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}})
}

// line is a report of one word and what it says of, if anything.
func line(word, of string) string {
	if of != "" {
		word += " " + of
	}
	return word + "\n"
}

// say reports whole lines at once. If Countersign is gone nobody misses them.
func say(lines string) {
	for {
		if _, err := unix.Write(ReportFD, []byte(lines)); err != unix.EINTR {
			return
		}
	}
}
