package execute

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// silentHelper is a Keeper whose helpers never answer.
func silentHelper(t *testing.T, limits limits) *Keeper {
	t.Helper()
	program := filepath.Join(t.TempDir(), "silent")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 300\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(program, "")
	k.limits = limits
	return k
}

// suspendAgainAndAgain does to a process what another command can do to an idle
// helper, for as long as the test runs.
func suspendAgainAndAgain(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0) == nil {
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	t.Cleanup(func() { close(end); <-ended; unix.Close(fd) })
}

func checkNoEffect(t *testing.T, r *Runner) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(r.Dir(), "effect")); err == nil {
		t.Errorf("it ran: %q", data)
	}
}

func TestAStopThatComesBeforeTheStartKeepsItFromStarting(t *testing.T) {
	k := silentHelper(t, limits{start: time.Hour, reused: time.Hour, begun: time.Hour})
	r := newRunner(t, func(o *Options) { o.Keeper = k })
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan Outcome, 1)
	go func() { ended <- r.Run(ctx, sh("echo ran >>effect"), "") }()
	until(t, "a helper is asked", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return len(k.live) == 1 })
	cancel(errors.New("stopped by a test"))
	o := <-ended
	if res := result(t, o); o.How != CouldNotStart || !res.Aborted || res.ExitCode != 126 || o.Reason != "Stopped before it started: stopped by a test." {
		t.Errorf("outcome %+v", o)
	}
	checkNoEffect(t, r)
	noChildren(t)
}

func TestAHelperThatDoesNotAnswerIsReplacedAndTheCommandRunsOnce(t *testing.T) {
	k := silentHelper(t, usualLimits)
	k.limits.reused = 100 * time.Millisecond
	k.limits.start = time.Minute
	silent, err := k.launch()
	if err != nil {
		t.Fatal(err)
	}
	k.keepIdle(silent)
	k.program, k.mark = selfProgram, testKeeper(t).mark
	r := newRunner(t, func(o *Options) { o.Keeper = k })
	if o, _ := run(t, r, sh("echo ran >>effect")); o.How != Ended || o.Exit != 0 {
		t.Errorf("outcome %+v", o)
	}
	if data, _ := os.ReadFile(filepath.Join(r.Dir(), "effect")); string(data) != "ran\n" {
		t.Errorf("it ran %q", data)
	}
	k.Dismiss()
	checkGone(t, silent.cmd.Process.Pid)
	noChildren(t)
}

func TestWhatIsSaidOfACommandIsTrueWhenItsHelperIsSuspendedAgainAndAgain(t *testing.T) {
	k := newKeeper(selfProgram, testKeeper(t).mark)
	k.limits.reused = 100 * time.Millisecond
	r := newRunner(t, func(o *Options) { o.Keeper = k })
	first := helperOf(t, r, "true")
	suspendAgainAndAgain(t, first)
	o, _ := run(t, r, sh("echo ran >>effect"))
	data, _ := os.ReadFile(filepath.Join(r.Dir(), "effect"))
	if effect := string(data); effect != "" && effect != "ran\n" || o.How == Ended && effect == "" || o.How == CouldNotStart && effect != "" {
		t.Errorf("effect %q, outcome %+v", effect, o)
	}
	k.Dismiss()
	checkGone(t, first)
	noChildren(t)
}

func TestWhatCannotBeStartedInTimeIsNotStarted(t *testing.T) {
	k := silentHelper(t, limits{start: 50 * time.Millisecond, reused: time.Hour, begun: time.Hour})
	r := newRunner(t, func(o *Options) { o.Keeper = k })
	o, res := run(t, r, sh("echo ran >>effect"))
	if o.How != CouldNotStart || res.ExitCode != 126 || res.Aborted || !strings.Contains(o.Reason, "no helper began with it within 50ms") {
		t.Errorf("outcome %+v", o)
	}
	checkNoEffect(t, r)
	noChildren(t)
}

// TestAHelperStartsNothingThatIsLate has Countersign itself be too late to call a
// start off, as it is when the machine has slept.
func TestAHelperStartsNothingThatIsLate(t *testing.T) {
	k := testKeeper(t)
	r := newRunner(t)
	for name, until := range map[string]uint64{"late": keep.Now() - 1, "soon": keep.Now() + keep.Ticks(time.Minute)} {
		h, err := k.launch()
		if err != nil {
			t.Fatal(err)
		}
		order := keep.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo >" + name}, Until: until}
		null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := unix.Open(r.Dir(), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := h.hand(ctx, order.Encode(), [keep.Handed]int{null, null, null, dir}); err != nil {
			t.Fatal(err)
		}
		cancel()
		first, some := <-h.reports
		if late := name == "late"; some == late || some && first.word != keep.Starting {
			t.Errorf("%s: it says %+v, %v", name, first, some)
		}
		for r := first; some && r.word != keep.Done; {
			r, some = <-h.reports
		}
		unix.Close(null)
		unix.Close(dir)
		k.bury(h)
		if _, err := os.Stat(filepath.Join(r.Dir(), name)); (err == nil) == (name == "late") {
			t.Errorf("%s: %v", name, err)
		}
	}
	noChildren(t)
}
