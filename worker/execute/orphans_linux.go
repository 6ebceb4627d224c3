package execute

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// How long the end of what a killed helper leaves may take: orphanTime from when
// the last new process was seen, because what a kill does not end by then hangs in
// the kernel or belongs to another user, and mostTime for what goes on forking on
// a machine that is too busy to win against it.
const (
	orphanTime = 5 * time.Second
	mostTime   = time.Minute
)

// endOrphans kills what a dead helper has left: no grace, since nobody saw to it
// that nothing new was started. It waits for those that became our children, by
// number, because others wait for theirs. The helper itself is dead and has not
// been waited for. It reports whether nothing is left.
func (k *Keeper) endOrphans(helper int, began uint64) bool {
	pause := time.Millisecond
	seen := make(map[int]uint64) // start by pid
	first := time.Now()
	for last := first; ; time.Sleep(pause) {
		found := k.killOrphans(helper, began)
		if len(found) == 0 {
			return true
		}
		now := time.Now()
		for _, p := range found {
			if start, known := seen[p.PID]; !known || start != p.Start {
				seen[p.PID], last = p.Start, now
			}
		}
		if now.Sub(last) > orphanTime || now.Sub(first) > mostTime {
			return false
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// killOrphans kills what is left of a helper once, and returns what it found.
func (k *Keeper) killOrphans(helper int, began uint64) []keep.Proc {
	k.mu.Lock()
	defer k.mu.Unlock()
	isOrphan := func(p keep.Proc) bool { return k.isOrphan(p, helper, began) }
	found := keep.Below(keep.Procs(), isOrphan)
	if len(found) == 0 {
		return nil
	}
	keep.KillAll(isOrphan)
	self := os.Getpid()
	for _, p := range keep.Below(keep.Procs(), isOrphan) {
		if p.Dead && p.Parent == self {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
		}
	}
	return found
}

// isOrphan reports whether p was left by a dead helper: it is of the helper's
// session, or it became our child. What we start ourselves is of our session; a
// program of the desktop that was started from here and went on alone, as a
// browser does, has our mark.
func (k *Keeper) isOrphan(p keep.Proc, helper int, began uint64) bool {
	switch self := os.Getpid(); {
	case p.PID == self || p.PID == helper || k.live[p.PID]:
		return false
	case p.Session == helper:
		return true
	case p.Parent != self || p.Start < began:
		return false
	}
	own, err := unix.Getsid(0)
	return err == nil && p.Session != own && !k.marked(p.PID)
}

func (k *Keeper) marked(pid int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == spawnMark+"="+k.mark {
			return true
		}
	}
	return false
}
