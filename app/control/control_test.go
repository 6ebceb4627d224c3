package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"

	"go.uber.org/goleak"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// fakeDesk notes what it is asked, in words.
type fakeDesk struct {
	mu    sync.Mutex
	asked []string
	err   error
}

func (d *fakeDesk) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprintf(format, args...))
	return d.err
}

func (d *fakeDesk) Snapshot() worker.Snapshot {
	return worker.Snapshot{Paused: true, Waiting: []worker.View{{
		Hold: worker.Hold{ID: 7, Digest: digest, Item: worker.Item{ID: "work_1", Payload: []byte(`{"command":"ls"}`)}},
		Word: worker.WordWaiting, Lease: time.Minute,
	}}}
}
func (d *fakeDesk) Approve(id worker.HoldID, digest, by string) error {
	return d.note("approve %d %s by %s", id, digest, by)
}
func (d *fakeDesk) ApproveForSession(id worker.HoldID, digest, by string) error {
	return d.note("approve %d %s for the session by %s", id, digest, by)
}
func (d *fakeDesk) ApproveEdited(id worker.HoldID, digest string, payload json.RawMessage, by string) error {
	return d.note("approve %d %s as %s by %s", id, digest, payload, by)
}
func (d *fakeDesk) AllowReads(id worker.HoldID, digest, dir string, within time.Duration, by string) error {
	return d.note("approve %d %s and below %s for %s by %s", id, digest, dir, within, by)
}
func (d *fakeDesk) NarrowRule(id worker.HoldID) (string, error) { return "[[rule]]", nil }
func (d *fakeDesk) Add(id worker.HoldID, rule string) error     { return d.note("add %s for %d", rule, id) }
func (d *fakeDesk) Preview(_ context.Context, id worker.HoldID) (execute.Preview, error) {
	if id != 7 {
		return execute.Preview{}, worker.ErrNoHold
	}
	return execute.Preview{Kind: "write", Fails: "is a directory"}, nil
}
func (d *fakeDesk) Grants() []policy.Grant {
	return []policy.Grant{{ID: "G1", Session: "s", Text: "make"}}
}
func (d *fakeDesk) Revoke(grant string) error { return d.note("revoke %s", grant) }
func (d *fakeDesk) State() policy.RulesState {
	return policy.RulesState{File: "/r", Pending: &policy.Change{Hash: digest, Diff: "+x"}}
}
func (d *fakeDesk) Accept(hash string) error { return d.note("accept rules %s", hash) }
func (d *fakeDesk) Decline(id worker.HoldID, digest, words, by string) error {
	return d.note("decline %d %s %q by %s", id, digest, words, by)
}
func (d *fakeDesk) Release(id worker.HoldID) error { return d.note("release %d", id) }
func (d *fakeDesk) Stop(id worker.HoldID) error    { return d.note("stop %d", id) }
func (d *fakeDesk) StopEverything()                { d.note("stop everything") }
func (d *fakeDesk) Pause(until time.Time)          { d.note("pause %s", until.UTC().Format(time.DateOnly)) }
func (d *fakeDesk) Resume()                        { d.note("resume") }

func (d *fakeDesk) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return ""
	}
	return d.asked[len(d.asked)-1]
}

// serve runs a server on dir until the test ends, and returns a client of it.
func serve(t *testing.T, dir string, s *Server) *Client {
	t.Helper()
	s.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	l, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	client := NewClient(dir)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, SocketName)); err == nil {
			t.Error("the socket was left behind")
		}
		// A refused body has the server linger for the client's sake.
		goleak.VerifyNone(t, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
	})
	return client
}

