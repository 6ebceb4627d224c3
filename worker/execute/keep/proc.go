//go:build linux

package keep

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a process as /proc shows it. Its number may be given to another once
// it is gone; number and start together may not.
type Proc struct {
	PID, Parent, Group, Session int
	Start                       uint64 // clock ticks since boot
	Dead                        bool   // has ended and waits to be waited for
}

// Walk shows each process of this machine as it comes to it, in the order of
// their numbers. They come and go meanwhile.
func Walk(see func(Proc)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(32)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if p, ok := Look(pid); ok {
					see(p)
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// perSecond is how many ticks a second has to programs, whatever the kernel uses
// itself.
const perSecond = 100

// Ticks is how long d is in what a process's start is given in.
func Ticks(d time.Duration) uint64 { return uint64(d) / (1e9 / perSecond) }

// Now is the time in Ticks, since the machine booted. It goes on while it sleeps.
func Now() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return Ticks(time.Duration(now.Nano()))
}

// Procs returns the processes of this machine.
func Procs() (procs []Proc) {
	Walk(func(p Proc) { procs = append(procs, p) })
	return procs
}

// Look returns the process with a number, if there is one.
func Look(pid int) (p Proc, ok bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p, false
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return p, false
	}
	return parseStat(pid, string(buf[:n]))
}

// parseStat reads "pid (name) state ppid pgrp session …"; the name may have
// anything in it.
func parseStat(pid int, stat string) (p Proc, ok bool) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return p, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	start, err := strconv.ParseUint(f[19], 10, 64)
	// The first thread of a program may have ended before the others.
	dead := f[0] == "X" || f[0] == "Z" && number(17) <= 1
	return Proc{PID: pid, Parent: number(1), Group: number(2), Session: number(3), Start: start, Dead: dead}, err == nil
}

// Below returns the processes that isRoot names and all that descend from them.
func Below(procs []Proc, isRoot func(Proc) bool) []Proc {
	children := make(map[int][]Proc)
	var found []Proc
	for _, p := range procs {
		if isRoot(p) {
			found = append(found, p)
		} else {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	for i := 0; i < len(found); i++ { // found grows
		found = append(found, children[found[i].PID]...)
		delete(children, found[i].PID)
	}
	return found
}

// Signal sends a signal to p, and to no other process that has its number now.
func (p Proc) Signal(s unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil && err != unix.ENOSYS {
		return
	}
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if now, ok := Look(p.PID); !ok || now.Start != p.Start {
		return
	}
	if fd >= 0 {
		_ = unix.PidfdSendSignal(fd, s, nil, 0)
	} else {
		_ = unix.Kill(p.PID, s)
	}
}

// SignalAll sends a signal to all of procs, once to each: to their process groups,
// because the kernel signals a group at once, so that no fork in it slips
// through. No group but our own can have processes that do not descend from a
// helper, because a helper begins a session.
func SignalAll(procs []Proc, s unix.Signal) {
	own := unix.Getpgrp()
	done := make(map[int]bool)
	for _, p := range procs {
		switch now, there := Look(p.PID); {
		case !there || now.Start != p.Start || done[now.Group]:
		case now.Group <= 1 || now.Group == own:
			p.Signal(s)
		default:
			done[now.Group] = true
			_ = unix.Kill(-now.Group, s)
		}
	}
}

// freezeRounds bounds how often one attempt looks for new processes.
const freezeRounds = 64

// KillAll suspends the processes that isRoot names and all that descend from
// them, each as it is seen, until it sees none that is new; then it kills them.
// What is suspended cannot fork. Whoever calls it does so until none is left.
func KillAll(isRoot func(Proc) bool) {
	own := unix.Getpgrp()
	frozen := make(map[int]uint64) // start by pid
	var all []Proc
	for range freezeRounds {
		before := len(all)
		Walk(func(p Proc) {
			_, below := frozen[p.Parent]
			if start, known := frozen[p.PID]; known && start == p.Start || !below && !isRoot(p) {
				return
			}
			if p.Group > 1 && p.Group != own {
				_ = unix.Kill(-p.Group, unix.SIGSTOP)
			} else {
				p.Signal(unix.SIGSTOP)
			}
			frozen[p.PID] = p.Start
			all = append(all, p)
		})
		if len(all) == before {
			break
		}
	}
	SignalAll(all, unix.SIGKILL)
}
