package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"countersign/worker/execute"
)

func TestEndToEndKilledItLeavesNoDescendantOfACommand(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work("--approve", "all")
	l.enqueue("s1", "1s", "exec", "--",
		"setsid sh -c 'trap \"\" TERM; echo $$ > away; exec sleep 600' & sleep 600 & echo $! > beside; wait")
	alive := func(file string) bool {
		pid, err := strconv.Atoi(strings.TrimSpace(l.file(file)))
		return err == nil && syscall.Kill(pid, 0) == nil
	}
	l.endsLater("away")
	l.endsLater("beside")
	eventually(t, "the command and what it put aside run", func() bool { return alive("away") && alive("beside") })
	w.kill()
	eventually(t, "nothing of it is left", func() bool { return !alive("away") && !alive("beside") })
}

func TestEndToEndAnEscapedToolCallCannotUseTheControlSocket(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work("--approve", "all")
	call := fmt.Sprintf("setsid -f sh -c '%s --data-dir %s pause > said 2>&1; echo done >> said'; for i in $(seq 100); do grep -q done said && break; sleep 0.1; done",
		l.bin, l.data)
	e := l.enqueue("s1", "50s", "exec", "--", call)
	l.approve() // it names what is ours: --approve all does not let it run unasked
	if e.wait() != 0 || !strings.Contains(l.file("said"), "from inside a tool call") {
		t.Errorf("%s; the call was told %q", e.out.String(), l.file("said"))
	}
	if l.ps().Paused {
		t.Error("a tool call paused Countersign")
	}
}

func TestEndToEndConfinedCommandsWriteOnlyWhereTheyMay(t *testing.T) {
	if _, err := execute.ConfinementLevel(); err != nil {
		t.Skip("this kernel cannot confine: ", err)
	}
	l := newLab(t)
	l.serveHarness("--no-auth")
	outside, listed := t.TempDir(), t.TempDir()
	config := fmt.Sprintf("[[connection]]\nharness = %q\nworkdir = %q\n[confinement]\nconfine = true\nwritable = [%q]\n", l.origin, l.wrk, listed)
	if err := os.WriteFile(filepath.Join(l.cfg, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w := l.start(nil, "worker", "--approve", "all")
	out, errs, code := l.run("enqueue", "--harness", l.origin, "--session", "s1", "exec", "--",
		"touch inside "+listed+"/listed \"$TMPDIR/own\" && touch "+outside+"/outside; echo exit $?")
	if code != 0 || !strings.Contains(out, "exit 1") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for path, want := range map[string]bool{l.wrk + "/inside": true, listed + "/listed": true, outside + "/outside": false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it made: %v", path, err, want)
		}
	}
	if !strings.Contains(w.out.String(), "commands are confined") {
		t.Errorf("the log does not say that commands are confined: %s", w.out.String())
	}
}
