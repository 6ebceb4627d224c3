//go:build linux

package keep

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// pause is between two attempts to kill what is left. It grows up to longPause:
// what a kill does not end hangs in the kernel or belongs to another user.
const (
	pause     = time.Millisecond
	longPause = time.Second
)

// keeper keeps one command and all that descends from it.
type keeper struct {
	command Command
	self    int
	orders  <-chan order
}

// death is a child that ended.
type death struct {
	pid    int
	status unix.WaitStatus
}

// watch returns when nothing of the command is left. No child left means no
// descendant left: a process whose parent ends becomes ours. It says whether the
// command ended alone, with the lifeline whole: then this helper is as good as new.
func (k *keeper) watch(command int) (alone bool) {
	deaths := make(chan death)
	go reap(deaths)
	alone = true
	var (
		ended, asked bool
		killAt       time.Time
		wait         = pause
		timer        = time.NewTimer(time.Hour)
	)
	timer.Stop()
	killBy := func(grace time.Duration) {
		if at := time.Now().Add(grace); killAt.IsZero() || at.Before(killAt) {
			killAt = at
			timer.Reset(grace)
		}
	}
	for {
		select {
		case d, some := <-deaths:
			if !some {
				report(Done, "")
				return alone
			}
			if d.pid != command || ended {
				continue
			}
			ended = true
			if childless() {
				say(line(Ended, strconv.Itoa(int(d.status))) + line(Done, ""))
				for range deaths { // nobody waits for the next command's
				}
				return alone
			}
			report(Ended, strconv.Itoa(int(d.status)))
			if left := k.living(); len(left) > 0 {
				alone = false
				if !asked {
					report(Left, strconv.Itoa(len(left)))
				}
				k.ask()
				killBy(k.command.LeftGrace)
			}
		case o := <-k.orders:
			alone = false
			if o.order == Kill {
				killBy(0)
			} else if !asked {
				asked = true
				k.ask()
				killBy(k.command.Grace)
			}
		case <-timer.C:
			KillAll(k.isChild)
			timer.Reset(wait)
			wait = min(2*wait, longPause)
		}
	}
}

// reap waits for every child there is, and closes deaths when there is none.
func reap(deaths chan<- death) {
	for {
		var d death
		var err error
		if d.pid, err = unix.Wait4(-1, &d.status, 0, nil); err == unix.EINTR {
			continue
		} else if err != nil {
			close(deaths)
			return
		}
		deaths <- d
	}
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

// living is all without the dead.
func (k *keeper) living() (living []Proc) {
	for _, p := range k.all() {
		if !p.Dead {
			living = append(living, p)
		}
	}
	return living
}

// childless says that there is no child, dead or alive, and so no descendant.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}
