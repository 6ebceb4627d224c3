package main_test

import (
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker/api"
	"countersign/worker/api/wire"
)

// office is a harness process, a desktop, and a Countersign with a window on it.
type office struct {
	*desk
	harness *harness.Client
	origin  string
	env     []string
	args    []string // the global flags
	program *program
	work    string
}

// startOffice starts all three with a lease short enough to lose.
func startOffice(t *testing.T) *office {
	t.Helper()
	origin := "http://" + freeAddress(t)
	startProgram(t, os.Environ(), "harness", "--no-auth", "--lease-ms", "2000",
		"--listen", strings.TrimPrefix(origin, "http://"), "--db", filepath.Join(t.TempDir(), "harness.db"))
	return openOffice(t, origin)
}

// openOffice starts a desktop and a Countersign on it for a harness.
func openOffice(t *testing.T, origin string) *office {
	t.Helper()
	o := &office{desk: startDesk(t), work: t.TempDir(), origin: origin}
	o.harness = harness.NewClient(o.origin, "", nil)
	o.until("the harness answers", func() bool {
		_, err := o.harness.CreateSession(t.Context(), harness.NewSession{ID: "sess_a"})
		return err == nil
	})
	config, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	text := fmt.Sprintf("[[connection]]\nharness = %q\nworkdir = %q\nlease-ms = 2000\n\n[notifications]\nwaiting = \"every\"\n", o.origin, o.work)
	if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = o.environ()
	o.args = []string{"--config-dir", config, "--data-dir", data}
	o.program = startProgram(t, o.env, o.args...)
	return o
}

// freeAddress finds a loopback port that nothing listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (o *office) enqueue(session, command string) string {
	o.t.Helper()
	it, err := o.harness.Enqueue(o.t.Context(), session, wire.KindExec, wire.Exec{Command: command})
	if err != nil {
		o.t.Fatal(err)
	}
	return it.ID
}

// ps is what the running Countersign says that it holds.
func (o *office) ps() string {
	out, err := output(o.t, o.env, nil, append(o.args, "ps", "--json")...)
	if err != nil {
		return err.Error() + out
	}
	return out
}

func (o *office) untilPs(words string) {
	o.t.Helper()
	o.until("ps says "+words, func() bool { return strings.Contains(o.ps(), words) })
}

func (o *office) await(id string) harness.Result {
	o.t.Helper()
	result, err := o.harness.Await(o.t.Context(), id, 30*time.Second)
	if err != nil {
		o.t.Fatalf("await: %v; ps: %s", err, o.ps())
	}
	return result
}

// approve presses the key until the item runs: a key press in the first half
// second that an item is on screen decides nothing.
func (o *office) approve(window, id string) harness.Result {
	o.t.Helper()
	o.until("the item was approved by keyboard", func() bool {
		o.press(window, "ctrl+Return")
		_, err := o.harness.Await(o.t.Context(), id, 300*time.Millisecond)
		var running *harness.AwaitError
		return !errors.As(err, &running)
	})
	return o.await(id)
}

func TestEndToEndTheWindowAndTheTray(t *testing.T) {
	binary(t)
	o := startOffice(t)
	window := o.window("Countersign")
	o.trayItem()
	for _, label := range []string{"Pause", "Stop everything and pause", "Open Countersign", "History", "Quit"} {
		o.until("a menu item "+label, func() bool {
			for _, it := range o.menu() {
				if it.label == label && it.enabled {
					return true
				}
			}
			return false
		})
	}

	o.unmap(window) // what waits in front of the operator's eyes is not notified
	id := o.enqueue("sess_a", "echo from the window; echo careful >&2; printf 'x\\033[31m'")
	o.notified("waits for you")
	o.mapped(window)
	o.picture("queue-waiting")
	result := o.approve(window, id)
	if !strings.Contains(string(result.Result), "from the window") || result.Failed {
		t.Errorf("the session got %s", result.Result)
	}
	o.picture("queue-finished")

	long := o.enqueue("sess_long", "for i in $(seq 1 600); do echo line $i; sleep 0.2; done")
	o.untilPs(long)
	o.until("the long command runs", func() bool {
		o.press(window, "Up") // what waits is above what has finished
		o.press(window, "ctrl+Return")
		return strings.Contains(o.ps(), "Running")
	})
	o.picture("queue-running")
	if _, err := o.harness.StopSession(t.Context(), "sess_long"); err != nil {
		t.Fatal(err)
	}
	o.notified("session stopped", "Its command was stopped")

	o.untilPs("Stopped")
	o.press(window, "ctrl+2")
	o.picture("history")
}

