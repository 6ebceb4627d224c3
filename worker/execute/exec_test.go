//go:build unix

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"countersign/worker/api/wire"
)

func TestMain(m *testing.M) {
	KeeperMain()
	playRole()
	goleak.VerifyTestMain(m)
}

// newRunner returns a runner in an empty directory, with a short grace and with
// helpers where there are any.
func newRunner(t testing.TB, change ...func(*Options)) *Runner {
	t.Helper()
	o := Options{Dir: t.TempDir(), Grace: 100 * time.Millisecond, Keeper: testKeeper(t)}
	for _, c := range change {
		c(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Keeper.Dismiss)
	return r
}

func sh(command string) Task {
	return Task{Kind: wire.KindExec, Command: command, TimeLimit: time.Minute}
}

// run runs a task to its end and returns what is reported of it.
func run(t testing.TB, r *Runner, task Task) (Outcome, wire.ExecResult) {
	t.Helper()
	o := r.Run(t.Context(), task, filepath.Join(t.TempDir(), "out", "transcript"))
	return o, result(t, o)
}

func result(t testing.TB, o Outcome) (res wire.ExecResult) {
	t.Helper()
	if err := json.Unmarshal(o.Result, &res); err != nil {
		t.Fatalf("result %s: %v", o.Result, err)
	}
	if res.ExitCode != o.Exit || o.Failed || o.StartedAt.IsZero() || o.FinishedAt.Before(o.StartedAt) {
		t.Errorf("outcome %+v does not fit its result %+v", o, res)
	}
	return res
}

func TestACommandsOutputAndExitAreItsResult(t *testing.T) {
	o, res := run(t, newRunner(t), sh("echo out; echo err >&2; exit 3"))
	if want := (wire.ExecResult{ExitCode: 3, Stdout: "out\n", Stderr: "err\n"}); res != want {
		t.Errorf("result %+v, want %+v", res, want)
	}
	if o.How != Ended || o.StdoutBytes != 4 || o.StderrBytes != 4 || o.CutBytes != 0 || o.Reason != "" {
		t.Errorf("outcome %+v", o)
	}
	if o.Head != "out\nerr\n" && o.Head != "err\nout\n" {
		t.Errorf("head %q", o.Head)
	}
}

func TestACommandGetsItBytesForByteAndNoInput(t *testing.T) {
	_, res := run(t, newRunner(t), sh("printf '%s' 'a  \"b\" $x ‹\t\\n'; cat"))
	if want := "a  \"b\" $x ‹\t\\n"; res.Stdout != want {
		t.Errorf("printed %q, want %q", res.Stdout, want)
	}
}

func TestASignalIs128AndItsNumber(t *testing.T) {
	o, res := run(t, newRunner(t), sh("kill -SEGV $$"))
	if o.How != Signalled || o.Signal != "SIGSEGV" || res.ExitCode != 139 || !strings.Contains(o.Reason, "SIGSEGV") {
		t.Errorf("outcome %+v", o)
	}
	if res.Aborted || res.TimedOut {
		t.Errorf("result %+v says that we ended it", res)
	}
	if res.Stderr != "Countersign: the command was ended by signal SIGSEGV.\n" {
		t.Errorf("the agent is told %q", res.Stderr)
	}
}

// An agent is shown of a failed command nothing but its exit and its stderr.
func TestAnAgentIsToldWhyItsCommandWasStopped(t *testing.T) {
	for cause, want := range map[string]struct{ agent, operator string }{
		"stopped by the operator":                 {"the command was stopped by the operator.", "By the operator."},
		"stopped because Countersign is quitting": {"the command was stopped because Countersign is quitting.", "Because Countersign is quitting."},
		"the session stopped this work":           {"the command was stopped: the session stopped this work.", "The session stopped this work."},
	} {
		path := filepath.Join(t.TempDir(), "transcript")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan Outcome, 1)
		go func() { ended <- newRunner(t).Run(ctx, sh("printf oops >&2; echo ready; sleep 300"), path) }()
		waitForLines(t, path, 1)
		cancel(errors.New(cause))
		o := <-ended
		if res := result(t, o); res.Stderr != "oops\nCountersign: "+want.agent+"\n" || o.Reason != want.operator {
			t.Errorf("%s: the agent is told %q, the operator %q", cause, res.Stderr, o.Reason)
		}
		if kept, err := os.ReadFile(path); err != nil || strings.Contains(string(kept), "Countersign") {
			t.Errorf("the transcript has words that the command did not print: %q, %v", kept, err)
		}
		if o.StderrBytes != 4 {
			t.Errorf("%d bytes are said to be printed to stderr", o.StderrBytes)
		}
	}
}

