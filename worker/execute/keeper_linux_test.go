package execute

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// theKeeper is the one Keeper of the test process.
var theKeeper = sync.OnceValues(NewKeeper)

func testKeeper(t testing.TB) *Keeper {
	t.Helper()
	k, err := theKeeper()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// zoo is a command with children of all kinds. Each writes its pid to a file of
// its name; then the command says that all are there, and goes on as is said.
func zoo(then string) string {
	return `
sh -c 'echo $$ >plain; exec sleep 300' &
setsid sh -c 'echo $$ >session; exec sleep 300' &
sh -c 'setsid sh -c "(echo \$\$ >daemon; exec sleep 300) & exit" & exit'
setsid sh -c 'trap "" TERM HUP INT; echo $$ >deaf; while :; do sleep 300; done' &
setsid env -i sh -c 'echo $$ >suspended; kill -STOP $$; exec sleep 300' &
echo $$ >command
for f in plain session daemon deaf suspended; do until [ -s $f ]; do sleep 0.01; done; done
echo all
` + then
}

var zooFiles = []string{"command", "plain", "session", "daemon", "deaf", "suspended"}

func zooPids(t *testing.T, dir string) (pids []int) {
	t.Helper()
	for _, name := range zooFiles {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, atoi(t, string(data)))
	}
	return pids
}

