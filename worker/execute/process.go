package execute

import (
	"errors"
	"os/exec"
	"time"
)

// process is a started command with all that it started. How a tree of processes
// is ended depends on the system: under a helper (kept), in a process group
// (group), or in a job (job).
type process interface {
	// wait returns when the command itself has ended, whatever it left running.
	wait() (status, error)

	// ask asks all of it to end, and kill makes it. Once it is gone they do nothing.
	ask()
	kill()

	// sweep ends what the ended command left running: asks, and kills what is left
	// after grace. It returns in bounded time.
	sweep(grace time.Duration) leftover
}

// status is the exit status of an ended command as a shell reports it, and the
// name of the signal that ended it, if one did.
type status struct {
	exit   int
	signal string
}

// leftover is what an ended command left running.
type leftover struct {
	some  bool
	count int  // of processes; 0 if it is not known
	alive bool // not all of it could be ended
}

// waitFor waits for a command that os/exec started.
func waitFor(cmd *exec.Cmd) (status, error) {
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return statusOf(cmd.ProcessState), err
}

// gone waits until a process has nothing left, at most for a while. Where the
// system tells nobody, it has to be asked.
func gone(left func() bool, within time.Duration) bool {
	for deadline := time.Now().Add(within); left(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
