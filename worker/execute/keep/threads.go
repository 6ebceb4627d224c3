//go:build linux

package keep

import (
	"encoding/binary"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Environ is the helper's environment. Nothing of it is the command's.
//
// It is about Go's runtime, which must not need a new thread while a command
// runs: that may use up all processes there may be. A collection of garbage might
// need some, so that there is none, unless much had to be killed for long; and so
// might a processor (as Go has them) that a thread gives up while it waits, if
// there were none to spare.
var Environ = []string{"GOGC=off", "GOMEMLIMIT=64MiB", "GOMAXPROCS=4"}

// Slack is by how much the timers of a helper may be late, to be set before it
// starts, for all of its threads. Go's runtime watches itself from a thread that
// wakes up every 20 µs for a while after anything has happened: that would take
// more of a processor than all that a helper does. There is nothing to watch, but
// a helper's own start takes as much longer at worst.
const Slack = 4 * time.Millisecond

// usualSlack is the kernel's for whoever sets none.
const usualSlack = 50 * time.Microsecond

// setSlack is of this thread and the processes that it starts.
func setSlack(d time.Duration) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }

// spareThreads are for what Go's runtime wants to do besides: to see who could
// take over a processor that was given up.
const spareThreads = 2

// newKeeper returns a keeper, when all of its threads are there.
func newKeeper() (*keeper, error) {
	left, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	come, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	goOn, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	defer unix.Close(come)
	k := &keeper{self: unix.Getpid(), left: left}
	go func() {
		runtime.LockOSThread()
		setSlack(usualSlack)
		raise(come)
		k.listen()
	}()
	// Each waits in the kernel for the others, so that each has its own thread;
	// a thread stays when its goroutine has ended.
	for range spareThreads {
		go func() {
			raise(come)
			lower(goOn)
		}()
	}
	for range spareThreads + 1 {
		lower(come)
	}
	for range spareThreads {
		raise(goOn)
	}
	return k, nil
}

// raise and lower are of an eventfd; lower waits until it was raised.
func raise(fd int) {
	one := binary.NativeEndian.AppendUint64(nil, 1)
	for {
		if _, err := unix.Write(fd, one); err != unix.EINTR {
			return
		}
	}
}

func lower(fd int) {
	var count [8]byte
	_, _ = pipe(fd).Read(count[:])
}
