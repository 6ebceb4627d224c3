package execute

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// crowded is a user of whom there may be few processes and threads.
const (
	crowded     = nobody - 2
	mostCrowded = 60
)

// playCrowded runs commands, each under a new helper that has kept a quick one
// before, and prints how they ended.
func playCrowded() int {
	most, _ := strconv.ParseUint(os.Args[2], 10, 64)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return 1
	}
	r, err := runnerIn(os.Args[1], func(o *Options) { o.Confine = os.Args[3] == "confined" })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, c := range os.Args[4:] {
		r.o.Keeper.Dismiss()
		r.Run(context.Background(), sh("true"), "")
		o := r.Run(context.Background(), sh(c), "")
		fmt.Println(o.How, o.Exit, o.Reason)
	}
	r.o.Keeper.Dismiss()
	return 0
}

// asCrowded returns this program as that user in a directory of his, on one
// processor: there Go has the fewest threads to spare.
func asCrowded(t *testing.T, commands ...string) *exec.Cmd {
	return asMoreCrowded(t, mostCrowded, "", commands...)
}

// asMoreCrowded is asCrowded with so many, and how its commands run.
func asMoreCrowded(t *testing.T, most int, how string, commands ...string) *exec.Cmd {
	t.Helper()
	testKeeper(t) // what is left would come to us and be seen
	dir := ownDir(t, crowded)
	cmd := as("crowded", append([]string{dir, strconv.Itoa(most), how}, commands...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: crowded, Gid: crowded}}
	return cmd
}

// startOnOne starts a program that has one processor.
func startOnOne(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	one.Set(0)
	if err := unix.SchedGetaffinity(0, &all); err != nil || unix.SchedSetaffinity(0, &one) != nil {
		t.Skip("this machine does not let a thread choose its processor")
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// ofCrowded are the processes of that user that live.
func ofCrowded() (pids []int) {
	for _, p := range keep.Procs() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		if !p.Dead && strings.Contains(string(status), fmt.Sprintf("\nUid:\t%d\t", crowded)) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// usesUpAll is a command that starts processes while a condition holds.
const usesUpAll = `exec perl -MPOSIX -e '
$SIG{CHLD} = "IGNORE"; $until = time + 1;
while (%s) { $p = fork; if (defined $p && !$p) { setsid; sleep 60; exit } } exit 7'`

func TestACommandThatUsesUpAllProcessesKeepsItsHelperAndItsExitStatus(t *testing.T) {
	command := fmt.Sprintf(usesUpAll, "time < $until")
	cmd := asCrowded(t, command, command, command)
	var out strings.Builder
	cmd.Stdout = &out
	startOnOne(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if good := strings.Count(out.String(), "ended 7 "); good != 3 {
		t.Errorf("%d of 3:\n%s", good, out.String())
	}
}

func TestKillingCountersignLeavesNothingOfACommandThatUsesUpAllProcesses(t *testing.T) {
	for range 5 {
		victim := asCrowded(t, fmt.Sprintf(usesUpAll, "1"))
		startOnOne(t, victim)
		until(t, "it has used up many", func() bool { return len(ofCrowded()) > mostCrowded/2 })
		_ = victim.Process.Kill()
		_ = victim.Wait()
		until(t, "all are gone", func() bool { reapHelpers(); return len(ofCrowded()) == 0 && childless() })
	}
}

// What is to confine a command needs threads itself, and may not have them.
func TestWhatCannotBecomeTheCommandIsNotTakenForIt(t *testing.T) {
	if _, err := ConfinementLevel(); err != nil {
		t.Skipf("commands cannot be confined here: %v", err)
	}
	said := make(map[string]int)
	for most := 10; most <= 40; most += 2 {
		cmd := asMoreCrowded(t, most, "confined", "exit 7")
		cmd.Stderr = nil
		out, _ := cmd.Output() // this program, too, may not have the threads that it needs
		how, _, _ := strings.Cut(string(out), " ")
		said[how]++
		if how == string(Ended) && !strings.HasPrefix(string(out), "ended 7 ") {
			t.Errorf("with %d: %s", most, out)
		}
	}
	if said[string(Ended)] == 0 {
		t.Errorf("it ran nowhere: %v", said)
	}
}

// What a command leaves behind and what ends at once never adds up.
func TestOrphansThatEndTakeUpNoProcesses(t *testing.T) {
	cmd := asCrowded(t, "i=0; while [ $i -lt 400 ]; do (true &); i=$((i+1)); done 2>err; ! [ -s err ]")
	if out, err := cmd.Output(); err != nil || string(out) != "ended 0 \n" {
		t.Errorf("%s, %v", out, err)
	}
}
