package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"countersign/harness"
)

func TestEndToEndWhatIsOverIsShownFromTheHistory(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	e := l.enqueue("s1", "50s", "exec", "--", "echo seen; exit 3")
	id, code := l.waiting()
	if _, errs, exit := l.run("stop", id); exit != 1 || !strings.Contains(errs, "decline "+id) || !strings.Contains(errs, "release "+id) {
		t.Errorf("stop of what waits: exit %d, %s", exit, errs)
	}
	if out, errs, exit := l.run("approve", id, code); exit != 0 || !strings.Contains(out, "--data-dir "+l.data+" tail "+id) {
		t.Fatalf("approve: exit %d, %s%s", exit, out, errs)
	}
	e.wait()
	eventually(t, "it is over", func() bool { return len(l.ps().Finished) == 1 })
	for _, intent := range [][]string{{"approve", id, code}, {"decline", id}, {"release", id}, {"stop", id}} {
		if _, errs, exit := l.run(intent...); exit != 1 || !strings.Contains(errs, "it is over (Reported): ") || !strings.Contains(errs, " show "+id) {
			t.Errorf("%v of what is over: exit %d, %s", intent, exit, errs)
		}
	}
	w.signal(syscall.SIGTERM)
	w.wait()
	for range 2 { // after the end, and in front of another instance
		out, errs, exit := l.run("show", id)
		for _, want := range []string{"│ echo seen; exit 3", "accept status   Reported", "exit            3", "approved by operator", "│ seen", "starting", "delivered"} {
			if exit != 0 || !strings.Contains(out, want) {
				t.Errorf("exit %d, %q is not in %s%s", exit, want, out, errs)
			}
		}
		if strings.Contains(out, "approve "+id) {
			t.Errorf("an approval is suggested: %s", out)
		}
		l.work()
		eventually(t, "the next worker answers", func() bool { return l.ps().PID != 0 })
	}
	for _, command := range []string{"show", "tail"} {
		if _, errs, exit := l.run(command, "999"); exit != 1 || !strings.Contains(errs, command+" 999: no item of this number was ever held here") {
			t.Errorf("%s 999: exit %d, %s", command, exit, errs)
		}
	}
}

func TestEndToEndWhatACommandLeavesInTheBackgroundEndsWithIt(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work("--approve", "all")
	l.endsLater("pid")
	if code := l.enqueue("s1", "50s", "exec", "--", "setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.05; done").wait(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(l.file("pid")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

func TestEndToEndAPortThatIsTakenIsToldWithTheFlagForAnother(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	address := strings.TrimPrefix(l.origin, "http://")
	_, errs, exit := l.run("harness", "--listen", address, "--db", filepath.Join(l.wrk, "second.db"), "--no-auth")
	if exit != 2 || !strings.Contains(errs, "--listen = "+address+": another program has this port") {
		t.Errorf("exit %d, %s", exit, errs)
	}
}

func TestEndToEndAnEditThatIsEmptyIsSaidToBe(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work()
	l.enqueue("s1", "50s", "exec", "--", "echo one")
	id, code := l.waiting()
	if _, errs, exit := l.run("approve", id, code, "--edited"); exit != 1 || !strings.Contains(errs, "stdin has no command") {
		t.Errorf("exit %d, %s", exit, errs)
	}
	if _, errs, exit := l.run("approve", id, code, "--reads", "."); exit != 1 || !strings.Contains(errs, "only reads and lists") {
		t.Errorf("exit %d, %s", exit, errs)
	}
}

func TestEndToEndTailPrintsMuchOutputInItsOrder(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work("--approve", "all")
	l.enqueue("s1", "50s", "exec", "--", "seq 1 200000; echo on stderr >&2; sleep 0.2; echo last").wait()
	cmd := l.command("tail", "1")
	out, err := cmd.Output()
	var want strings.Builder
	for i := range 200000 {
		fmt.Fprintln(&want, i+1)
	}
	// A line that had not been read whole when stderr came is in two parts.
	if whole := strings.NewReplacer("\n", ""); err != nil || whole.Replace(string(out)) != whole.Replace(want.String()+"last") {
		t.Errorf("%v: %d bytes", err, len(out))
	}
}

func TestEndToEndContentThatIsNotTextIsNotSentChanged(t *testing.T) {
	l := newLab(t)
	l.hostHarness(harness.Options{}, nil)
	for _, work := range [][]string{{"write", "f"}, {"exec", "--", "echo \xff"}, {"read", "\xff"}} {
		_, errs, code := l.runWith("\x00\xff\xfe", append([]string{"enqueue", "--harness", l.origin, "--session", "s1", "--timeout", "1s"}, work...)...)
		if code != 2 || !strings.Contains(errs, "expected text in UTF-8") {
			t.Errorf("%q: exit %d, %s", work, code, errs)
		}
	}
}

func TestEndToEndTheHarnessKeepsItsKeyAcrossRestarts(t *testing.T) {
	l := newLab(t)
	db := filepath.Join(l.wrk, "h.db")
	first := l.serveHarness("--db", db)
	_, after, _ := strings.Cut(first.out.String(), "API key, shown only now: ")
	key, _, _ := strings.Cut(after, "\n")
	if stored, err := os.ReadFile(db + ".key"); err != nil || key == "" || strings.Contains(string(stored), key) {
		t.Errorf("the key %q is kept as %q, %v", key, stored, err)
	}
	first.signal(syscall.SIGTERM)
	first.wait()
	again := l.serveHarness("--db", db)
	if said := again.out.String(); !strings.Contains(said, "remove "+db+".key") || strings.Contains(said, "shown only now") {
		t.Errorf("the second start printed %s", said)
	}
	for given, want := range map[string]int{key: 3, "another": 1} { // 3: taken, and nobody claims it
		cmd := l.command("enqueue", "--harness", l.origin, "--session", "s1", "--timeout", "100ms", "list")
		cmd.Env = append(cmd.Env, "MANAGED_AGENTS_API_KEY="+given)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want || want == 1 && !strings.Contains(string(out), "MANAGED_AGENTS_API_KEY") {
			t.Errorf("with the key %q: exit %d, %s", given, code, out)
		}
	}
}

func TestEndToEndAWorkDirectoryOfTheFileIsNamedWithFileLineAndConnection(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(l.cfg, "config.toml")
	text := "[[connection]]\nharness = \"http://127.0.0.1:1\"\nworkdir = " + strconv.Quote(l.wrk) +
		"\n\n[[connection]]\nname = \"second\"\nharness = \"http://127.0.0.1:2\"\nworkdir = \"/no/such\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range []string{"DISPLAY=", "DISPLAY=:0"} { // the second: the desktop app looks before it opens a window
		args := []string{"worker"}
		if env == "DISPLAY=:0" {
			args = nil
		}
		cmd := l.command(args...)
		cmd.Env = append(cmd.Env, env)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), path+`:8: connection.workdir of "second" = "/no/such": does not exist`) {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}
