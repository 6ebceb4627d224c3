package main_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker/api/wire"
)

var acceptCode = regexp.MustCompile(`config accept ([0-9a-f]{12})\n`)

// accept accepts a change of what guards the machine, and returns its code.
func (l *lab) accept() string {
	l.t.Helper()
	out, errs, exit := l.run("config", "pending")
	m := acceptCode.FindStringSubmatch(out)
	if exit != 0 || m == nil {
		l.t.Fatalf("config pending: exit %d, %s%s", exit, out, errs)
	}
	if out, errs, exit := l.run("config", "accept", m[1]); exit != 0 || !strings.Contains(out, "in force") {
		l.t.Fatalf("config accept: exit %d, %s%s", exit, out, errs)
	}
	return m[1]
}

func TestEndToEndAChangeOfWhatGuardsTheMachineWaitsUntilItIsAccepted(t *testing.T) {
	l := newLab(t)
	client := l.hostHarness(harness.Options{}, nil)
	nothing := func(when string) {
		t.Helper()
		if out, errs, exit := l.run("config", "pending"); exit != 0 || !strings.HasPrefix(out, "Nothing waits: ") {
			t.Errorf("%s: exit %d, %s%s", when, exit, out, errs)
		}
	}
	nothing("before the first start")
	run := func(env ...string) string {
		t.Helper()
		w := l.start(append(env, "SHELL=/bin/sh", "REMOVED=seen"), "worker", "--approve", "all", "--once")
		e := l.enqueue("s1", "50s", "exec", "--", "echo got $REMOVED")
		if e.wait() != 0 || w.wait() != 0 {
			t.Fatalf("%s%s", e.out.String(), w.out.String())
		}
		return e.out.String()
	}
	l.configure("[environment]\nremove = [\"REMOVED\"]")
	if out := run(); out != "got\n" {
		t.Errorf("at the first start: %q", out)
	}
	nothing("after the first start")

	item, err := client.Enqueue(t.Context(), "s1", wire.KindExec, wire.Exec{Command: "echo got $REMOVED > ran"})
	if err != nil {
		t.Fatal(err)
	}
	l.configure("")
	refused := func(args ...string) {
		t.Helper()
		out, errs, exit := l.run(append([]string{"worker", "--approve", "all", "--once"}, args...)...)
		for _, want := range []string{filepath.Join(l.cfg, "config.toml"), "Nothing was claimed or run", "\n-environment.remove = \"REMOVED\"\n", " config accept "} {
			if exit != 2 || !strings.Contains(errs, want) {
				t.Errorf("worker %v: exit %d, %q is not in %s%s", args, exit, want, out, errs)
			}
		}
	}
	refused()
	refused("--harness", l.origin, "--workdir", l.wrk) // what the file says of the environment would hold there, too
	var free *harness.AwaitError
	if _, err := client.Await(t.Context(), item.ID, 10*time.Millisecond); !errors.As(err, &free) || free.Code != wire.CodeQueueTimeout {
		t.Errorf("it was claimed: %v", err)
	}
	if d, out, exit := l.doctor(nil); exit != 1 || d.Problems != 1 || !strings.Contains(out, "config pending") {
		t.Errorf("doctor: exit %d, %s", exit, out)
	}
	if _, errs, exit := l.run("config", "accept", "000000000000"); exit != 1 || !strings.Contains(errs, "look at the change again") {
		t.Errorf("another code: exit %d, %s", exit, errs)
	}
	refused()

	out, _, _ := l.run("config", "pending")
	outdated := acceptCode.FindStringSubmatch(out)[1]
	l.configure("[environment]\npass = [\"DISPLAY\"]")
	if _, errs, exit := l.run("config", "accept", outdated); exit != 1 || !strings.Contains(errs, "look at the change again") {
		t.Errorf("an outdated code: exit %d, %s", exit, errs)
	}
	l.configure("")
	if code := l.accept(); code != outdated {
		t.Errorf("the code of the same change is %s, and was %s", code, outdated)
	}
	nothing("once accepted")
	if _, errs, exit := l.run("config", "accept", outdated); exit != 1 || !strings.Contains(errs, "no change") {
		t.Errorf("accepted again: exit %d, %s", exit, errs)
	}
	w := l.start([]string{"SHELL=/bin/sh", "REMOVED=seen"}, "worker", "--approve", "all", "--once")
	if code := w.wait(); code != 0 || l.file("ran") != "got seen\n" {
		t.Errorf("accepted: exit %d, it ran with %q, %s", code, l.file("ran"), w.out.String())
	}
}

