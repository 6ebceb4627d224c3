package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// roleVar has the test program play a Countersign that runs one command.
const roleVar = "TEST_ROLE"

// playRole is what this program does instead of testing, if it is told so.
func playRole() {
	role := os.Getenv(roleVar)
	if role == "" {
		return
	}
	os.Unsetenv(roleVar)
	os.Exit(map[string]func() int{"victim": playVictim, "unconfined": playUnconfined, "nobody": playNobody, "limited": playLimited, "crowded": playCrowded}[role]())
}

// as returns this program in a role.
func as(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// playVictim runs a command for as long as it lasts.
func playVictim() int { return runIn(os.Args[1], os.Args[2]) }

// runIn runs a command in a directory and prints its result.
func runIn(dir, command string, change ...func(*Options)) int {
	r, err := runnerIn(dir, change...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := r.Run(context.Background(), sh(command), "")
	r.o.Keeper.Dismiss() // they would end by themselves, and become children of the test
	os.Stdout.Write(o.Result)
	return 0
}

func runnerIn(dir string, change ...func(*Options)) (*Runner, error) {
	k, err := NewKeeper()
	if err != nil {
		return nil, err
	}
	o := Options{Dir: dir, Grace: 200 * time.Millisecond, Keeper: k}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// checkConfined is what is said beforehand of a command that is to be confined.
func checkConfined(dir string) error {
	r, err := runnerIn(dir, func(o *Options) { o.Confine = true })
	if err != nil {
		return err
	}
	return r.Check(sh("true"))
}

// TestKillingCountersignLeavesNoDescendant kills the process that holds the
// lifeline, and no other.
func TestKillingCountersignLeavesNoDescendant(t *testing.T) {
	for name, then := range map[string]string{
		"while the command runs":    "touch ready; sleep 300",
		"after it ended":            "touch ready; exec sleep 0.01",
		"with its helper suspended": "kill -STOP $PPID; touch ready; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			testKeeper(t) // what a killed helper leaves would come to us and be seen
			dir := t.TempDir()
			victim := as("victim", dir, zoo(then))
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the command is ready", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
			pids := zooPids(t, dir)
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := victim.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			// The helper, its lifeline cut, is our child now.
			until(t, "all are gone", func() bool {
				reapHelpers()
				for _, pid := range pids {
					if _, there := keep.Look(pid); there {
						return false
					}
				}
				return true
			})
			until(t, "the helper has ended", func() bool { reapHelpers(); return childless() })
		})
	}
}

// reapHelpers waits for dead children that nobody else waits for.
func reapHelpers() {
	for _, p := range keep.Procs() {
		if p.Parent == os.Getpid() && p.Dead {
			_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
		}
	}
}

func childless() bool {
	own, _ := unix.Getsid(0)
	for _, p := range keep.Procs() {
		if p.Parent == os.Getpid() && p.Session != own {
			return false
		}
	}
	return true
}

// until waits for something that no event tells.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}
