package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestEndToEndOneInstancePerDataDirectory(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work()
	eventually(t, "the worker answers", func() bool { return l.ps().PID != 0 })
	if _, errs, code := l.run("worker", "--harness", l.origin, "--workdir", l.wrk); code != 1 || !strings.Contains(errs, "already running for data directory "+l.data) {
		t.Errorf("a second worker: exit %d, %s", code, errs)
	}
	if _, errs, code := l.run(); code != 1 || !strings.Contains(errs, "a headless worker") {
		t.Errorf("a desktop start: exit %d, %s", code, errs)
	}
}

func TestEndToEndATermLetsWorkEndWithinTheGraceAndThenStopsIt(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work("--approve", "all", "--grace", "4s")
	quick := l.enqueue("quick", "50s", "exec", "--", "touch quick; while [ ! -e go ]; do sleep 0.05; done; echo done")
	slow := l.enqueue("slow", "50s", "exec", "--", "touch slow; sleep 600")
	eventually(t, "both run", func() bool {
		_, err1 := os.Stat(filepath.Join(l.wrk, "quick"))
		_, err2 := os.Stat(filepath.Join(l.wrk, "slow"))
		return err1 == nil && err2 == nil
	})
	w.signal(syscall.SIGTERM)
	if err := os.WriteFile(filepath.Join(l.wrk, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.wait(); code != 0 {
		t.Errorf("the worker: exit %d", code)
	}
	if code := quick.wait(); code != 0 || quick.out.String() != "done\n" {
		t.Errorf("quick: exit %d, %s", code, quick.out.String())
	}
	if code := slow.wait(); code != 0 || !strings.Contains(slow.out.String(), "[exit ") {
		t.Errorf("slow: exit %d, %s", code, slow.out.String())
	}
}

func TestEndToEndASecondSignalEndsAtOnce(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work("--approve", "all", "--grace", "1h")
	l.enqueue("s1", "50s", "exec", "--", "echo $$ > pid; exec sleep 600")
	eventually(t, "it runs", func() bool { return strings.HasSuffix(l.file("pid"), "\n") })
	l.endsLater("pid")
	w.signal(syscall.SIGTERM)
	eventually(t, "it waits for what runs", func() bool { return strings.Contains(w.out.String(), "waiting for what runs") })
	w.signal(syscall.SIGTERM)
	if code := w.wait(); code != 1 {
		t.Errorf("exit %d", code)
	}
}

func TestEndToEndOnceEndsAfterOneItem(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work("--approve", "all", "--once")
	if code := l.enqueue("s1", "50s", "exec", "--", "true").wait(); code != 0 {
		t.Errorf("the item: exit %d", code)
	}
	if code := w.wait(); code != 0 {
		t.Errorf("the worker: exit %d", code)
	}
}

func TestEndToEndAChangedConfigurationAppliesWhileItRuns(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	path := filepath.Join(l.cfg, "config.toml")
	write := func(rest string) {
		t.Helper()
		text := fmt.Sprintf("[[connection]]\nharness = %q\nworkdir = %q\n%s\n", l.origin, l.wrk, rest)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("max-held = 3")
	w := l.start(nil, "worker")
	held := func(n int) func() bool {
		return func() bool { s := l.ps(); return len(s.Connections) == 1 && s.Connections[0].MaxHeld == n }
	}
	eventually(t, "the first configuration is in force", held(3))
	write("max-held = 5")
	eventually(t, "the second is", held(5))
	write("max-held = -1")
	eventually(t, "the third is refused", func() bool { return strings.Contains(w.out.String(), "connection.max-held = -1") })
	if !held(5)() {
		t.Error("the last good configuration was given up")
	}
	write("max-held = 5\nlease-ms = 5000")
	eventually(t, "the fourth is told to need a restart", func() bool { return strings.Contains(w.out.String(), "at the next start") })
}

func TestEndToEndUnusableStartsAreToldWithNameValueAndExpectation(t *testing.T) {
	l := newLab(t)
	file := filepath.Join(l.wrk, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(broken, []byte("[limits]\nread-bytes = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := []string{"worker", "--harness", "http://127.0.0.1:9", "--workdir", l.wrk}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"worker"}, "--harness: missing"},
		{[]string{"worker", "--harness", "nowhere"}, "--harness = nowhere: "},
		{[]string{"worker", "--harness", "http://127.0.0.1:9"}, "--workdir: missing"},
		{[]string{"worker", "--harness", "http://127.0.0.1:9", "--workdir", l.wrk + "/no"}, "--workdir = " + l.wrk + "/no: does not exist"},
		{[]string{"worker", "--harness", "http://127.0.0.1:9", "--workdir", file}, "--workdir = " + file + ": is not a directory"},
		{[]string{"worker", "--harness", "http://127.0.0.1:9", "--workdir", filepath.Dir(l.cfg)}, "contains or lies in"},
		{[]string{"worker", "--max-held", "3"}, "--max-held: expected together with --harness"},
		{append(at, "--max-held", "0"), "--max-held = 0: expected a whole number from 1 to"},
		{append(at, "--max-running", "many"), "--max-running: \"many\" is given; expected a whole number"},
		{append(at, "--lease-ms", "1"), "--lease-ms = 1: expected a whole number from 200 to 3600000"},
		{append(at, "--interval-ms=-5"), "--interval-ms = -5: expected"},
		{append(at, "--decision-timeout", "0s"), "--decision-timeout = 0s: expected a duration from 1s to 24h"},
		{append(at, "--approve", "some"), "--approve = some: expected one of rules, ask, all"},
		{append(at, "--grace=-1s"), "--grace = -1s: expected a duration"},
		{append(at, "--log-level", "loud"), "--log-level = loud: expected one of debug, info, warn, error"},
		{append(at, "--log-format", "xml"), "--log-format = xml: expected one of text, json"},
		{append(at, "--config-dir", filepath.Dir(broken)), broken + ":2: limits.read-bytes = 0: expected a whole number"},
		{[]string{"harness", "--listen", "0.0.0.0:0"}, "--listen = 0.0.0.0:0: expected an address of the loopback"},
		{[]string{"harness", "--lease-ms", "0"}, "--lease-ms = 0: expected"},
		{[]string{"enqueue", "exec", "--", "true"}, "--session"},
		{[]string{"history", "--since", "yesterday"}, "--since = yesterday: expected a date"},
		{[]string{"history", "--outcome", "fine"}, "--outcome = fine: expected one of Reported"},
		{[]string{"history", "--limit", "0"}, "--limit = 0: expected a whole number"},
		{[]string{"stop"}, "stop: expected the number of an item, or --all"},
		{[]string{"bogus"}, "unknown command bogus; see countersign --help"},
		{[]string{"desktop", "bogus"}, "unexpected argument bogus"},
		{[]string{"--config-dir", l.wrk + "/no", "ps"}, "--config-dir = " + l.wrk + "/no: expected an existing directory"},
		{[]string{"worker", "--data-dir", file + "/x"}, "--harness: missing"},
		{append(at, "--data-dir", "/proc/none"), "--data-dir = /proc/none: expected a directory"},
		{append(at, "--worker-id", ""), "--worker-id"},
		{append(at, "--worker-id", "a\nb"), "--worker-id = \"a\\nb\": expected"},
		{append(at, "--environment-id", "\x1b"), "--environment-id = \"\\x1b\": expected"},
		{append(at, "--interval-ms", "0"), "--interval-ms = 0: expected a whole number from 1 to 60000"},
		{[]string{"worker", "--harness", "127.0.0.1:3000", "--workdir", l.wrk}, "such as http://127.0.0.1:3000"},
		{[]string{"harness", "--db", file + "/h.db"}, "--db = " + file + "/h.db: expected"},
		{[]string{"harness", "--db", l.wrk}, "--db = " + l.wrk + ": expected"},
		{[]string{"enqueue", "--session", "", "list"}, "--session: nothing is given; write --session=S"},
		{[]string{"pause", "--for", "0s"}, "--for = 0s: expected a duration from 1s to 168h"},
		{[]string{"pause", "--for", "-3s"}, "--for = -3s: expected a duration from 1s to 168h"},
		{[]string{"history", "--limit", "-1"}, "--limit = -1: expected a whole number from 1"},
	} {
		_, errs, code := l.run(c.args...)
		if code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s\nwant %s", c.args, code, errs, c.want)
		}
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := l.run(append(at, "--data-dir", open)...); code != 2 || !strings.Contains(errs, "run: chmod 0700 "+open) {
		t.Errorf("an open data directory: exit %d, %s", code, errs)
	}
	secrets := filepath.Join(l.cfg, "credentials.toml")
	if err := os.WriteFile(secrets, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "data")
	if _, errs, code := l.run(append(at, "--data-dir", elsewhere)...); code != 2 || !strings.Contains(errs, "run: chmod 0600 "+secrets) {
		t.Errorf("open credentials: exit %d, %s", code, errs)
	}
	if _, err := os.Stat(l.data); !errors.Is(err, os.ErrNotExist) {
		t.Error("a start that was refused made the data directory")
	}
}

func TestEndToEndWithoutAnInstanceOrADisplayTheWayOnIsTold(t *testing.T) {
	l := newLab(t)
	for _, args := range [][]string{{"ps"}, {"show", "1"}, {"approve", "1", "abcdef012345"}, {"pause"}, {"stop", "--all"}} {
		if _, errs, code := l.run(args...); code != 1 || !strings.Contains(errs, "No Countersign is running for data directory "+l.data) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	for _, args := range [][]string{{}, {"demo"}} {
		if _, errs, code := l.run(args...); code != 1 || !strings.Contains(errs, "no display") || !strings.Contains(errs, "countersign worker --harness") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
		cmd := l.command(args...)
		cmd.Env = append(cmd.Env, "DISPLAY=127.0.0.1:60000")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), `DISPLAY is "127.0.0.1:60000"`) || strings.Contains(string(out), "panic") {
			t.Errorf("%v with an unusable display: exit %d, %s", args, code, out)
		}
	}
	if out, errs, code := l.run("version"); code != 0 || !strings.HasPrefix(out, "countersign ") || errs != "" {
		t.Errorf("version: exit %d, %q, %q", code, out, errs)
	}
}
