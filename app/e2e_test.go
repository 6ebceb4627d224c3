package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker/api/wire"
)

// The end-to-end tests run the built program as separate processes. make test
// and make e2e name it in COUNTERSIGN_BIN.

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

func TestEndToEndEveryKindOfWork(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work("--approve", "all")
	enqueue := func(stdin string, work ...string) (string, string, int) {
		return l.runWith(stdin, append([]string{"enqueue", "--harness", l.origin, "--session", "s1", "--timeout", "50s"}, work...)...)
	}
	for _, c := range []struct {
		stdin     string
		work      []string
		out, errs string
		code      int
	}{
		{"", []string{"exec", "--", "echo out; echo err >&2; exit 3"}, "out\n", "err\n[exit 3]\n", 0},
		{"hello\n", []string{"write", "sub/file.txt"}, "written\n", "", 0},
		{"", []string{"read", "sub/file.txt"}, "hello\n", "", 0},
		{"", []string{"list"}, "sub/file.txt\n", "", 0},
		{"", []string{"exec", "--", "printf", "'a\\033[31mb'"}, "", "", 0},
	} {
		out, errs, code := enqueue(c.stdin, c.work...)
		if code != c.code || c.out != "" && out != c.out || errs != c.errs {
			t.Errorf("%v: exit %d, printed %q and %q", c.work, code, out, errs)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("%v: an escape reached the terminal: %q", c.work, out)
		}
	}
	if _, errs, code := enqueue("", "read", "missing"); code != 6 || errs == "" {
		t.Errorf("a failed read: exit %d, %q", code, errs)
	}
	if got := l.file("sub/file.txt"); got != "hello\n" {
		t.Errorf("the file holds %q", got)
	}
	out, _, code := l.run("history", "--search", "echo", "--json")
	var past struct{ Status, Kind string }
	if err := json.Unmarshal([]byte(out), &past); err != nil || code != 0 || past.Status != "Reported" || past.Kind != "exec" {
		t.Errorf("history: exit %d, %v, %s", code, err, out)
	}
}

func TestEndToEndEveryAwaitCode(t *testing.T) {
	l := newLab(t)
	client := l.hostHarness(harness.Options{}, nil)
	queued := l.enqueue("queued", "200ms", "exec", "--", "true")
	if code := queued.wait(); code != 3 || !strings.Contains(queued.out.String(), "work_queue_timeout, retryable") {
		t.Errorf("never claimed: exit %d, %s", code, queued.out.String())
	}
	if _, err := client.StopSession(t.Context(), "queued"); err != nil {
		t.Fatal(err)
	}
	l.work("--approve", "all")
	running := l.enqueue("running", "8s", "exec", "--", "echo $$ > pid; exec sleep 600")
	l.endsLater("pid")
	eventually(t, "the command runs", func() bool { return len(l.ps().Running) == 1 })
	if code := running.wait(); code != 4 || !strings.Contains(running.out.String(), "work_outcome_unknown, not_retryable") {
		t.Errorf("accepted and unfinished: exit %d, %s", code, running.out.String())
	}
	// Work that arrives for an ended session is stopped from the start.
	if _, err := client.CreateSession(t.Context(), harness.NewSession{ID: "ended"}); err != nil {
		t.Fatal(err)
	}
	for _, status := range []harness.SessionStatus{harness.SessionRunning, harness.SessionCompleted} {
		if _, err := client.SetStatus(t.Context(), "ended", status); err != nil {
			t.Fatal(err)
		}
	}
	stopped := l.enqueue("ended", "200ms", "exec", "--", "touch ended")
	if code := stopped.wait(); code != 5 || !strings.Contains(stopped.out.String(), "work_lease_lost, not_retryable") {
		t.Errorf("stopped: exit %d, %s", code, stopped.out.String())
	}
	if l.file("ended") != "" {
		t.Error("it ran")
	}
}

