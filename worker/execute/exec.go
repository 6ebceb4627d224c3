package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign/worker/api/wire"
)

const (
	// drainTime is how long output may still arrive after the command has ended.
	// Only something it left running outside its process group can use it up.
	drainTime = 500 * time.Millisecond

	// stuckTime is how much longer a slow disk may take to write it down.
	stuckTime = 5 * time.Second

	// killTime is how long a killed command may take to end.
	killTime = 10 * time.Second

	// goneTime is how long killed processes may take to be gone.
	goneTime = 2 * time.Second

	// leftGrace bounds the grace of what a command left running when it ended.
	leftGrace = time.Second
)

// exec runs a command: prepare, start, wait for its end or for a reason to stop
// it, stop what it left running, read the rest of the output, sum up.
func (r *Runner) exec(ctx context.Context, root *os.Root, t Task, transcriptPath string) (o Outcome) {
	dir, err := r.commandDir(root, t.Cwd)
	if err != nil {
		return couldNotStart(t, 126, err.Error())
	}
	confined, err := r.confine()
	if err != nil {
		return couldNotStart(t, 126, err.Error())
	}
	defer func() {
		if err := confined.end(); err != nil {
			o.note(fmt.Sprintf("Its temporary directory could not be removed: %v.", err))
		}
	}()
	cmd := r.command(t, dir, confined)
	rec := newRecorder(transcriptPath, r.o.TranscriptLimit, r.o.ReportLimit)
	out, err := capture(cmd, rec)
	if err != nil {
		return couldNotStart(t, 126, "the command's output cannot be captured: "+err.Error())
	}
	p, err := r.start(ctx, cmd, confined)
	out.started()
	if err != nil {
		out.finish()
		rec.close()
		if errors.Is(err, errStoppedFirst) {
			return notStarted(ctx, t)
		}
		return startFailed(err, t, cmd.Path)
	}
	limit := cmp.Or(t.TimeLimit, DefaultTimeLimit)
	end := r.await(ctx, p, limit)
	left := p.sweep(min(r.o.Grace, leftGrace))
	held := out.finish()
	kept := rec.close()

	o = end.outcome(kept, limit, left)
	if held {
		o.note("Something that it started still runs: it keeps the output open.")
	}
	o.note(kept.trouble)
	return o
}

func (r *Runner) command(t Task, dir string, confined *confinement) *exec.Cmd {
	args := append(append([]string{}, r.o.Shell[1:]...), t.Command)
	cmd := exec.Command(r.o.Shell[0], args...)
	setCommandLine(cmd, r.o.Shell, t.Command)
	cmd.Dir = dir
	cmd.Env = r.commandEnv(t, dir, confined.environ())
	return cmd
}

