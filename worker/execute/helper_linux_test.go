package execute

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// helperOf runs a command and returns the pid of the helper that it ran under.
func helperOf(t *testing.T, r *Runner, command string) int {
	t.Helper()
	o, res := run(t, r, sh(command+"\necho $PPID"))
	lines := strings.Split(strings.TrimSpace(res.Stdout), "\n")
	if o.How != Ended || o.Exit != 0 {
		t.Fatalf("outcome %+v", o)
	}
	return atoi(t, lines[len(lines)-1])
}

func TestAHelperKeepsOneCommandAfterAnother(t *testing.T) {
	r := newRunner(t)
	first := helperOf(t, r, "true")
	for range 20 {
		if next := helperOf(t, r, "true"); next != first {
			t.Errorf("helper %d after helper %d", next, first)
		}
	}
	testKeeper(t).Dismiss()
	checkGone(t, first)
	noChildren(t)
}

// TestTheTimersOfACommandAreNotLateAsItsHelpersAre has one of each kind, and two
// under the same helper.
func TestTheTimersOfACommandAreNotLateAsItsHelpersAre(t *testing.T) {
	want := fmt.Sprintln(int(timerSlack()))
	const tell = "cat /proc/self/timerslack_ns"
	confined, _ := confinedRunner(t)
	for _, r := range []*Runner{newRunner(t), newRunner(t), confined} {
		if _, res := run(t, r, sh(tell)); res.Stdout != want || res.ExitCode != 0 {
			t.Errorf("%s%s, want %s", res.Stdout, res.Stderr, want)
		}
	}
	k := testKeeper(t)
	k.mu.Lock()
	h := k.idle[len(k.idle)-1]
	k.mu.Unlock()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
		if err != nil {
			t.Skip(err)
		}
		if string(slack) == fmt.Sprintln(int(keep.Slack)) {
			late++
		}
	}
	if late == 0 || late >= len(threads)-1 { // all but those that keep the command
		t.Errorf("of %d threads %d are late", len(threads), late)
	}
}

