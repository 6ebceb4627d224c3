package main_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

// desk is a desktop of the test's own: an X server without a screen, a session
// bus, and on it a place for tray icons and a server for notifications.
type desk struct {
	t       testing.TB
	display string
	bus     *dbus.Conn
	address string

	mu       sync.Mutex
	items    []string // bus names of registered tray items
	messages []string // summaries and bodies of notifications
	arrived  chan struct{}
}

func startDesk(t testing.TB) *desk {
	t.Helper()
	for _, program := range []string{"Xvfb", "dbus-daemon", "xdotool", "import"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: make test installs it", program)
		}
	}
	d := &desk{t: t, arrived: make(chan struct{}, 1)}
	d.startX()
	d.startBus()
	return d
}

// startX starts the X server, which picks a free display and names it. With
// -noreset it does not begin anew, and turn away who comes just then, whenever its
// last client has gone: whoever looks for a window is one.
func (d *desk) startX() {
	d.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	x := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x860x24", "-nolisten", "tcp", "-noreset")
	x.ExtraFiles = []*os.File{w}
	d.run(x)
	w.Close()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		d.t.Fatalf("Xvfb names no display: %v", err)
	}
	d.display = ":" + strings.TrimSpace(line)
}

func (d *desk) startBus() {
	d.t.Helper()
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address=1")
	out, err := daemon.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	d.run(daemon)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.t.Fatalf("dbus-daemon names no address: %v", err)
	}
	d.address = strings.TrimSpace(line)
	if d.bus, err = dbus.Connect(d.address); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.bus.Close() })
	d.export(trayWatcher{d}, "/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher")
	_, err = prop.Export(d.bus, "/StatusNotifierWatcher", prop.Map{"org.kde.StatusNotifierWatcher": {
		"IsStatusNotifierHostRegistered": {Value: true, Emit: prop.EmitFalse},
	}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.export(notificationServer{d}, "/org/freedesktop/Notifications", "org.freedesktop.Notifications")
}

func (d *desk) export(server any, path dbus.ObjectPath, name string) {
	d.t.Helper()
	if err := d.bus.Export(server, path, name); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.bus.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		d.t.Fatal(err)
	}
}

// run starts a process and ends it with the test.
func (d *desk) run(cmd *exec.Cmd) {
	d.t.Helper()
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// environ is the environment of a program on this desktop.
func (d *desk) environ() []string {
	return append(os.Environ(), "DISPLAY="+d.display, "DBUS_SESSION_BUS_ADDRESS="+d.address,
		"LANG=en_US.UTF-8", "LIBGL_ALWAYS_SOFTWARE=1")
}

// trayWatcher is where tray items announce themselves.
type trayWatcher struct{ d *desk }

func (w trayWatcher) RegisterStatusNotifierItem(_ string, sender dbus.Sender) *dbus.Error {
	w.d.mu.Lock()
	w.d.items = append(w.d.items, string(sender))
	w.d.mu.Unlock()
	w.d.signal()
	return nil
}

// notificationServer takes notifications as a desktop's would.
type notificationServer struct{ d *desk }

func (n notificationServer) Notify(_ string, _ uint32, _, summary, body string, _ []string,
	_ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	n.d.mu.Lock()
	n.d.messages = append(n.d.messages, summary+": "+body)
	id := uint32(len(n.d.messages))
	n.d.mu.Unlock()
	n.d.signal()
	return id, nil
}

func (n notificationServer) GetCapabilities() ([]string, *dbus.Error) { return []string{"body"}, nil }

func (n notificationServer) GetServerInformation() (name, vendor, version, spec string, err *dbus.Error) {
	return "test", "test", "1", "1.2", nil
}

func (n notificationServer) CloseNotification(uint32) *dbus.Error { return nil }

func (d *desk) signal() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// until waits for a condition, looked at whenever something arrives and often.
func (d *desk) until(what string, holds func() bool) {
	d.t.Helper()
	deadline := time.After(40 * time.Second)
	for !holds() {
		select {
		case <-d.arrived:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			d.mu.Lock()
			defer d.mu.Unlock()
			d.t.Fatalf("never: %s; notifications so far: %q", what, d.messages)
		}
	}
}

// notified waits for a notification that has all of these words.
func (d *desk) notified(words ...string) {
	d.t.Helper()
	d.until(fmt.Sprintf("a notification with %q", words), func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
	next:
		for _, m := range d.messages {
			for _, w := range words {
				if !strings.Contains(m, w) {
					continue next
				}
			}
			return true
		}
		return false
	})
}

// trayItem waits for the tray item and returns its bus name.
func (d *desk) trayItem() string {
	d.t.Helper()
	var name string
	d.until("a tray item", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.items) > 0 {
			name = d.items[len(d.items)-1]
		}
		return name != ""
	})
	return name
}

// menuItem is one line of a tray menu.
type menuItem struct {
	id      int32
	label   string
	enabled bool
	checked bool
}

