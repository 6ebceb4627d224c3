package execute

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
type Keeper struct {
	program string
	mark    string

	// mu is held while a helper is made and while orphans are looked for: a
	// helper that is not known yet would be taken for one.
	mu   sync.Mutex
	live map[int]bool // helpers of ours, by pid, until they are waited for

	looked time.Time // for strays
	strays map[int]stray
}

const selfProgram = "/proc/self/exe"

// NewKeeper returns the Keeper of this process. The helper is the program
// countersign-keeper beside this one or, without it, this program once more.
func NewKeeper() (*Keeper, error) {
	k := &Keeper{program: selfProgram, mark: rand.Text(), live: make(map[int]bool)}
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

// Program is the path of the helper: /proc/self/exe if it is this program.
func (k *Keeper) Program() string { return k.program }

// launch starts a helper and returns with it the other ends of its pipes.
func (k *Keeper) launch(cmd *exec.Cmd) (helper *exec.Cmd, orders, reports *os.File, err error) {
	lifeline, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer lifeline.Close()
	reports, toReports, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, nil, nil, err
	}
	defer toReports.Close()
	// Its environment is empty, so there is nothing to see in it and nothing in
	// it acts on the helper. A session of its own keeps it and the command from
	// our terminal, and tells all that descends from it from what does not.
	helper = &exec.Cmd{Path: k.program, Args: []string{keep.Name}, Env: []string{}, Dir: cmd.Dir,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		ExtraFiles:  []*os.File{lifeline, toReports},
		SysProcAttr: &unix.SysProcAttr{Setsid: true}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := helper.Start(); err != nil {
		orders.Close()
		reports.Close()
		return nil, nil, nil, fmt.Errorf("start the helper %s: %v", k.program, err) // whatever it is, it is not the command's
	}
	k.live[helper.Process.Pid] = true
	return helper, orders, reports, nil
}

// bury waits for a helper that has nothing left to do. From then on its number
// means nothing.
func (k *Keeper) bury(helper *exec.Cmd) {
	_ = helper.Process.Kill() // it may have been suspended at its end
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = helper.Wait()
	delete(k.live, helper.Process.Pid)
	k.reapStrays(time.Now())
}