func private0700(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestIntentsReachTheDesk(t *testing.T) {
	desk := &fakeDesk{}
	raised := false
	c := serve(t, private0700(t), &Server{Desk: desk, Rules: desk, Version: "v", Raise: func() { raised = true }})
	ctx := t.Context()
	s, err := c.Status(ctx)
	if err != nil || s.PID != os.Getpid() || !s.Window || s.Version != "v" || !s.Snapshot.Paused {
		t.Fatalf("status = %+v, %v", s, err)
	}
	v, ok := s.Find(7)
	if !ok || string(v.Item.Payload) != `{"command":"ls"}` || v.Lease != time.Minute {
		t.Fatalf("view = %+v, %v", v, ok)
	}
	day := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	for want, do := range map[string]func() error{
		"approve 7 " + digest + " by operator (command line)":                                  func() error { return c.Approve(ctx, 7, Code(v)) },
		"decline 7 " + digest + ` "not now" by operator (command line)`:                        func() error { return c.Decline(ctx, 7, "not now") },
		"approve 7 " + digest + " for the session by operator (command line), for the session": func() error { return c.ApproveForSession(ctx, 7, Code(v)) },
		"approve 7 " + digest + ` as {"command":"ls"} by operator (command line)`: func() error {
			return c.ApproveEdited(ctx, 7, Code(v), []byte(`{"command":"ls"}`))
		},
		"approve 7 " + digest + " and below src for 15m0s by operator (command line), reads below it too": func() error { return c.AllowReads(ctx, 7, Code(v), "src") },
		"approve 7 " + digest + " by operator (command line), always": func() error {
			rule, err := c.ApproveAlways(ctx, 7, Code(v))
			if rule != "[[rule]]" {
				t.Errorf("the rule that was added is %q", rule)
			}
			return err
		},
		"accept rules 01234567": func() error { return c.AcceptRules(ctx, " 01234567") },
		"revoke G1":             func() error { return c.Revoke(ctx, "G1") },
		"release 7":             func() error { return c.Release(ctx, 7) },
		"stop 7":                func() error { return c.Stop(ctx, 7) },
		"stop everything":       func() error { return c.StopAll(ctx) },
		"pause 2030-01-02":      func() error { return c.Pause(ctx, day) },
		"pause 0001-01-01":      func() error { return c.Pause(ctx, time.Time{}) },
		"resume":                func() error { return c.Resume(ctx) },
	} {
		if err := do(); err != nil || desk.last() != want {
			t.Errorf("got %q, %v; want %q", desk.last(), err, want)
		}
	}
	if r, err := c.Rules(ctx); err != nil || r.Pending == nil || r.Pending.Diff != "+x" {
		t.Errorf("rules: %+v, %v", r, err)
	}
	if g, err := c.Grants(ctx); err != nil || len(g) != 1 || g[0].Text != "make" {
		t.Errorf("grants: %+v, %v", g, err)
	}
	if p, err := c.Preview(ctx, 7); err != nil || p.Fails != "is a directory" {
		t.Errorf("preview: %+v, %v", p, err)
	}
	if _, err := c.Preview(ctx, 8); err == nil || err.Error() != worker.ErrNoHold.Error() {
		t.Errorf("preview of another: %v", err)
	}
	if err := c.Revoke(ctx, "G2"); err == nil {
		t.Error("a grant that there is not was revoked")
	}
	if err := c.Raise(ctx); err != nil || !raised {
		t.Errorf("raise: %v, raised %v", err, raised)
	}
}

func TestACodeThatIsNotTheShownOnesApprovesNothing(t *testing.T) {
	desk := &fakeDesk{}
	c := serve(t, private0700(t), &Server{Desk: desk})
	for _, code := range []string{"", "0123", digest[:policy.CodeLength-1], "ffffffffffff", digest + "0"} {
		if err := c.Approve(t.Context(), 7, code); err == nil || !strings.Contains(err.Error(), "countersign show 7") {
			t.Errorf("code %q: %v", code, err)
		}
	}
	if err := c.Approve(t.Context(), 8, digest); err == nil || err.Error() != worker.ErrNoHold.Error() {
		t.Errorf("another hold: %v", err)
	}
	if desk.last() != "" {
		t.Errorf("the desk was asked to %s", desk.last())
	}
}

func TestWhatTheDeskRefusesIsToldInItsWords(t *testing.T) {
	c := serve(t, private0700(t), &Server{Desk: &fakeDesk{err: errors.New("it has been decided")}})
	if err := c.Release(t.Context(), 7); err == nil || err.Error() != "it has been decided" {
		t.Errorf("got %v", err)
	}
	if err := c.Raise(t.Context()); err == nil || !strings.Contains(err.Error(), "has no window") {
		t.Errorf("raise without a window: %v", err)
	}
}

func TestWithoutAnInstanceTheClientSaysHowToStartOne(t *testing.T) {
	dir := private0700(t)
	_, err := NewClient(dir).Status(t.Context())
	var none *NotRunning
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "No Countersign is running for data directory "+dir) {
		t.Errorf("got %v", err)
	}
}