// menu reads the tray's menu as a panel would.
func (d *desk) menu() []menuItem {
	d.t.Helper()
	var revision uint32
	var layout struct {
		ID       int32
		Props    map[string]dbus.Variant
		Children []dbus.Variant
	}
	object := d.bus.Object(d.trayItem(), "/StatusNotifierMenu")
	err := object.Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &layout)
	if err != nil {
		d.t.Fatalf("read the tray's menu: %v", err)
	}
	var items []menuItem
	for _, child := range layout.Children {
		fields, ok := child.Value().([]any)
		if !ok || len(fields) < 2 {
			continue
		}
		id, _ := fields[0].(int32)
		props, _ := fields[1].(map[string]dbus.Variant)
		it := menuItem{id: id, enabled: true}
		if v, ok := props["label"]; ok {
			it.label, _ = v.Value().(string)
		}
		if v, ok := props["enabled"]; ok {
			it.enabled, _ = v.Value().(bool)
		}
		if v, ok := props["toggle-state"]; ok {
			state, _ := v.Value().(int32)
			it.checked = state == 1
		}
		items = append(items, it)
	}
	return items
}

// choose clicks the menu item with this label.
func (d *desk) choose(label string) {
	d.t.Helper()
	for _, it := range d.menu() {
		if it.label == label {
			object := d.bus.Object(d.trayItem(), "/StatusNotifierMenu")
			call := object.Call("com.canonical.dbusmenu.Event", 0, it.id, "clicked", dbus.MakeVariant(""), uint32(0))
			if call.Err != nil {
				d.t.Fatal(call.Err)
			}
			return
		}
	}
	d.t.Fatalf("no menu item %q: %+v", label, d.menu())
}

// window waits for a window with this title and returns its id.
func (d *desk) window(title string) string {
	d.t.Helper()
	var id string
	d.until("a window titled "+title, func() bool {
		out, err := d.xdotool("search", "--onlyvisible", "--name", title)
		id = strings.TrimSpace(strings.Split(out, "\n")[0])
		return err == nil && id != ""
	})
	return id
}

func (d *desk) xdotool(args ...string) (string, error) {
	cmd := exec.Command("xdotool", args...)
	cmd.Env = d.environ()
	out, err := cmd.Output()
	return string(out), err
}

// unmap takes a window off the screen, as iconifying it does, and the focus with it.
func (d *desk) unmap(window string) {
	d.t.Helper()
	if _, err := d.xdotool("windowunmap", "--sync", window); err != nil {
		d.t.Fatalf("unmap: %v", err)
	}
}

// mapped puts a window back on the screen.
func (d *desk) mapped(window string) {
	d.t.Helper()
	if _, err := d.xdotool("windowmap", "--sync", window); err != nil {
		d.t.Fatalf("map: %v", err)
	}
}

// press types a key combination into a window as a keyboard would.
func (d *desk) press(window, keys string) {
	d.t.Helper()
	if _, err := d.xdotool("windowfocus", "--sync", window); err != nil {
		d.t.Fatalf("focus: %v", err)
	}
	if _, err := d.xdotool("key", "--clearmodifiers", keys); err != nil {
		d.t.Fatalf("press %s: %v", keys, err)
	}
}

// picture saves what the screen shows once it has come to rest: under
// COUNTERSIGN_PICTURES to be looked at, else only to see that it is not blank.
func (d *desk) picture(name string) {
	d.t.Helper()
	dir := os.Getenv("COUNTERSIGN_PICTURES")
	if dir == "" {
		dir = d.t.TempDir()
	}
	file := filepath.Join(dir, name+".png")
	var last string
	for range 8 { // a clock that ticks in it never rests for long
		d.command("import", "-window", "root", file)
		now := d.command("identify", "-format", "%#", file)
		if now == last {
			break
		}
		last = now
		select {
		case <-time.After(300 * time.Millisecond):
		case <-d.t.Context().Done():
		}
	}
	if colours, _ := strconv.Atoi(d.command("convert", file, "-unique-colors", "-format", "%w", "info:")); colours < 8 {
		d.t.Errorf("%s shows %d colours: a blank window", name, colours)
	}
}

// command runs a program on the desktop and returns what it says.
func (d *desk) command(name string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = d.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// program is a started Countersign.
type program struct {
	cmd *exec.Cmd
	log *logBuffer
}

// logBuffer keeps what a program says, for the test to read and for its report.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startProgram starts the built Countersign with an environment of its own.
func startProgram(t testing.TB, env []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(binary(t), args...), log: &logBuffer{}}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(args, " "), p.log)
		}
	})
	return p
}

// output runs the built Countersign to its end.
func output(t testing.TB, env []string, stdin io.Reader, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env, cmd.Stdin = env, stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// binary is the built program; make test and make e2e name it.
func binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("COUNTERSIGN_BIN")
	if path == "" {
		t.Skip("COUNTERSIGN_BIN names no built program: run make e2e")
	}
	return path
}
