package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"countersign/harness"
	"countersign/worker/api/wire"
)

// The end-to-end tests run the built program as separate processes. make test
// and make e2e name it in COUNTERSIGN_BIN.

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
	if _, errs, exit := l.run("approve", id, "000000000000"); exit != 1 || !strings.Contains(errs, "countersign show "+id) {
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
