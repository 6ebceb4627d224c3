package execute

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// strayTime is how long a child has to be dead before it is taken for one that
// nobody waits for.
const strayTime = time.Minute

// stray is a dead child that was seen.
type stray struct {
	start uint64
	seen  time.Time
}

// reapStrays waits for dead children that nobody waits for. As a subreaper we
// get what programs of the desktop that were started from here leave behind.
// Whoever waits for a child of his own does so well within strayTime. k.mu is
// held.
func (k *Keeper) reapStrays(now time.Time) {
	if now.Sub(k.looked) < strayTime {
		return
	}
	k.looked = now
	dead := make(map[int]stray)
	self := os.Getpid()
	keep.Walk(func(p keep.Proc) {
		if p.Parent != self || !p.Dead || k.live[p.PID] {
			return
		}
		s := stray{p.Start, now}
		if before, known := k.strays[p.PID]; known && before.start == p.Start {
			s = before
		}
		if now.Sub(s.seen) >= strayTime {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
			return
		}
		dead[p.PID] = s
	})
	k.strays = dead
}
