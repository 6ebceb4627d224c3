//go:build linux

package keep

import (
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// pause is between two attempts to kill what is left. It grows up to longPause:
// what a kill does not end hangs in the kernel or belongs to another user.
const (
	pause     = time.Millisecond
	longPause = time.Second
)

// keeper keeps one command after the other, and all that descends from it. Two
// threads do: one starts the command and waits for what ends (keep), the other
// ends what is to be ended (listen). A command may use up all processes that
// there may be, so that both are there before it starts, and none is needed after.
type keeper struct {
	self int

	// The command's, set before it starts.
	grace, leftGrace atomic.Int64

	starting atomic.Bool // it may run, and not be a child yet
	ordered  atomic.Bool // it was told to end
	left     int         // an eventfd: it ended and left something, which is to end

	used int // of commands since it was tidied up, in bytes
}

// keep starts a command and returns when nothing of it is left. No child left
// means no descendant left: a process whose parent ends becomes ours. It says
// whether the command ended alone and unasked: then this helper is as good as new.
func (k *keeper) keep(g given) (asNew bool) {
	k.grace.Store(int64(g.command.Grace))
	k.leftGrace.Store(int64(g.command.LeftGrace))
	setSlack(g.command.TimerSlack)
	k.starting.Store(true)
	if k.ordered.Load() {
		g.letGo()
		return false // Countersign is gone
	}
	command, err := start(g)
	k.starting.Store(false)
	if err != nil {
		return false
	}
	asNew = true
	for ended := false; ; {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			say(line(Done, ""))
			return asNew && !k.ordered.Load()
		case pid == command && !ended:
			ended = true
			report := line(Ended, strconv.Itoa(int(status)))
			if childless() {
				say(report + line(Done, ""))
				return !k.ordered.Load()
			}
			say(report)
			if left := k.living(); left > 0 {
				asNew = false
				k.endLeft(left)
			}
		}
	}
}

// endLeft has what the command left running ended.
func (k *keeper) endLeft(count int) {
	if !k.ordered.Load() {
		say(line(Left, strconv.Itoa(count)))
	}
	raise(k.left)
}

// listen ends what is to be ended, whenever it is told to.
func (k *keeper) listen() {
	var (
		next time.Time // when all is killed (again)
		wait = pause
		fds  = []unix.PollFd{{Fd: LifelineFD, Events: unix.POLLIN}, {Fd: int32(k.left), Events: unix.POLLIN}}
	)
	killBy := func(grace time.Duration) {
		if at := time.Now().Add(grace); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for {
		timeout := -1
		if !next.IsZero() {
			timeout = int((min(max(0, time.Until(next)), time.Hour) + time.Millisecond - 1) / time.Millisecond)
		}
		if _, err := unix.Poll(fds, timeout); err != nil {
			fds[0].Revents, fds[1].Revents = 0, 0 // interrupted
		}
		if fds[0].Revents != 0 {
			order, some := nextOrder()
			if !some {
				fds[0].Fd = -1
			}
			asked := k.ordered.Swap(true)
			for k.starting.Load() { // what is not there yet cannot be asked
				_, _ = unix.Poll(nil, 1)
			}
			_ = unix.Shutdown(CommandFD, unix.SHUT_RD)
			if order == Kill {
				killBy(0)
			} else if !asked {
				k.ask()
				killBy(time.Duration(k.grace.Load()))
			}
		}
		if fds[1].Revents != 0 {
			lower(k.left)
			k.ask()
			killBy(time.Duration(k.leftGrace.Load()))
		}
		if !next.IsZero() && !time.Now().Before(next) {
			KillAll(k.isChild)
			next = time.Now().Add(wait)
			wait = min(2*wait, longPause)
		}
	}
}

// nextOrder reads an order, the last one when the lifeline has ended.
func nextOrder() (order byte, some bool) {
	var letter [1]byte
	if n, err := pipe(LifelineFD).Read(letter[:]); n == 0 || err != nil {
		return Ask, false
	}
	return letter[0], true
}

// ask asks all that runs to end, suspended processes too.
func (k *keeper) ask() {
	all := k.all()
	SignalAll(all, unix.SIGTERM)
	SignalAll(all, unix.SIGCONT)
}

// all returns what descends from the helper.
func (k *keeper) all() []Proc {
	return Below(Procs(), k.isChild)
}

func (k *keeper) isChild(p Proc) bool { return p.Parent == k.self }

// living counts all without the dead.
func (k *keeper) living() (count int) {
	for _, p := range k.all() {
		if !p.Dead {
			count++
		}
	}
	return count
}

// childless says that there is no child, dead or alive, and so no descendant.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}