// checkGone fails for processes that are still there, dead ones too.
func checkGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if p, there := keep.Look(pid); there {
			t.Errorf("process %d is still there: %+v", pid, p)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// noChildren fails if this process has children of another session, dead ones
// too: helpers, or what they left.
func noChildren(t *testing.T) {
	t.Helper()
	testKeeper(t).Dismiss()
	own, _ := unix.Getsid(0)
	for _, p := range keep.Procs() {
		if p.Parent == os.Getpid() && p.Session != own {
			t.Errorf("a child was left: %+v", p)
		}
	}
}

func TestAStopLeavesNoDescendantWhateverItDid(t *testing.T) {
	r := newRunner(t)
	o, _ := stopped(t, r, zoo("sleep 300"), 1)
	if res := result(t, o); o.How != Stopped || res.ExitCode != 143 || res.Stdout != "all\n" {
		t.Errorf("outcome %+v", o)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestATimeLimitLeavesNoDescendant(t *testing.T) {
	r := newRunner(t)
	task := sh(zoo("sleep 300"))
	task.TimeLimit = 2 * time.Second
	if o, res := run(t, r, task); o.How != TimedOut || res.ExitCode != 124 || res.Stdout != "all\n" {
		t.Errorf("outcome %+v", o)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestWhatACommandLeftIsEndedCountedAndTold(t *testing.T) {
	r := newRunner(t)
	o, res := run(t, r, sh(zoo("exit 4")))
	if o.How != Ended || res.ExitCode != 4 || res.Stdout != "all\n" {
		t.Errorf("outcome %+v", o)
	}
	var n int
	if _, err := fmt.Sscanf(o.Reason, "It left processes running (%d); they were stopped.", &n); err != nil || n < 5 {
		t.Errorf("reason %q, want the number of processes", o.Reason)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestACommandThatLeavesNothingIsToldToHaveLeftNothing(t *testing.T) {
	o, res := run(t, newRunner(t), sh("sh -c 'exit 3' & wait; setsid true; echo done"))
	if o.Reason != "" || res.Stdout != "done\n" {
		t.Errorf("outcome %+v", o)
	}
	noChildren(t)
}

// forkRace is a command with eight processes that do nothing but fork and exit,
// half of them into a new session each time, some thousand times each.
const forkRace = `
cat >race <<'X'
trap '' TERM
n=$(($1 + 1)); [ $n = 20 ] && echo >>raced
[ $n -lt 3000 ] && $2 sh ./race $n $2 &
X
for i in 1 2 3 4; do sh ./race 0 & sh ./race 0 setsid & done
until [ -s raced ]; do sleep 0.01; done
echo racing
sleep 300
`

func TestAForkRaceIsLost(t *testing.T) {
	r := newRunner(t)
	o, _ := stopped(t, r, forkRace, 1)
	if o.How != Stopped || strings.Contains(o.Reason, "still run") {
		t.Errorf("outcome %+v", o)
	}
	for _, p := range keep.Procs() {
		if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID)); cwd == r.Dir() {
			t.Errorf("still there: %+v", p)
		}
	}
	noChildren(t)
}

func TestACommandThatKillsItsHelperLeavesNothing(t *testing.T) {
	r := newRunner(t)
	o, res := run(t, r, sh(zoo("kill -KILL $PPID; sleep 300")))
	if o.How != Lost || res.ExitCode != 125 || !res.Aborted || res.Stdout != "all\n" || !strings.Contains(res.Stderr, "Outcome unknown") {
		t.Errorf("outcome %+v", o)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestWhatAKilledHelperLeavesIsToldFromOthers(t *testing.T) {
	r := newRunner(t)
	// A program of ours that went on alone, as a browser does.
	browser := exec.Command("sh", "-c", "setsid sh -c 'echo $$; exec sleep 300 >&- 2>&-' & exit")
	out, err := browser.Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := atoi(t, string(out))
	other := make(chan Outcome)
	path := filepath.Join(t.TempDir(), "transcript")
	go func() {
		other <- r.Run(t.Context(), sh("echo ready; until [ -e killed ]; do sleep 0.01; done; echo fine"), path)
	}()
	waitForLines(t, path, 1)
	if o, _ := run(t, r, sh("setsid env -i sleep 300 & kill -KILL $PPID; sleep 300")); o.How != Lost {
		t.Errorf("outcome %+v", o)
	}
	if err := os.WriteFile(filepath.Join(r.Dir(), "killed"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := <-other; o.How != Ended || result(t, o).Stdout != "ready\nfine\n" {
		t.Errorf("another command: %+v", o)
	}
	if err := unix.Kill(ours, unix.SIGKILL); err != nil {
		t.Errorf("a program of ours was ended: %v", err)
	}
	_, _ = unix.Wait4(ours, nil, 0, nil)
	noChildren(t)
}

func TestACommandThatSuspendsItsHelperCanBeStopped(t *testing.T) {
	r := newRunner(t)
	o, _ := stopped(t, r, zoo("(while :; do kill -STOP $PPID; done) & sleep 300"), 1)
	if o.How != Stopped || o.Exit == 0 {
		t.Errorf("outcome %+v", o)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestACommandThatSuspendsItsHelperAndEndsHasItsOwnExitStatus(t *testing.T) {
	r := newRunner(t)
	if o, res := run(t, r, sh("kill -STOP $PPID; echo done; exit 3")); o.How != Ended || res.ExitCode != 3 || res.Stdout != "done\n" {
		t.Errorf("outcome %+v", o)
	}
	noChildren(t)
}

func TestTheKernelKillsACommandWithItsHelper(t *testing.T) {
	r := newRunner(t)
	run(t, r, sh("trap '' TERM; echo $$ >pid; kill -KILL $PPID; exec sleep 300"))
	data, _ := os.ReadFile(filepath.Join(r.Dir(), "pid"))
	checkGone(t, atoi(t, string(data)))
}

func TestACommandStartsWithItsSignalsAtTheirDefaults(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGUSR1)
	_, res := run(t, newRunner(t), sh("exec cat /proc/self/status"))
	for _, name := range []string{"SigBlk", "SigIgn"} {
		_, rest, _ := strings.Cut(res.Stdout, "\n"+name+":\t")
		mask, _, _ := strings.Cut(rest, "\n")
		// 32 and 33 are the C library's own: its posix_spawn, which make uses, leaves
		// them ignored.
		const own = 1<<31 | 1<<32
		if set, err := strconv.ParseUint(mask, 16, 64); err != nil || set&^own != 0 {
			t.Errorf("%s is not empty: %s", name, res.Stdout)
		}
	}
}

func TestACommandIsInAGroupAndASessionWithoutUs(t *testing.T) {
	_, res := run(t, newRunner(t), sh("cat /proc/$$/stat /proc/$PPID/stat"))
	lines := strings.Split(res.Stdout, "\n")
	if len(lines) < 2 {
		t.Fatalf("printed %q", res.Stdout)
	}
	command, helper := strings.Fields(lines[0]), strings.Fields(lines[1])
	own, _ := unix.Getsid(0)
	if command[4] != command[0] || helper[4] == command[4] || command[5] == strconv.Itoa(own) || helper[6] != "0" {
		t.Errorf("command %v, helper %v", command[:8], helper[:8])
	}
}

func TestDescriptorsOfTheHelperDoNotReachACommand(t *testing.T) {
	if _, res := run(t, newRunner(t), sh("ls /proc/$$/fd")); res.Stdout != "0\n1\n2\n" {
		t.Errorf("descriptors %q", res.Stdout)
	}
}

func TestAHelperThatIsNoneStartsNothing(t *testing.T) {
	for program, want := range map[string]string{"/bin/true": "did not start it", "/no/such/helper": "start the helper"} {
		k := newKeeper(program, "")
		r := newRunner(t, func(o *Options) { o.Keeper = k })
		if o, res := run(t, r, sh("touch effect")); o.How != CouldNotStart || res.ExitCode != 126 || !strings.Contains(o.Reason, want) &&
			!strings.Contains(o.Reason, "tell the helper") {
			t.Errorf("%s: %+v", program, o)
		}
		if _, err := os.Stat(filepath.Join(r.Dir(), "effect")); err == nil {
			t.Errorf("%s: it ran", program)
		}
	}
	noChildren(t)
}

func TestAProgramThatCannotBeAHelperGetsNoKeeper(t *testing.T) {
	canBeHelper.Store(false)
	defer canBeHelper.Store(true)
	if k, err := NewKeeper(); err == nil || !strings.Contains(err.Error(), "KeeperMain was not called") {
		t.Errorf("NewKeeper = %v, %v", k, err)
	}
}

func TestEachProcessIsAskedToEndOnce(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.Grace = time.Minute })
	for range 20 {
		o, _ := stopped(t, r, "trap 'echo bye' TERM; (trap 'echo child; exit' TERM; echo ready; while :; do sleep 0.01; done) & "+
			"echo ready; wait; wait; sleep 0.05; echo end", 2)
		if res := result(t, o); res.Stdout != "ready\nready\nbye\nchild\nend\n" && res.Stdout != "ready\nready\nchild\nbye\nend\n" {
			t.Fatalf("printed %q", res.Stdout)
		}
	}
}

// A link that takes the work directory's place in the last moment is not followed.
func TestTheDirectoryOfACommandIsNoLink(t *testing.T) {
	r := newRunner(t)
	root, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.Rename(r.Dir(), r.Dir()+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.Dir()+".old", r.Dir()); err != nil {
		t.Fatal(err)
	}
	for _, cwd := range []string{"", ".", "/", "./"} {
		if dir, err := r.commandDir(root, cwd); err == nil && dir != r.Dir()+".old" {
			t.Errorf("cwd %q: %s", cwd, dir)
		}
	}
}