// TestNothingOfACommandReachesTheNext has one command after another in one helper
// tell all that it was given.
func TestNothingOfACommandReachesTheNext(t *testing.T) {
	const tell = `env | grep -v '^PWD='; ls /proc/$$/fd; umask; ulimit -a; nice
grep -E '^(Sig[BIC]|Cap|NoNewPrivs|Seccomp|Groups|Cpus_allowed)' /proc/self/status
cat /proc/self/cgroup /proc/self/oom_score_adj; readlink /proc/$$/fd/0; cut -d' ' -f7,8 /proc/$$/stat; echo $PPID`
	r := newRunner(t)
	_, before := run(t, r, sh(tell))
	dirty := sh("cd /; umask 0; ulimit -n 99; trap '' HUP TERM; export LEFT=over; exec 5</dev/null 6>&1; sleep 0.01 & wait; mkdir gone 2>/dev/null; exit 0")
	dirty.Env = map[string]string{"OF_THE_FIRST": "secret"}
	if o, _ := run(t, r, dirty); o.How != Ended || o.Exit != 0 {
		t.Fatalf("outcome %+v", o)
	}
	_, after := run(t, r, sh(tell))
	if after.Stdout != before.Stdout || after.Stderr != before.Stderr {
		was := strings.Split(before.Stdout, "\n")
		for i, line := range strings.Split(after.Stdout, "\n") {
			if i >= len(was) || line != was[i] {
				t.Errorf("line %d is not as it was: %s", i, line)
			}
		}
		t.Errorf("stderr %q, %q", before.Stderr, after.Stderr)
	}
	if err := os.Mkdir(filepath.Join(r.Dir(), "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	below := sh("pwd; ps -o pgid= -p $$ | tr -d ' '; echo $$")
	below.Cwd = "below"
	_, res := run(t, r, below)
	if lines := strings.Split(res.Stdout, "\n"); lines[0] != filepath.Join(r.Dir(), "below") || lines[1] != lines[2] {
		t.Errorf("directory, group and pid: %q", res.Stdout)
	}
}

func TestCommandsInReusedHelpersDoNotMix(t *testing.T) {
	r := newRunner(t)
	var callers sync.WaitGroup
	for n := range 4 {
		callers.Go(func() {
			for i := range 50 {
				word := fmt.Sprintf("%d-%d", n, i)
				o := r.Run(t.Context(), sh("echo "+word+"; exit "+fmt.Sprint(n+1)), "")
				if res := result(t, o); res.Stdout != word+"\n" || res.ExitCode != n+1 || o.Reason != "" {
					t.Errorf("%s: %+v", word, o)
				}
			}
		})
	}
	callers.Wait()
	noChildren(t)
}

func TestAHelperThatHadToStopOrEndSomethingIsNotUsedAgain(t *testing.T) {
	r := newRunner(t)
	first := helperOf(t, r, "true")
	if o, _ := stopped(t, r, "echo ready; sleep 300", 1); o.How != Stopped {
		t.Errorf("outcome %+v", o)
	}
	second := helperOf(t, r, "true")
	if o, _ := run(t, r, sh("setsid sleep 300 & exit 0")); !strings.Contains(o.Reason, "It left processes running") {
		t.Errorf("outcome %+v", o)
	}
	third := helperOf(t, r, "true")
	if first == second || second == third {
		t.Errorf("helpers %d, %d, %d", first, second, third)
	}
	testKeeper(t).Dismiss()
	checkGone(t, first, second, third)
}

func TestAHelperThatWasChangedIsNotUsedAgain(t *testing.T) {
	for name, change := range map[string]string{
		"its limits":   "prlimit --pid $PPID --nofile=64:64",
		"its niceness": "renice -n 5 -p $PPID >/dev/null",
		"its cpus":     "taskset -p 1 $PPID >/dev/null",
		"its io":       "ionice -c 3 -p $PPID",
	} {
		t.Run(name, func(t *testing.T) {
			program := strings.Fields(change)[0]
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			r := newRunner(t)
			const tell = "ulimit -n; nice; grep Cpus_allowed: /proc/self/status; echo ran >>ran"
			_, before := run(t, r, sh(tell))
			first := helperOf(t, r, change)
			_, after := run(t, r, sh(tell))
			if second := helperOf(t, r, "true"); second == first {
				t.Error("it was used again")
			}
			if before.Stdout != after.Stdout {
				t.Errorf("the next command has %q, not %q", after.Stdout, before.Stdout)
			}
			if ran, _ := os.ReadFile(filepath.Join(r.Dir(), "ran")); string(ran) != "ran\nran\n" {
				t.Errorf("it ran %q", ran)
			}
			checkGone(t, first)
		})
	}
}

// TestASignalToItsHelperIsNothingToACommand has the first command of a helper
// send it each signal that a process can catch, at once.
func TestASignalToItsHelperIsNothingToACommand(t *testing.T) {
	r := newRunner(t)
	for s := unix.SIGHUP; s <= 64; s++ {
		switch s {
		case unix.SIGKILL, unix.SIGSTOP, 32, 33, 34: // the last are the C libraries' own
			continue
		}
		testKeeper(t).Dismiss()
		first := helperOf(t, r, fmt.Sprintf("kill -%d $PPID", s))
		if second := helperOf(t, r, "echo next"); second != first {
			t.Errorf("%v: helper %d after helper %d", s, second, first)
		}
	}
	noChildren(t)
}

func TestAnIdleHelperThatIsKilledIsWaitedForAndReplaced(t *testing.T) {
	r := newRunner(t)
	first := helperOf(t, r, "true")
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if second := helperOf(t, r, "true"); second == first {
		t.Error("a dead helper ran a command")
	}
	until(t, "it is waited for", func() bool { _, there := keep.Look(first); return !there })
	noChildren(t)
}

func TestAnIdleHelperThatIsSuspendedGoesOn(t *testing.T) {
	r := newRunner(t)
	first := helperOf(t, r, "true")
	if err := unix.Kill(first, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if second := helperOf(t, r, "true"); second != first {
		t.Errorf("helper %d after helper %d", second, first)
	}
}

func TestAnIdleHelperEndsWithItsLifeline(t *testing.T) {
	r := newRunner(t)
	first := helperOf(t, r, "true")
	k := testKeeper(t)
	k.mu.Lock()
	h := k.idle[len(k.idle)-1]
	k.mu.Unlock()
	if h.cmd.Process.Pid != first {
		t.Fatalf("helper %d is idle, not %d", h.cmd.Process.Pid, first)
	}
	h.lifeline.Close()
	until(t, "it is waited for", func() bool { _, there := keep.Look(first); return !there })
	noChildren(t)
}

// TestACommandThatStartsAsCountersignEndsIsAskedToEnd has the helper's ends close
// right after a command came.
func TestACommandThatStartsAsCountersignEndsIsAskedToEnd(t *testing.T) {
	k := testKeeper(t)
	r := newRunner(t)
	for i := range 40 {
		k.Dismiss()
		if i%2 == 1 {
			run(t, r, sh("true")) // a helper that has kept a command before
		}
		h, err := k.hire()
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 300")
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.Dir(), null, null
		files, done, err := handed(cmd)
		if err != nil {
			t.Fatal(err)
		}
		c := keep.Command{Path: cmd.Path, Args: cmd.Args, Until: keep.Now() + keep.Ticks(time.Minute), Grace: time.Hour, LeftGrace: time.Hour, TimerSlack: timerSlack()}
		if err := h.hand(t.Context(), c.Encode(), files); err != nil {
			t.Fatal(err)
		}
		h.commands.Close()
		h.lifeline.Close()
		done()
		null.Close()
		ended := make(chan bool)
		go func() {
			for range h.reports {
			}
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("time %d: it waits for the whole grace", i)
		}
		k.bury(h)
	}
	noChildren(t)
}

func TestAnOrderForACommandThatHasEndedDoesNothingToTheNext(t *testing.T) {
	r := newRunner(t)
	k := testKeeper(t)
	begin := func(command string) *kept {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir = r.Dir()
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		cmd.Stdout, cmd.Stderr = null, null
		p, err := k.start(t.Context(), cmd, time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.(*kept)
	}
	first := begin("true")
	<-first.gone
	second := begin("until [ -e go ]; do sleep 0.01; done; exit 7")
	if second.helper != first.helper {
		t.Fatal("they are not in one helper")
	}
	first.ask()
	first.kill()
	first.killHelper()
	if err := os.WriteFile(filepath.Join(r.Dir(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if end, err := second.wait(); err != nil || end.exit != 7 {
		t.Errorf("the next ended with %+v, %v", end, err)
	}
	<-second.gone
	if second.alive || second.left != 0 {
		t.Errorf("left %d, alive %v", second.left, second.alive)
	}
}