func TestTheSocketIsThisUsersAlone(t *testing.T) {
	dir := private0700(t)
	serve(t, dir, &Server{Desk: &fakeDesk{}})
	info, err := os.Stat(filepath.Join(dir, SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(open); err == nil || !strings.Contains(err.Error(), "run: chmod 0700 "+open) {
		t.Errorf("an open directory: %v", err)
	}
}

func TestALeftoverSocketAndALongPathDoNotMatter(t *testing.T) {
	dir := filepath.Join(private0700(t), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, SocketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, dir, &Server{Desk: &fakeDesk{}})
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnOversizedOrMalformedBodyIsRefused(t *testing.T) {
	desk := &fakeDesk{}
	c := serve(t, private0700(t), &Server{Desk: desk})
	for _, body := range []string{"", "{", `{"id":"x"}`, `{"message":"` + strings.Repeat("x", maxIntent) + `"}`} {
		if err := c.do(t.Context(), http.MethodPost, "stop-all", []byte(body), &answer{}); err == nil {
			t.Errorf("a body of %d bytes was taken", len(body))
		}
	}
	if desk.last() != "" {
		t.Errorf("the desk was asked to %s", desk.last())
	}
}

// TestMain lets the test binary stand for a command that a tool call runs.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONTROL_TEST_HEIR"); dir != "" {
		handOver(dir)
		return
	}
	if dir := os.Getenv("CONTROL_TEST_CHILD"); dir != "" {
		if err := NewClient(dir).Resume(context.Background()); err != nil {
			fmt.Print(err)
		}
		return
	}
	os.Exit(m.Run())
}

// handOver opens a connection, as a process of a tool call, and leaves it to a child
// to use once it has ended itself.
func handOver(dir string) {
	c, err := net.Dial("unix", filepath.Join(dir, SocketName))
	if err != nil {
		fmt.Print(err)
		return
	}
	f, err := c.(*net.UnixConn).File()
	if err != nil {
		fmt.Print(err)
		return
	}
	child := exec.Command("/bin/sh", "-c", `while [ "$1" = "$(cut -d" " -f4 /proc/$$/stat)" ]; do :; done
printf 'POST /resume HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}' >&3; head -1 <&3`, "sh", strconv.Itoa(os.Getpid()))
	child.ExtraFiles = []*os.File{f}
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil {
		fmt.Print(err)
	}
}

func TestAConnectionLeftToAChildOfAToolCallIsRefused(t *testing.T) {
	dir := private0700(t)
	desk := &fakeDesk{}
	serve(t, dir, &Server{Desk: desk, Tell: func(string) {}})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), "CONTROL_TEST_HEIR="+dir)
	out, err := parent.CombinedOutput() // ends when the child has, which holds it open
	if err != nil || !strings.Contains(string(out), "403") || desk.last() != "" {
		t.Errorf("got %q, %v; the desk was asked to %q", out, err, desk.last())
	}
}

func TestAnIntentFromInsideAToolCallIsRefused(t *testing.T) {
	dir := private0700(t)
	desk := &fakeDesk{}
	told := make(chan string, 1)
	serve(t, dir, &Server{Desk: desk, Tell: func(words string) { told <- words }})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("/bin/sh", "-c", `"$0"; true`, self)
	child.Env = append(os.Environ(), "CONTROL_TEST_CHILD="+dir)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "from inside a tool call") || desk.last() != "" {
		t.Errorf("got %q, %v; the desk was asked to %q", out, err, desk.last())
	}
	if words := <-told; !strings.Contains(words, "(resume, process ") {
		t.Errorf("the operator was told %q", words)
	}
}