// commandDir returns the canonical directory that a command asking for cwd runs
// in. os.Root judges whether it lies inside.
func (r *Runner) commandDir(root *os.Root, cwd string) (string, error) {
	name := filepath.FromSlash(inRoot(cwd))
	info, err := root.Stat(name)
	if err != nil {
		return "", fmt.Errorf("the directory %q %s", cwd, explain(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("the directory %q is not a directory", cwd)
	}
	dir := r.dir // which open has found to be itself
	if name != "." {
		if dir, err = filepath.EvalSymlinks(r.dir + string(filepath.Separator) + name); err != nil {
			return "", fmt.Errorf("the directory %q %s", cwd, explain(err))
		}
	}
	// The path is looked up again by name: it has to be what was judged.
	again, err := os.Lstat(dir)
	if err != nil || !os.SameFile(info, again) {
		return "", fmt.Errorf("the directory %q was changed at this moment", cwd)
	}
	return dir, nil
}

// start starts a command, under a helper where there is one.
func (r *Runner) start(ctx context.Context, cmd *exec.Cmd, confined *confinement) (process, error) {
	if r.o.Keeper == nil {
		return startProcess(cmd)
	}
	return r.o.Keeper.start(ctx, cmd, r.o.Grace, confined)
}

// startFailed is the outcome of a start that failed, with the exit status of a
// shell.
func startFailed(err error, t Task, shell string) Outcome {
	var u *unconfined
	switch {
	case errors.As(err, &u):
		return couldNotStart(t, 126, u.Error())
	case errors.Is(err, errMayHaveRun):
		return broken(t, err.Error())
	case tooLong(err):
		return couldNotStart(t, 126, fmt.Sprintf("the command with its environment is too long for this system (%d bytes)", len(t.Command)))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return couldNotStart(t, 127, fmt.Sprintf("the shell %s was not found", shell))
	}
	return couldNotStart(t, 126, "the command could not be started: "+err.Error())
}

// ending is how a command came to its end.
type ending struct {
	status status
	err    error  // the status could not be had
	how    How    // Ended, TimedOut or Stopped
	reason string // Stopped: why
}

// await waits until the command itself has ended, and stops it when ctx is
// cancelled or the limit is reached. The limit is awake time: it rests while the
// machine sleeps.
func (r *Runner) await(ctx context.Context, p process, limit time.Duration) ending {
	ended := make(chan ending, 1)
	go func() {
		end, err := p.wait()
		ended <- ending{status: end, err: err, how: Ended}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()

	how, reason := Ended, ""
	select {
	case end := <-ended:
		return end
	case <-timer.C:
		how = TimedOut
	case <-ctx.Done():
		how, reason = Stopped, cause(ctx)
	}
	select {
	case end := <-ended: // before anything was done to it
		return end
	default:
	}
	end := r.stop(p, ended)
	end.how, end.reason = how, reason
	return end
}

// stop asks a command to end and, after a grace period, makes it. One that
// hangs in the kernel outlives even that; it is not waited for.
func (r *Runner) stop(p process, ended <-chan ending) ending {
	p.ask()
	grace := time.NewTimer(r.o.Grace)
	defer grace.Stop()
	select {
	case end := <-ended:
		return end
	case <-grace.C:
	}
	p.kill()
	dead := time.NewTimer(killTime)
	defer dead.Stop()
	select {
	case end := <-ended:
		return end
	case <-dead.C:
		return ending{err: errors.New("it could not be killed and may still run")}
	}
}

// outcome sums up an ended command. Why it did not end by itself is also said at
// the end of its reported stderr: of a command that failed, an agent is shown
// nothing else of ours.
func (e ending) outcome(kept recording, limit time.Duration, left leftover) Outcome {
	o := Outcome{How: e.how, StdoutBytes: kept.printed[stdout], StderrBytes: kept.printed[stderr],
		CutBytes: kept.cut, Head: kept.head}
	o.Exit, o.Signal = e.status.exit, e.status.signal
	if e.err != nil {
		o.Exit = 125
	}
	said := ""
	switch {
	case e.how == Ended && errors.Is(e.err, errHelperKilled):
		o.How = Lost
		said = "Outcome unknown: it may have run wholly or partly."
		if !left.alive {
			said += " What it had started was stopped."
		}
		o.note(said)
	case e.how == TimedOut:
		o.Exit, o.Signal = 124, ""
		said = fmt.Sprintf("the command ran into its time limit of %v and was stopped.", limit)
		o.note(fmt.Sprintf("Stopped at its time limit of %v.", limit))
	case e.how == Stopped:
		if o.Exit == 0 { // it took the request to end for success
			o.Exit = 143
		}
		o.Signal = ""
		said = stoppedWords(e.reason)
		o.note(stopReason(e.reason))
	case o.Signal != "":
		o.How = Signalled
		said = "the command was ended by signal " + o.Signal + "."
		o.note("Ended by " + o.Signal + ".")
	}
	if e.err != nil {
		unknown := fmt.Sprintf("Its exit status is not known: %v.", e.err)
		if e.how != Ended && errors.Is(e.err, errHelperKilled) { // by us, in the end
			unknown = "Its exit status is not known: it did not end in time."
		}
		o.note(unknown)
		if o.How != Lost {
			said = strings.TrimSpace(said + " " + unknown)
		}
	}
	left.tell(&o)
	if left.alive {
		said = strings.TrimSpace(said + " " + stillAlive)
	}
	if said != "" {
		kept.text[stderr] = onOwnLine(kept.text[stderr], "Countersign: "+said)
	}
	o.Result = encode(wire.ExecResult{ExitCode: o.Exit, Stdout: kept.text[stdout], Stderr: kept.text[stderr],
		TimedOut: e.how == TimedOut, Aborted: e.how == Stopped || o.How == Lost})
	return o
}

// stoppedWords tells an agent why a command was stopped. The cause of a stop says
// either that it was stopped and by whom, or what happened.
func stoppedWords(cause string) string {
	if by, ok := strings.CutPrefix(cause, "stopped "); ok {
		return "the command was stopped " + by + "."
	}
	return "the command was stopped: " + cause + "."
}

// stopReason is the same for an operator, who reads it after the word "stopped".
func stopReason(cause string) string {
	cause = strings.TrimPrefix(cause, "stopped ")
	first, size := utf8.DecodeRuneInString(cause)
	return string(unicode.ToUpper(first)) + cause[size:] + "."
}

// stillAlive is said of what no kill of ours ends: what belongs to another user, or
// hangs in the kernel.
const stillAlive = "It left processes running that could not be ended, as what sudo starts cannot be; they may still run."

// tell says in an outcome what the command left running.
func (l leftover) tell(o *Outcome) {
	switch {
	case l.alive:
		o.note(stillAlive)
	case l.count > 0:
		o.note(fmt.Sprintf("It left processes running (%d); they were stopped.", l.count))
	case l.some:
		o.note("It left processes running; they were stopped.")
	}
}

// note adds a sentence to the reason.
func (o *Outcome) note(sentence string) {
	o.Reason = strings.TrimSpace(o.Reason + " " + sentence)
}
