package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/harness"
)

func TestEndToEndNothingIsAskedOfAHarnessBeforeTheLoginEnvironmentIsThere(t *testing.T) {
	l := newLab(t)
	// A profile that takes its time, and writes down when it has ended.
	captured := filepath.Join(t.TempDir(), "captured")
	shell := filepath.Join(t.TempDir(), "shell")
	script := "#!/bin/sh\nsleep 1\nexport FROM_PROFILE=yes\n/bin/sh -c \"$3\"\necho >" + captured + "\n"
	if err := os.WriteFile(shell, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var early atomic.Int64
	client := l.hostHarness(harness.Options{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := os.Stat(captured); err != nil && strings.HasPrefix(r.URL.Path, "/v1/x/worker/") {
				early.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	item, err := client.Enqueue(t.Context(), "s1", "exec", map[string]string{"command": "echo $FROM_PROFILE"})
	if err != nil {
		t.Fatal(err)
	}
	l.start([]string{"SHELL=" + shell}, "worker", "--harness", l.origin, "--workdir", l.wrk, "--interval-ms", "50", "--approve", "all")
	eventually(t, "the worker answers", func() bool { return l.ps().PID != 0 })
	result, err := client.Await(t.Context(), item.ID, patience)
	if err != nil || !strings.Contains(string(result.Result), `"stdout":"yes\n"`) {
		t.Errorf("the command printed %s, %v", result.Result, err)
	}
	if n := early.Load(); n != 0 {
		t.Errorf("%d requests came before the environment was captured", n)
	}
}

func TestEndToEndClocksThatDisagreeByHoursChangeNoDecision(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"the harness is ahead": 2 * time.Hour, "the harness is behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.hostHarness(harness.Options{Now: func() time.Time { return time.Now().Add(ahead) }, Lease: 2 * time.Second}, nil)
			l.work("--lease-ms", "2000")
			e := l.enqueue("s1", "50s", "exec", "--", "echo ran > ran")
			id, code := l.waiting()
			out, _, _ := l.run("ps", "--json")
			var s struct {
				Waiting []struct {
					Age      int64 `json:"age_ms"`
					Decision int64 `json:"decision_ms"`
				}
			}
			if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Waiting) != 1 {
				t.Fatalf("%v in %s", err, out)
			}
			if w := s.Waiting[0]; w.Age < 0 || w.Age > patience.Milliseconds() || w.Decision <= 0 || w.Decision > (4*time.Minute).Milliseconds() {
				t.Errorf("it is %d ms old and has %d ms to be decided", w.Age, w.Decision)
			}
			if _, errs, exit := l.run("approve", id, code); exit != 0 {
				t.Fatalf("approve: %s", errs)
			}
			if exit := e.wait(); exit != 0 || l.file("ran") != "ran\n" {
				t.Errorf("exit %d, %q", exit, l.file("ran"))
			}
		})
	}
}

// bootedAgo makes a command see a clock by which the machine was booted that long
// ago. Where the system has no time namespaces, or lets nobody have one, the test
// is skipped.
func bootedAgo(t *testing.T, cmd *exec.Cmd, ago time.Duration) *exec.Cmd {
	t.Helper()
	var up float64
	text, err := os.ReadFile("/proc/uptime")
	if _, scanErr := fmt.Sscan(string(text), &up); err != nil || scanErr != nil {
		t.Skip("it is not known for how long this machine runs")
	}
	offset := fmt.Sprintf("%d", int64(ago.Seconds()-up))
	within := []string{"-U", "-r", "-T", "--boottime", offset, "--monotonic", offset}
	if out, err := exec.Command("unshare", append(within, "true")...).CombinedOutput(); err != nil {
		t.Skipf("this system lets the test have no time namespace: %v %s", err, out)
	}
	again := exec.Command("unshare", append(within, cmd.Args...)...)
	again.Env = cmd.Env
	return again
}

// The clock that leases are counted on begins anew with each boot.
func TestEndToEndAnItemIsTakenUpAgainAfterAReboot(t *testing.T) {
	for name, boots := range map[string][2]time.Duration{
		"after a long time, into the first seconds": {1000 * time.Hour, 3 * time.Second},
		"from the first seconds, into a later time": {3 * time.Second, 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.hostHarness(harness.Options{Lease: 2 * time.Second}, nil)
			start := func(ago time.Duration) (pid int) {
				cmd := bootedAgo(t, l.command("worker", "--harness", l.origin, "--workdir", l.wrk, "--interval-ms", "50", "--lease-ms", "2000"), ago)
				l.startCommand(cmd)
				eventually(t, "the worker answers", func() bool { pid = l.ps().PID; return pid != 0 })
				return pid
			}
			pid := start(boots[0])
			e := l.enqueue("s1", "50s", "exec", "--", "echo run >> runs")
			before, _ := l.waiting()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is gone", func() bool { return l.ps().PID == 0 })
			start(boots[1])
			id, code := l.waiting()
			if id != before {
				t.Errorf("hold %s became %s", before, id)
			}
			time.Sleep(3 * time.Second) // longer than a lease
			if _, errs, exit := l.run("approve", id, code); exit != 0 {
				t.Fatalf("approve: %s", errs)
			}
			if exit := e.wait(); exit != 0 || l.file("runs") != "run\n" {
				t.Errorf("exit %d, runs %q: %s", exit, l.file("runs"), e.out.String())
			}
		})
	}
}