func TestEndToEndWhatFlagsSayInsteadOfTheFileNeedsNoAccepting(t *testing.T) {
	l := newLab(t)
	l.hostHarness(harness.Options{}, nil)
	l.configure("")
	w := l.start(nil, "worker")
	eventually(t, "the first start is connected", func() bool { s := l.ps(); return len(s.Connections) == 1 })
	w.signal(syscall.SIGTERM)
	w.wait()
	text := "[[connection]]\nname = \"other\"\nharness = \"http://127.0.0.1:1\"\nworkdir = \"" + l.wrk + "\"\n"
	l.write("config.toml", text)
	l.work("--approve", "all")
	if e := l.enqueue("s1", "50s", "exec", "--", "true"); e.wait() != 0 {
		t.Errorf("%s", e.out.String())
	}
	if out, _, exit := l.run("config", "pending"); exit != 0 || !strings.Contains(out, "\n+connection.\"other\".harness") {
		t.Errorf("for a start without flags: exit %d, %s", exit, out)
	}
}

func TestEndToEndNobodyAcceptsAChangeWhileCountersignRuns(t *testing.T) {
	l := newLab(t)
	l.hostHarness(harness.Options{}, nil)
	l.configure("[confinement]\nconfine = false\nwritable = [\"/nowhere\"]")
	w := l.start(nil, "worker", "--approve", "all")
	eventually(t, "it runs", func() bool { s := l.ps(); return len(s.Connections) == 1 })
	l.configure("[confinement]\nwritable = [\"/\"]")
	eventually(t, "it names the command", func() bool { return strings.Contains(w.out.String(), " config pending") })
	out, _, _ := l.run("config", "pending")
	m := acceptCode.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("config pending: %s", out)
	}
	if _, errs, exit := l.run("config", "accept", m[1]); exit != 1 || !strings.Contains(errs, "End it, accept the change") {
		t.Errorf("accept: exit %d, %s", exit, errs)
	}
	w.signal(syscall.SIGTERM)
	w.wait()
	if out, errs, exit := l.run("worker"); exit != 2 {
		t.Errorf("the next start: exit %d, %s%s", exit, out, errs)
	}
	l.accept()
}

func TestEndToEndTheWindowAsksBeforeItStartsWithAChange(t *testing.T) {
	binary(t)
	const key = "an-api-key-of-the-environment"
	h, err := harness.Open(t.Context(), harness.Options{Path: filepath.Join(t.TempDir(), "h.db"), APIKeys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() { server.Close(); h.Close() })
	origin := server.URL
	d := startDesk(t)
	cfg, data, work := t.TempDir(), filepath.Join(t.TempDir(), "data"), t.TempDir()
	args := []string{"--config-dir", cfg, "--data-dir", data}
	env := append(d.environ(), "MANAGED_AGENTS_API_KEY="+key)
	configure := func(rest string) {
		t.Helper()
		text := "[[connection]]\nharness = \"" + origin + "\"\nworkdir = \"" + work + "\"\n" + rest
		if err := os.WriteFile(filepath.Join(cfg, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ps := func() string { out, _ := output(t, env, nil, append(args, "ps", "--json")...); return out }
	connected := func() bool { return strings.Contains(ps(), `"state":"connected"`) }
	quit := func(p *program, title string) { // by a key: the window has to be there for that
		t.Helper()
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		d.untilPressed("it quits", title, "ctrl+q", func() bool {
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("quitting: %v", err)
				}
				return true
			default:
				return false
			}
		})
	}
	configure("")
	first := startProgram(t, env, args...)
	d.until("the first start is connected", connected)
	quit(first, "^Countersign$")

	configure("[environment]\npass = [\"MY_*\"]\n")
	asks := "What guards this machine was changed"
	second := startProgram(t, env, args...)
	d.window(asks)
	if strings.Contains(ps(), "connections") {
		t.Error("it works before it is answered")
	}
	d.picture("guards-changed")
	quit(second, asks)
	third := startProgram(t, env, args...)
	d.untilPressed("accepting has it work, with its key", asks, "ctrl+Return", connected)
	quit(third, "^Countersign$")
	fourth := startProgram(t, env, args...)
	d.until("nothing is asked again", connected)
	quit(fourth, "^Countersign$")
}

// untilPressed presses keys in a window for as long as it is there, until a
// condition holds.
func (d *desk) untilPressed(what, title, keys string, holds func() bool) {
	d.t.Helper()
	d.window(title)
	d.until(what, func() bool {
		if id, err := d.xdotool("search", "--onlyvisible", "--name", title); err == nil && id != "" {
			id = strings.TrimSpace(strings.Split(id, "\n")[0])
			d.xdotool("windowfocus", id)
			d.xdotool("key", "--clearmodifiers", keys)
		}
		return holds()
	})
}