func TestEndToEndApproveDeclineReleaseAndPauseFromTheCommandLine(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work()
	approved := l.enqueue("s1", "50s", "exec", "--", "echo ran | tee approved")
	id, code := l.waiting()
	if out, _, _ := l.run("show", id); !strings.Contains(out, "echo ran | tee approved") || !strings.Contains(out, "countersign --data-dir "+l.data+" approve "+id+" "+code) {
		t.Errorf("show printed %s", out)
	}
	if _, errs, exit := l.run("approve", id, "00000000"); exit != 1 || !strings.Contains(errs, "countersign show "+id) {
		t.Errorf("another code: exit %d, %s", exit, errs)
	}
	if l.file("approved") != "" {
		t.Error("it ran without its code")
	}
	if _, errs, exit := l.run("approve", id, code); exit != 0 {
		t.Fatalf("approve: exit %d, %s", exit, errs)
	}
	if exit := approved.wait(); exit != 0 || l.file("approved") != "ran\n" {
		t.Errorf("approved: exit %d, %s", exit, approved.out.String())
	}
	if out, errs, exit := l.run("tail", id); exit != 0 || out != "ran\n" || !strings.Contains(errs, "exit 0") {
		t.Errorf("tail: exit %d, %q, %q", exit, out, errs)
	}

	declined := l.enqueue("s1", "50s", "exec", "--", "touch declined")
	id, _ = l.waiting()
	if _, errs, exit := l.run("decline", id, "--message", "use make instead"); exit != 0 {
		t.Fatalf("decline: exit %d, %s", exit, errs)
	}
	if exit := declined.wait(); exit != 0 || !strings.Contains(declined.out.String(), "use make instead") || !strings.Contains(declined.out.String(), "[exit 126]") {
		t.Errorf("declined: exit %d, %s", exit, declined.out.String())
	}

	if _, errs, exit := l.run("pause"); exit != 0 || !l.ps().Paused {
		t.Fatalf("pause: exit %d, %s", exit, errs)
	}
	if exit := l.enqueue("s1", "1s", "exec", "--", "touch paused").wait(); exit != 3 {
		t.Errorf("claimed while paused: exit %d", exit)
	}
	if _, errs, exit := l.run("resume"); exit != 0 || l.ps().Paused {
		t.Fatalf("resume: exit %d, %s", exit, errs)
	}
	id, _ = l.waiting()
	if _, errs, exit := l.run("release", id); exit != 0 {
		t.Errorf("release: exit %d, %s", exit, errs)
	}
	eventually(t, "it is let go", func() bool {
		out, _, _ := l.run("history", "--outcome", "released")
		return strings.Contains(out, "Released")
	})
	if l.file("declined") != "" || l.file("paused") != "" {
		t.Error("something ran that was not approved")
	}
}

func TestEndToEndAPauseOutlastsARestart(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	eventually(t, "the worker answers", func() bool { return l.ps().PID != 0 })
	l.run("pause")
	w.signal(syscall.SIGTERM)
	if code := w.wait(); code != 0 || !strings.Contains(w.out.String(), "ended, as it was told to") {
		t.Fatalf("exit %d, %s", code, w.out.String())
	}
	l.work()
	eventually(t, "the next worker is paused", func() bool { s := l.ps(); return s.PID != 0 && s.Paused })
}

func TestEndToEndKilledWhileAnItemWaits(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	e := l.enqueue("s1", "50s", "exec", "--", "echo run >> runs")
	before, _ := l.waiting()
	w.kill()
	l.work()
	id, code := l.waiting()
	if id != before {
		t.Errorf("hold %s became %s", before, id)
	}
	if _, errs, exit := l.run("approve", id, code); exit != 0 {
		t.Fatalf("approve: %s", errs)
	}
	if exit := e.wait(); exit != 0 || l.file("runs") != "run\n" {
		t.Errorf("exit %d, runs %q", exit, l.file("runs"))
	}
}

func TestEndToEndKilledWhileACommandRuns(t *testing.T) {
	for name, c := range map[string]struct {
		generation harness.Generation
		exit       int
		said       string
	}{
		"a harness that calls it unknown once the lease lapsed":   {harness.Newest, 4, "work_outcome_unknown"},
		"a harness that would hand it to another is told at once": {harness.WithAccept, 0, "[exit 125]"},
	} {
		t.Run(name, func(t *testing.T) { killedWhileRunning(t, c.generation, c.exit, c.said) })
	}
}

