package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/harness"
)

// patience bounds every wait for something that has to happen.
const patience = 60 * time.Second

// lab is one machine: directories, and the processes that run in them.
type lab struct {
	t              *testing.T
	bin            string
	data, cfg, wrk string
	origin         string // of the harness
}

func newLab(t *testing.T) *lab {
	t.Helper()
	bin := os.Getenv("COUNTERSIGN_BIN")
	if bin == "" {
		t.Skip("COUNTERSIGN_BIN does not name the built program: make e2e does")
	}
	base := t.TempDir()
	l := &lab{t: t, bin: bin, data: filepath.Join(base, "data"), cfg: filepath.Join(base, "config"), wrk: filepath.Join(base, "work")}
	for _, dir := range []string{l.cfg, l.wrk} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// proc is a started process and what it has printed.
type proc struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   shared
	ended chan struct{}
}

// shared is a buffer that is written and read at once.
type shared struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (l *lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.bin, append([]string{"--data-dir", l.data, "--config-dir", l.cfg}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DISPLAY=", "WAYLAND_DISPLAY=", "DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR=")
	return cmd
}

// start starts the program and ends it with the test.
func (l *lab) start(env []string, args ...string) *proc {
	l.t.Helper()
	cmd := l.command(args...)
	cmd.Env = append(cmd.Env, env...)
	return l.startCommand(cmd)
}

// startCommand does the same with a command that is made.
func (l *lab) startCommand(cmd *exec.Cmd) *proc {
	l.t.Helper()
	p := &proc{t: l.t, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.ended) }()
	l.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if l.t.Failed() {
			l.t.Logf("%s printed:\n%s", strings.Join(cmd.Args[1:], " "), p.out.String())
		}
	})
	return p
}

func (p *proc) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// wait waits for the end and returns the exit code.
func (p *proc) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%v has not ended; it printed:\n%s", p.cmd.Args, p.out.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *proc) kill() { p.signal(syscall.SIGKILL); <-p.ended }

// run runs the program to its end.
func (l *lab) run(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	return l.runWith("", args...)
}

func (l *lab) runWith(stdin string, args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := l.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	cmd.Wait()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it never came to pass that %s", what)
		}
	}
}

// serveHarness starts "countersign harness" and waits until it listens.
func (l *lab) serveHarness(args ...string) *proc {
	l.t.Helper()
	h := l.start(nil, append([]string{"harness", "--listen", "127.0.0.1:0", "--db", filepath.Join(l.t.TempDir(), "h.db")}, args...)...)
	said := regexp.MustCompile(`Harness at (http://\S+)`)
	eventually(l.t, "the harness listens", func() bool {
		m := said.FindStringSubmatch(h.out.String())
		if m != nil {
			l.origin = m[1]
		}
		return m != nil
	})
	return h
}

// hostHarness serves a harness from the test itself, with something before it.
func (l *lab) hostHarness(o harness.Options, before func(http.Handler) http.Handler) *harness.Client {
	l.t.Helper()
	o.Path = filepath.Join(l.t.TempDir(), "h.db")
	h, err := harness.Open(context.Background(), o)
	if err != nil {
		l.t.Fatal(err)
	}
	handler := h.Handler()
	if before != nil {
		handler = before(handler)
	}
	server := httptest.NewServer(handler)
	l.t.Cleanup(func() { h.Close(); server.Close() })
	l.origin = server.URL
	return harness.NewClient(l.origin, "", nil)
}

// work starts a headless worker.
func (l *lab) work(args ...string) *proc {
	l.t.Helper()
	return l.start(nil, append([]string{"worker", "--harness", l.origin, "--workdir", l.wrk, "--interval-ms", "50"}, args...)...)
}

// enqueue starts an enqueue that waits for its result.
func (l *lab) enqueue(session, timeout string, work ...string) *proc {
	l.t.Helper()
	return l.start(nil, append([]string{"enqueue", "--harness", l.origin, "--session", session, "--timeout", timeout}, work...)...)
}

// status is what ps --json prints, as far as the tests want it.
type status struct {
	PID         int  `json:"pid"`
	Paused      bool `json:"paused"`
	Connections []struct {
		State   string `json:"state"`
		Detail  string `json:"detail"`
		MaxHeld int    `json:"max_held"`
	} `json:"connections"`
	Waiting, Running, Finished []struct {
		ID         int64  `json:"id"`
		Status     string `json:"status"`
		Code       string `json:"code"`
		ItemID     string `json:"item_id"`
		Acceptance string `json:"acceptance"`
		Execution  string `json:"execution"`
	}
}

// ps returns the running instance's status; its zero value where none answers.
func (l *lab) ps() (s status) {
	out, _, code := l.run("ps", "--json")
	if code == 0 {
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			l.t.Fatalf("ps --json: %v in %s", err, out)
		}
	}
	return s
}

// waiting waits until something waits for a decision and returns its number
// and code.
func (l *lab) waiting() (id, code string) {
	l.t.Helper()
	eventually(l.t, "an item waits", func() bool {
		s := l.ps()
		if len(s.Waiting) == 0 {
			return false
		}
		id, code = strconv.FormatInt(s.Waiting[0].ID, 10), s.Waiting[0].Code
		return true
	})
	return id, code
}

// approve approves what waits, and returns its number.
func (l *lab) approve() (id string) {
	l.t.Helper()
	id, code := l.waiting()
	if out, errs, exit := l.run("approve", id, code); exit != 0 {
		l.t.Fatalf("approve %s: exit %d, %s%s", id, exit, out, errs)
	}
	return id
}

func (l *lab) file(name string) string {
	text, err := os.ReadFile(filepath.Join(l.wrk, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	return string(text)
}

// endsLater has the test end a command that outlives its killed worker. The
// command has written its process id to a file.
func (l *lab) endsLater(file string) {
	l.t.Cleanup(func() {
		if pid, err := strconv.Atoi(strings.TrimSpace(l.file(file))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}