func TestTheTimeLimitIs124(t *testing.T) {
	task := sh("echo begun; sleep 300")
	task.TimeLimit = time.Second
	o, res := run(t, newRunner(t), task)
	want := wire.ExecResult{ExitCode: 124, Stdout: "begun\n", TimedOut: true,
		Stderr: "Countersign: the command ran into its time limit of 1s and was stopped.\n"}
	if res != want {
		t.Errorf("result %+v, want %+v", res, want)
	}
	if o.How != TimedOut || !strings.Contains(o.Reason, "1s") {
		t.Errorf("outcome %+v", o)
	}
}

// stopped runs a command, cancels it when its transcript has so many lines, and
// returns the lines.
func stopped(t *testing.T, r *Runner, command string, lines int) (Outcome, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transcript")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan Outcome, 1)
	go func() { ended <- r.Run(ctx, sh(command), path) }()
	text := waitForLines(t, path, lines)
	cancel(errors.New("the session was stopped"))
	return <-ended, text
}

func waitForLines(t *testing.T, path string, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(path)
		if lines := strings.Split(string(data), "\n"); len(lines) > n {
			return lines[:n]
		}
	}
	t.Fatalf("%s never had %d lines", path, n)
	return nil
}

func checkDead(t *testing.T, pids ...string) {
	t.Helper()
	for _, s := range pids {
		pid, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			t.Fatalf("%q is no pid", s)
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if unix.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %d still runs: %s", pid, stat)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// inAGroup has a runner start commands in process groups alone.
func inAGroup(o *Options) { o.Keeper = nil }

// eachWay runs a test with helpers and without.
func eachWay(t *testing.T, test func(t *testing.T, change func(*Options))) {
	t.Run("under a helper", func(t *testing.T) { test(t, func(*Options) {}) })
	t.Run("in a group", func(t *testing.T) { test(t, inAGroup) })
}

func TestAStopEndsEveryProcessOfTheCommand(t *testing.T) {
	eachWay(t, testAStopEndsEveryProcess)
}

func testAStopEndsEveryProcess(t *testing.T, change func(*Options)) {
	o, pids := stopped(t, newRunner(t, change), "echo $$; sleep 300 & echo $!; sh -c 'sleep 300 & echo $!; wait' & wait", 3)
	res := result(t, o)
	if o.How != Stopped || res.ExitCode != 143 || !res.Aborted || !strings.Contains(o.Reason, "The session was stopped") {
		t.Errorf("outcome %+v", o)
	}
	if o.Signal != "" {
		t.Errorf("a stop of ours is told as the signal %s", o.Signal)
	}
	checkDead(t, pids...)
}

func TestAStopKillsWhatDoesNotEndWhenAsked(t *testing.T) {
	eachWay(t, testAStopKills)
}

func testAStopKills(t *testing.T, change func(*Options)) {
	o, pids := stopped(t, newRunner(t, change), "trap '' TERM; echo $$; while :; do sleep 300; done", 1)
	if res := result(t, o); o.How != Stopped || res.ExitCode != 137 || !res.Aborted {
		t.Errorf("outcome %+v", o)
	}
	checkDead(t, pids...)
}

func TestAStoppedCommandIsNeverZero(t *testing.T) {
	patient := newRunner(t, func(o *Options) { o.Grace = time.Minute })
	o, _ := stopped(t, patient, "trap 'echo bye; exit 0' TERM; echo ready; sleep 300 & wait", 1)
	if res := result(t, o); o.How != Stopped || res.ExitCode != 143 || res.Stdout != "ready\nbye\n" {
		t.Errorf("outcome %+v", o)
	}
	o, _ = stopped(t, patient, "trap 'exit 7' TERM; echo ready; sleep 300 & wait", 1)
	if res := result(t, o); o.How != Stopped || res.ExitCode != 7 {
		t.Errorf("outcome %+v", o)
	}
}

func TestASuspendedCommandCanBeStopped(t *testing.T) {
	eachWay(t, testASuspendedCommand)
}

func testASuspendedCommand(t *testing.T, change func(*Options)) {
	r := newRunner(t, change, func(o *Options) { o.Grace = time.Minute })
	o, pids := stopped(t, r, "echo $$; kill -STOP $$", 1)
	if res := result(t, o); res.ExitCode != 143 {
		t.Errorf("outcome %+v", o)
	}
	checkDead(t, pids...)
}

func TestWhatIsCancelledBeforeItStartsDoesNotStart(t *testing.T) {
	r := newRunner(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("quitting"))
	o := r.Run(ctx, sh("touch effect"), "")
	if res := result(t, o); o.How != CouldNotStart || res.ExitCode != 126 || !res.Aborted || !strings.Contains(o.Reason, "quitting") {
		t.Errorf("outcome %+v", o)
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), "effect")); err == nil {
		t.Error("it ran")
	}
}

