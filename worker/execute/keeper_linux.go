package execute

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// canBeHelper says that this program called KeeperMain. One that did not would,
// started once more as a helper, do everything once more.
var canBeHelper atomic.Bool

// KeeperMain is the whole program where this process was started as a helper,
// and does nothing where it was not. A program that makes a Keeper calls it
// first thing in main.
func KeeperMain() {
	canBeHelper.Store(true)
	if os.Args[0] == keep.Name {
		os.Exit(keep.Main())
	}
}

// Keeper starts commands under helpers, each of which ends all that descends
// from its command when it must, even if this process is killed. It makes this
// process a subreaper and knows all helpers in it: there is one per process, for
// all Runners. It is safe for concurrent use.
//
// A helper keeps one command at a time. One whose command ended by itself and
// left nothing waits a while for another.
type Keeper struct {
	program string
	mark    string
	limits  limits

	// mu is held while a helper is made and while orphans are looked for: a
	// helper that is not known yet would be taken for one.
	mu   sync.Mutex
	live map[int]bool // helpers of ours, by pid, until they are waited for
	idle []*helper    // those without a command, the last one used last

	looked time.Time // for strays
	strays map[int]stray
}

const selfProgram = "/proc/self/exe"

// NewKeeper returns the Keeper of this process. The helper is the program
// countersign-keeper beside this one or, without it, this program once more.
func NewKeeper() (*Keeper, error) {
	k := newKeeper(selfProgram, rand.Text())
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), keep.Name)
		if unix.Access(beside, unix.X_OK) == nil {
			k.program = beside
		}
	}
	if k.program == selfProgram && !canBeHelper.Load() {
		return nil, errors.New("there is no " + keep.Name + " beside this program, and it cannot be one itself: KeeperMain was not called")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become responsible for processes whose helper is killed: %w", err)
	}
	if err := os.Setenv(spawnMark, k.mark); err != nil {
		return nil, fmt.Errorf("mark the programs started here: %w", err)
	}
	return k, nil
}

func newKeeper(program, mark string) *Keeper {
	return &Keeper{program: program, mark: mark, limits: usualLimits, live: make(map[int]bool)}
}

// Program is the path of the helper: /proc/self/exe if it is this program.
func (k *Keeper) Program() string { return k.program }

// Dismiss ends the helpers that have no command now; a nil Keeper has none. They
// end by themselves with this process, too.
func (k *Keeper) Dismiss() {
	if k == nil {
		return
	}
	k.mu.Lock()
	idle := k.idle
	k.idle = nil
	k.mu.Unlock()
	for _, h := range idle {
		h.rest.Stop()
		k.bury(h)
	}
}

// bury waits for a helper that has nothing left to do. From then on its number
// means nothing.
func (k *Keeper) bury(h *helper) {
	_ = h.cmd.Process.Kill() // it may have been suspended at its end
	h.commands.Close()
	h.lifeline.Close()
	k.mu.Lock()
	_ = h.cmd.Wait()
	delete(k.live, h.cmd.Process.Pid)
	k.reapStrays(time.Now())
	k.mu.Unlock()
	for range h.reports { // to its end
	}
}