func TestEndToEndAHeldKeyDecidesOnce(t *testing.T) {
	binary(t)
	o := startOffice(t)
	window := o.window("Countersign")
	for _, session := range []string{"sess_a", "sess_b", "sess_c", "sess_d"} {
		o.untilPs(o.enqueue(session, "echo "+session))
	}
	undecided := func() int { return strings.Count(o.ps(), `"decision":"undecided"`) }
	key := func(args ...string) {
		t.Helper()
		if _, err := o.xdotool(args...); err != nil {
			t.Fatalf("xdotool %v: %v", args, err)
		}
	}
	key("windowfocus", "--sync", window)
	key("keydown", "ctrl")
	t.Cleanup(func() { o.xdotool("keyup", "Return", "keyup", "ctrl") })
	o.until("the first item is approved", func() bool { // not before it was in view long enough
		key("keyup", "Return")
		key("keydown", "Return")
		return undecided() < 4
	})
	// Return stays down and repeats. That it decides nothing has no sign to wait
	// for; the item shown would long have been in view.
	held := func(what string) {
		t.Helper()
		time.Sleep(1500 * time.Millisecond)
		if n := undecided(); n != 3 {
			t.Fatalf("%d items wait, want 3: Ctrl+Return, still held, approved another when %s", n, what)
		}
	}
	held("nothing else was pressed")
	key("key", "Shift_L")
	held("Shift was touched")
	o.unmap(window)
	o.mapped(window)
	key("windowfocus", "--sync", window)
	held("the focus went and came back")
	key("key", "F13")
	held("F13 was touched")

	o.until("a press of its own approves", func() bool {
		key("keyup", "Return", "keyup", "ctrl")
		key("key", "ctrl+Return")
		return undecided() < 3
	})
}

func TestEndToEndPauseInTheTrayStopsClaiming(t *testing.T) {
	binary(t)
	o := startOffice(t)
	o.window("Countersign")
	o.trayItem()
	o.untilPs(o.enqueue("sess_a", "true"))
	// A menu that is made anew has other numbers for its items.
	o.until("the menu has what waits", func() bool {
		return slices.ContainsFunc(o.menu(), func(it menuItem) bool { return strings.HasSuffix(it.label, " waits") })
	})
	o.choose("Pause")
	o.until("the menu shows the pause", func() bool {
		for _, it := range o.menu() {
			if it.checked {
				return true
			}
		}
		return false
	})
	id := o.enqueue("sess_b", "true")
	var lost *harness.AwaitError
	if _, err := o.harness.Await(t.Context(), id, 3*time.Second); !errors.As(err, &lost) || lost.Code != wire.CodeQueueTimeout {
		t.Errorf("while paused the item was not left in the queue: %v", err)
	}
	if strings.Contains(o.ps(), id) {
		t.Errorf("claimed while paused: %s", o.ps())
	}
	for _, it := range o.menu() {
		if it.checked {
			o.choose(it.label)
		}
	}
	o.untilPs(id)
}

func TestEndToEndALostLeaseIsNotified(t *testing.T) {
	binary(t)
	o := startOffice(t)
	o.window("Countersign")
	id := o.enqueue("sess_a", "touch ran")
	o.untilPs(id)

	// The machine sleeps, as far as Countersign can tell; its lease lapses and
	// another worker takes the item.
	if err := o.program.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other, err := api.New(api.Options{Origin: o.origin})
	if err != nil {
		t.Fatal(err)
	}
	o.until("another worker takes the item", func() bool {
		item, found, err := other.Claim(t.Context(), "thief")
		return err == nil && found && item.ID == id
	})
	if err := o.program.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	o.notified("ease lost", "Nothing ran")
	if _, err := os.Stat(filepath.Join(o.work, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

func TestEndToEndAHarnessWithoutAcceptIsToldAndNeverClaimedFrom(t *testing.T) {
	binary(t)
	old, err := harness.Open(t.Context(), harness.Options{Path: filepath.Join(t.TempDir(), "harness.db"), Generation: harness.Old})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(old.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := old.Close(); err != nil {
			t.Error(err)
		}
	})
	o := openOffice(t, server.URL)
	o.window("Countersign")
	o.notified("Harness cannot accept", "nothing is claimed")
	id := o.enqueue("sess_a", "touch ran")
	var lost *harness.AwaitError
	if _, err := o.harness.Await(t.Context(), id, 3*time.Second); !errors.As(err, &lost) || lost.Code != wire.CodeQueueTimeout {
		t.Errorf("the item was not left in the queue: %v", err)
	}
	o.untilPs("has no accept route")
	if !strings.Contains(o.program.log.String(), "cannot accept") {
		t.Errorf("the log does not say why nothing is claimed")
	}
	o.picture("no-accept")
	if _, err := os.Stat(filepath.Join(o.work, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

func TestEndToEndASecondStartRaisesTheFirstWindow(t *testing.T) {
	binary(t)
	o := startOffice(t)
	o.window("Countersign")
	o.untilPs(o.enqueue("sess_a", "true"))
	out, err := output(t, o.env, nil, o.args...)
	if err != nil || !strings.Contains(out, "running") {
		t.Errorf("the second start said %q, %v", out, err)
	}
	if err := o.program.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := o.program.cmd.Wait(); err != nil {
		t.Errorf("quitting: %v", err)
	}
}

func TestEndToEndASignalEndsTheProgramFromItsFirstMomentOn(t *testing.T) {
	binary(t)
	o := startOffice(t)
	o.window("Countersign") // it is drawn before its loop begins
	if err := o.program.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.program.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		_ = o.program.cmd.Process.Kill()
		<-ended
		t.Error("it did not end")
	}
}