func killedWhileRunning(t *testing.T, generation harness.Generation, exit int, said string) {
	l := newLab(t)
	l.hostHarness(harness.Options{Lease: time.Second, Generation: generation}, nil)
	w := l.work("--approve", "all", "--lease-ms", "1000")
	e := l.enqueue("s1", "40s", "exec", "--", "echo $$ >> runs; exec sleep 600")
	eventually(t, "the command runs", func() bool { return strings.HasSuffix(l.file("runs"), "\n") })
	w.kill()
	l.endsLater("runs")
	for command, words := range map[string]string{"history": "1   20", "show 1": "accept status   Was running", "tail 1": "[Was running", "doctor": "1 item was running when Countersign ended (#1)"} {
		out, errs, _ := l.run(strings.Fields(command)...)
		if !strings.Contains(out+errs, words) || command == "history" && !strings.Contains(out, "Was running: Countersign ended while it ran") {
			t.Errorf("%s after the kill: %s%s", command, out, errs)
		}
	}
	l.work("--approve", "all", "--lease-ms", "1000")
	eventually(t, "it is found interrupted", func() bool {
		out, _, _ := l.run("history", "--outcome", "interrupted")
		return strings.Contains(out, "Interrupted")
	})
	if code := e.wait(); code != exit || !strings.Contains(e.out.String(), said) {
		t.Errorf("the session was told exit %d: %s", code, e.out.String())
	}
	// Other work is done, so this one was passed over, not merely late.
	if code := l.enqueue("s2", "50s", "exec", "--", "true").wait(); code != 0 {
		t.Errorf("the next item: exit %d", code)
	}
	if n := strings.Count(l.file("runs"), "\n"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestEndToEndKilledWithAResultUndelivered(t *testing.T) {
	l := newLab(t)
	var refused atomic.Int32
	var open atomic.Bool
	l.hostHarness(harness.Options{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.CompletePath && !open.Load() {
				refused.Add(1)
				http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	w := l.work("--approve", "all")
	e := l.enqueue("s1", "50s", "exec", "--", "echo once | tee -a runs")
	eventually(t, "the result was turned away", func() bool { return refused.Load() > 0 })
	w.kill()
	open.Store(true)
	l.work("--approve", "all")
	if exit := e.wait(); exit != 0 || e.out.String() != "once\n" {
		t.Errorf("exit %d, %s", exit, e.out.String())
	}
	if l.file("runs") != "once\n" {
		t.Errorf("runs: %q", l.file("runs"))
	}
}

func TestEndToEndAHarnessWithoutAcceptGetsNothingClaimedAndIsTold(t *testing.T) {
	l := newLab(t)
	var claims atomic.Int32
	l.hostHarness(harness.Options{Generation: harness.Old}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.ClaimPath {
				claims.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	w := l.work("--approve", "all")
	e := l.enqueue("s1", "2s", "exec", "--", "touch ran")
	eventually(t, "ps says why", func() bool {
		s := l.ps()
		return len(s.Connections) == 1 && s.Connections[0].State == "cannot accept" && s.Connections[0].Detail != ""
	})
	if exit := e.wait(); exit != 3 {
		t.Errorf("exit %d, %s", exit, e.out.String())
	}
	if claims.Load() != 0 || l.file("ran") != "" {
		t.Errorf("%d claims", claims.Load())
	}
	if out, _, _ := l.run("ps"); !strings.Contains(out, "cannot accept") {
		t.Errorf("ps printed %s", out)
	}
	if !strings.Contains(w.out.String(), "accept") {
		t.Error("the log does not say why")
	}
}

func TestEndToEndCredentialsStayOutOfSight(t *testing.T) {
	l := newLab(t)
	h := l.serveHarness()
	m := regexp.MustCompile(`API key, shown only now: (\S+)`).FindStringSubmatch(h.out.String())
	if m == nil {
		t.Fatalf("the harness told no key: %s", h.out.String())
	}
	key := m[1]
	w := l.start([]string{"MANAGED_AGENTS_API_KEY=" + key}, "worker", "--harness", l.origin, "--workdir", l.wrk, "--approve", "all", "--interval-ms", "50", "--log-level", "debug")
	eventually(t, "the worker answers", func() bool { return l.ps().PID != 0 })
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", w.cmd.Process.Pid))
	if err == nil && (strings.Contains(string(environ), key) || strings.Contains(string(environ), "MANAGED_AGENTS")) {
		t.Error("the key is in the process's environment")
	}
	cmd := l.command("enqueue", "--harness", l.origin, "--session", "s1", "exec", "--", "env; cat /proc/$PPID/environ 2>/dev/null; true")
	cmd.Env = append(cmd.Env, "MANAGED_AGENTS_API_KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PWD="+l.wrk) {
		t.Fatalf("%v: %s", err, out)
	}
	past, _, _ := l.run("history", "--json")
	for where, text := range map[string]string{"a command's environment": string(out), "the log": w.out.String(), "the history": past} {
		if strings.Contains(text, key) || strings.Contains(text, "MANAGED_AGENTS") && where != "the history" {
			t.Errorf("the key is in %s", where)
		}
	}
	if _, errs, code := l.run("enqueue", "--harness", l.origin, "--session", "s1", "list"); code != 1 || !strings.Contains(errs, "API key") {
		t.Errorf("without a key: exit %d, %s", code, errs)
	}
}

func TestEndToEndAToolCallCannotUseTheControlSocket(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work("--approve", "all")
	e := l.enqueue("s1", "50s", "exec", "--", l.bin+" --data-dir "+l.data+" pause")
	l.approve() // it names what is ours: --approve all does not let it run unasked
	e.wait()
	if out := e.out.String(); !strings.Contains(out, "from inside a tool call") || !strings.Contains(out, "[exit 1]") {
		t.Errorf("%s", out)
	}
	if l.ps().Paused || !strings.Contains(w.out.String(), "was refused") {
		t.Errorf("paused %v; the log says %s", l.ps().Paused, w.out.String())
	}
}

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
		{[]string{"enqueue", "--session", "", "list"}, "--session: empty; expected the id of a session"},
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
	for _, args := range [][]string{{"ps"}, {"show", "1"}, {"approve", "1", "abcdef01"}, {"pause"}, {"stop", "--all"}} {
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