func TestABackgroundChildIsStoppedAndTold(t *testing.T) { eachWay(t, testABackgroundChild) }

func testABackgroundChild(t *testing.T, change func(*Options)) {
	o, res := run(t, newRunner(t, change), sh("sleep 300 & echo $!"))
	if o.How != Ended || res.ExitCode != 0 || !strings.Contains(o.Reason, "left processes running") {
		t.Errorf("outcome %+v", o)
	}
	checkDead(t, res.Stdout)
}

func TestABackgroundChildThatIgnoresTermIsKilled(t *testing.T) { eachWay(t, testADeafChild) }

func testADeafChild(t *testing.T, change func(*Options)) {
	_, res := run(t, newRunner(t, change), sh("sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 300; done' & until [ -s pid ]; do sleep 0.01; done; cat pid"))
	checkDead(t, res.Stdout)
}

func TestSomethingThatEscapedAndKeepsTheOutputOpenDoesNotHangTheCall(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("no setsid")
	}
	o, res := run(t, newRunner(t, inAGroup), sh("setsid sh -c 'echo $$ >pid; exec sleep 300' & until [ -s pid ]; do sleep 0.01; done; cat pid; echo done"))
	lines := strings.Fields(res.Stdout)
	if len(lines) != 2 || lines[1] != "done" || res.ExitCode != 0 || !strings.Contains(o.Reason, "still runs") {
		t.Fatalf("outcome %+v, result %+v", o, res)
	}
	pid, _ := strconv.Atoi(lines[0])
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Errorf("the process that should have outlived the call: %v", err)
	}
	_, _ = unix.Wait4(pid, nil, 0, nil) // it is our child if we are a subreaper
}

