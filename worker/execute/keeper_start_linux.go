package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// limits are how long the parts of a start may take.
type limits struct {
	// start is from when one is asked for until a helper begins with it. Later
	// nothing is started: the harness accepted it for then.
	start time.Duration

	// reused is how long of that a helper may take that has waited. One that was
	// suspended may never answer.
	reused time.Duration

	// begun is from there until the command runs. That is also waited for if the
	// command is to be stopped by then.
	begun time.Duration
}

var usualLimits = limits{start: 5 * time.Second, reused: 2 * time.Second, begun: 5 * time.Second}

var errSilent = errors.New("it does not answer")

// start starts cmd under a helper. Its error is of a command that did not start,
// unless it is errMayHaveRun. To cancel ctx before the helper begins is
// errStoppedFirst; the stop of one that has begun is the caller's.
func (k *Keeper) start(ctx context.Context, cmd *exec.Cmd, grace time.Duration, confined *confinement) (process, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	until := keep.Now() + keep.Ticks(k.limits.start)
	inTime, cancel := context.WithTimeout(ctx, k.limits.start)
	defer cancel()
	order := keep.Command{Path: cmd.Path, Args: cmd.Args, Env: cmd.Environ(), Until: until,
		Grace: grace, LeftGrace: min(grace, leftGrace), TimerSlack: timerSlack()}
	if confined != nil {
		order.Confine, order.Writable = true, confined.writable
	}
	files, close, err := handed(cmd)
	if err != nil {
		return nil, err
	}
	defer close()
	p, err := k.startIn(inTime, cmd.Path, order.Encode(), files)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, errMayHaveRun), answered(err):
		return nil, err
	case ctx.Err() != nil:
		return nil, errStoppedFirst
	case inTime.Err() != nil, keep.Now() > until: // the machine may have slept
		return nil, fmt.Errorf("no helper began with it within %v, and what was accepted is not started later than that", k.limits.start)
	}
	return nil, err
}

// timerSlack is by how much timers may be late here: what a command gets.
func timerSlack() time.Duration {
	slack, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return max(1, time.Duration(slack))
}

// startIn has one helper after another start a command, until one begins with it.
func (k *Keeper) startIn(ctx context.Context, path string, order []byte, files [keep.Handed]int) (*kept, error) {
	hire := k.hire
	for {
		h, err := hire()
		if err != nil {
			return nil, err
		}
		p := &kept{keeper: k, helper: h, began: keep.Now(), ended: make(chan struct{}), gone: make(chan struct{})}
		started, err := p.begin(ctx, path, order, files)
		if err == nil {
			go p.follow()
			return p, nil
		}
		starting := p.abandon() || started
		switch {
		case starting && !answered(err):
			return nil, errMayHaveRun
		case !h.reused, answered(err), ctx.Err() != nil:
			return nil, err
		case errors.Is(err, errSilent):
			hire = k.launch // others may be as this one is
		}
		// It ended while it waited, or does not answer: nothing was started.
	}
}

// handed returns what goes to the helper with a command: its three descriptors
// and its directory.
func handed(cmd *exec.Cmd) (files [keep.Handed]int, close func(), err error) {
	in, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return files, nil, &fs.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	dir, err := unix.Open(cmd.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(in)
		return files, nil, fmt.Errorf("its directory %s: %v", cmd.Dir, err) // whatever it is, the shell is there
	}
	files = [keep.Handed]int{in, int(cmd.Stdout.(*os.File).Fd()), int(cmd.Stderr.(*os.File).Fd()), dir}
	for _, fd := range files[1:3] {
		_ = unix.SetNonblock(fd, false) // what a program expects
	}
	return files, func() { unix.Close(in); unix.Close(dir) }, nil
}

// begin tells the helper what to start, and waits until it says that it did. With
// an error it reports whether the helper had begun to.
func (p *kept) begin(ctx context.Context, path string, order []byte, files [keep.Handed]int) (starting bool, err error) {
	limits := p.keeper.limits
	if p.helper.reused {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, limits.reused, errSilent)
		defer cancel()
	}
	err = p.helper.hand(ctx, order, files)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	if err != nil {
		return false, fmt.Errorf("tell the helper what to start: %w", err)
	}
	if err := p.hear(ctx, keep.Starting, path); err != nil {
		return false, err
	}
	// It may have an effect now: even if it is to be stopped already, its own end
	// is to be known.
	begun, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limits.begun, errSilent)
	defer cancel()
	return true, p.hear(begun, keep.Started, path)
}

// wakeEvery is longer than a start takes, and short beside limits.begun.
const wakeEvery = 100 * time.Millisecond

// hear waits until the helper says a word.
func (p *kept) hear(ctx context.Context, word, path string) error {
	r, some := p.nextReport(ctx)
	switch {
	case !some && ctx.Err() != nil:
		return fmt.Errorf("the helper %s did not start it: %w", p.keeper.program, context.Cause(ctx))
	case !some:
		return fmt.Errorf("the helper %s did not start it: it ended", p.keeper.program)
	case r.word == keep.Failed:
		errno, _ := strconv.Atoi(r.of)
		return &failed{&fs.PathError{Op: "start", Path: path, Err: syscall.Errno(errno)}}
	case r.word == keep.Unconfined:
		return &failed{&unconfined{r.of}}
	case r.word != word:
		return fmt.Errorf("the helper %s did not start it: it says %q", p.keeper.program, r.word)
	}
	return nil
}

// nextReport returns what the helper says next, if it does before ctx ends. It
// wakes it now and then: what it has just started may have suspended it before it
// could say so.
func (p *kept) nextReport(ctx context.Context) (r report, some bool) {
	awake := time.NewTicker(wakeEvery)
	defer awake.Stop()
	for {
		select {
		case r, some = <-p.helper.reports:
			return r, some
		case <-awake.C:
			p.helper.wake()
		case <-ctx.Done():
			select {
			case r, some = <-p.helper.reports: // it has said something after all
			default:
			}
			return r, some
		}
	}
}

// failed is a start of which the helper itself says that it failed.
type failed struct{ error }

func (f *failed) Unwrap() error { return f.error }

func answered(err error) bool {
	var f *failed
	return errors.As(err, &f)
}
