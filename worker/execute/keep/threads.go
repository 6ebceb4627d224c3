//go:build linux

package keep

import (
	"encoding/binary"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// Environ is the helper's environment. Nothing of it is the command's.
//
// It is about Go's runtime, which must not need a new thread while a command
// runs: that may use up all processes there may be. It needs some to collect
// garbage, which is done between commands (tidy) unless much had to be killed for
// long, and the more of them the more processors it has.
var Environ = []string{"GOGC=off", "GOMEMLIMIT=64MiB", "GOMAXPROCS=2"}

// Slack is by how much the timers of a helper may be late, to be set before it
// starts, for all of its threads. Go's runtime watches itself from a thread that
// wakes up every 20 µs for a while after anything has happened: that would take
// more of a processor than all that a helper does. There is nothing to watch, but
// a helper's own start takes as much longer at worst.
const Slack = time.Millisecond

// usualSlack is the kernel's for whoever sets none.
const usualSlack = 50 * time.Microsecond

// setSlack is of this thread and the processes that it starts.
func setSlack(d time.Duration) { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }

// spareThreads are for what Go's runtime does besides. It may want one for each
// processor, and for a moment others in place of those that are about to wait.
const spareThreads = 6

// newKeeper returns a keeper, when all of its threads are there. It is called on
// the thread that starts commands.
func newKeeper() (*keeper, error) {
	left, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	k := &keeper{self: unix.Getpid(), left: left}
	come, goOn := make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		setSlack(usualSlack)
		come <- true
		k.listen()
	}()
	for range spareThreads {
		go func() {
			runtime.LockOSThread() // so that each has one, which stays
			come <- true
			<-goOn
			runtime.UnlockOSThread()
		}()
	}
	for range spareThreads + 1 {
		<-come
	}
	close(goOn)
	runtime.GC() // what it starts once is there then
	return k, nil
}

// mostUsed is how many bytes of commands a helper takes in before it tidies up.
const mostUsed = 1 << 20

// tidy gives back what commands used, while there is none.
func (k *keeper) tidy(used int) {
	if k.used += used; k.used > mostUsed {
		debug.FreeOSMemory()
		k.used = 0
	}
}

// raise has an eventfd be read from.
func raise(fd int) {
	one := binary.NativeEndian.AppendUint64(nil, 1)
	for {
		if _, err := unix.Write(fd, one); err != unix.EINTR {
			return
		}
	}
}

// lower takes that back.
func lower(fd int) {
	var count [8]byte
	_, _ = pipe(fd).Read(count[:])
}