func TestWhatCannotStartIsAResultThatSaysWhy(t *testing.T) {
	r := newRunner(t)
	if err := os.WriteFile(filepath.Join(r.Dir(), "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	noShell := newRunner(t, func(o *Options) { o.Shell = []string{"/no/such/shell", "-c"} })
	in := func(cwd string) Task { c := sh("touch effect"); c.Cwd = cwd; return c }
	for _, c := range []struct {
		name string
		r    *Runner
		task Task
		exit int
		want string
	}{
		{"missing directory", r, in("no/such"), 126, `"no/such" does not exist`},
		{"a file as directory", r, in("file"), 126, `"file" is not a directory`},
		{"outside", r, in("../"), 126, "leads outside the work directory"},
		{"no shell", noShell, sh("true"), 127, "/no/such/shell was not found"},
		{"2 MB command", r, sh("true " + strings.Repeat("x", 2<<20)), 126, "too long"},
	} {
		o, res := run(t, c.r, c.task)
		if o.How != CouldNotStart || res.ExitCode != c.exit || !strings.Contains(res.Stderr, c.want) || o.Reason == "" {
			t.Errorf("%s: %+v, want exit %d and %q", c.name, o, c.exit, c.want)
		}
	}
}

func TestCheckSaysBeforehandWhatCannotStart(t *testing.T) {
	r := newRunner(t)
	var u *Unfit
	if err := r.Check(Task{Kind: "exec", Command: "ls", Cwd: "../x"}); !errors.As(err, &u) {
		t.Errorf("Check = %v, want an Unfit", err)
	}
	if err := r.Check(sh("ls")); err != nil {
		t.Error(err)
	}
	if err := r.Check(Task{Kind: "read", Path: "missing"}); err != nil {
		t.Error(err)
	}
}

func TestTheDirectoryIsTheRootOrInsideIt(t *testing.T) {
	r := newRunner(t)
	os.MkdirAll(filepath.Join(r.Dir(), "a", "b"), 0o755)
	os.Symlink("a/b", filepath.Join(r.Dir(), "in"))
	os.Symlink("/", filepath.Join(r.Dir(), "out"))
	os.Symlink("../..", filepath.Join(r.Dir(), "up"))
	for cwd, want := range map[string]string{
		"": "", "/": "", ".": "", "a": "/a", "/a/b": "/a/b", "//a/": "/a", "in": "/a/b", "in/..": "/a", "a/../a": "/a",
	} {
		task := sh("pwd; pwd -P; echo $PWD")
		task.Cwd = cwd
		_, res := run(t, r, task)
		if line := r.Dir() + want + "\n"; res.Stdout != line+line+line {
			t.Errorf("cwd %q runs in %q, want %s", cwd, res.Stdout, line)
		}
	}
	for _, cwd := range []string{"..", "/..", "a/../..", "out", "out/tmp", "up", "in/../../.."} {
		task := sh("pwd")
		task.Cwd = cwd
		if o, res := run(t, r, task); o.How != CouldNotStart || res.Stdout != "" {
			t.Errorf("cwd %q ran: %s", cwd, o.Result)
		}
	}
}

func TestMuchOutputIsCutInTheReportAndTakesBoundedMemory(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.TranscriptLimit = 4 << 20 })
	path := filepath.Join(t.TempDir(), "transcript")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := r.Run(t.Context(), sh("echo first; yes | head -c 50000000; echo last; echo side >&2"), path)
	runtime.ReadMemStats(&after)
	// Everything ever allocated, garbage included: it cannot depend on timing.
	if used := after.TotalAlloc - before.TotalAlloc; used > 12<<20 {
		t.Errorf("%d bytes were allocated for 50 MB of output", used)
	}
	const total = 50_000_000 + len("first\nlast\n")
	res := result(t, o)
	if o.StdoutBytes != int64(total) || o.StderrBytes != 5 || res.ExitCode != 0 || res.Stderr != "side\n" {
		t.Errorf("%d and %d bytes, exit %d", o.StdoutBytes, o.StderrBytes, res.ExitCode)
	}
	note := fmt.Sprintf("\n… %d bytes cut …\n", o.CutBytes)
	head, end, ok := strings.Cut(res.Stdout, note)
	if !ok || !strings.HasPrefix(head, "first\ny\n") || !strings.HasSuffix(end, "y\nlast\n") {
		t.Errorf("report of %d bytes without head, %q and tail", len(res.Stdout), note)
	}
	if len(head)+len(end)+int(o.CutBytes) != total || len(head)+len(end) > r.o.ReportLimit {
		t.Errorf("head %d + tail %d + cut %d is not %d", len(head), len(end), o.CutBytes, total)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 || info.Size() < 4<<20-1000 {
		t.Errorf("transcript: %v bytes, %v, want just under the limit", info.Size(), err)
	}
}

func TestInvalidUTF8AndNULReachTheReportAsText(t *testing.T) {
	o, res := run(t, newRunner(t), sh(`printf 'a\377\000b\342\202'; printf '\303\050' >&2`))
	if res.Stdout != "a\ufffd\x00b\ufffd\ufffd" || res.Stderr != "\ufffd(" {
		t.Errorf("stdout %q, stderr %q", res.Stdout, res.Stderr)
	}
	if o.StdoutBytes != 6 || o.StderrBytes != 2 || o.CutBytes != 0 {
		t.Errorf("outcome %+v", o)
	}
}

func TestAFullDiskDoesNotReachTheCommand(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	for _, full := range []string{"transcript", "transcript.marks"} {
		dir := t.TempDir()
		if err := os.Symlink("/dev/full", filepath.Join(dir, full)); err != nil {
			t.Fatal(err)
		}
		r := newRunner(t)
		o := r.Run(t.Context(), sh("echo a; echo no >&2; touch effect; echo b"), filepath.Join(dir, "transcript"))
		if res := result(t, o); o.How != Ended || res.ExitCode != 0 || res.Stdout != "a\nb\n" || !strings.Contains(o.Reason, "no space left") {
			t.Errorf("%s: outcome %+v", full, o)
		}
		if _, err := os.Stat(filepath.Join(r.Dir(), "effect")); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnusableTranscriptPathDoesNotReachTheCommand(t *testing.T) {
	r := newRunner(t)
	o := r.Run(t.Context(), sh("echo a"), "/dev/null/transcript")
	if res := result(t, o); res.Stdout != "a\n" || !strings.Contains(o.Reason, "could not be written to disk") {
		t.Errorf("outcome %+v", o)
	}
}

func cancelled() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("session stopped"))
	return ctx, cancel
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
