package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/harness"
	"countersign/worker/api"
	"countersign/worker/api/wire"
)

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Problems, Warnings int
	Checks             []struct{ Check, Connection, State, Means, Do string }
}

// state is what a check found for a connection; "" where it was not made.
func (d diagnosis) state(connection, check string) (state, words string) {
	for _, c := range d.Checks {
		if c.Check == check && c.Connection == connection {
			return c.State, c.Means + " " + c.Do
		}
	}
	return "", ""
}

func (l *lab) doctor(env []string, args ...string) (d diagnosis, out string, code int) {
	l.t.Helper()
	cmd := l.command(append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	text, _ := cmd.Output()
	if err := json.Unmarshal(text, &d); err != nil {
		l.t.Fatalf("doctor --json: %v in %s", err, text)
	}
	return d, string(text), cmd.ProcessState.ExitCode()
}

// visits notes the requests that a harness gets.
type visits struct {
	mu   sync.Mutex
	seen []string
}

func (v *visits) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		v.seen = append(v.seen, r.Method+" "+r.URL.Path)
		v.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (v *visits) all() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.seen)
}

func TestEndToEndDoctorFindsNothingAmissAndChangesNothing(t *testing.T) {
	l := newLab(t)
	var seen visits
	client := l.hostHarness(harness.Options{}, seen.note)
	item, err := client.Enqueue(t.Context(), "s1", wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	l.configure("")
	before := len(seen.all())
	out, errs, code := l.run("doctor")
	if code != 0 || errs != "" || strings.Contains(out, "problem ") || !strings.Contains(out, "ok       accept          The harness can accept a start.") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	for _, check := range []string{"configuration", "running", "data directory", "journal", "environment", "helper", "confinement", "rules",
		"display", "keyring", "work directory", "credentials", "harness", "accept", "clock"} {
		if !strings.Contains(out, "  "+check+" ") {
			t.Errorf("nothing is said of %s", check)
		}
	}
	if asked, want := seen.all()[before:], []string{"POST " + wire.AcceptPath, "GET " + wire.HealthPath}; !slices.Equal(asked, want) {
		t.Errorf("the harness was asked %v, want %v", asked, want)
	}
	another, err := api.New(api.Options{Origin: l.origin})
	if err != nil {
		t.Fatal(err)
	}
	if free, found, err := another.Claim(t.Context(), "another"); err != nil || !found || free.ID != item.ID {
		t.Errorf("another worker claims %+v, %v, %v", free, found, err)
	}
	if left, err := os.ReadDir(l.wrk); err != nil || len(left) != 0 {
		t.Errorf("the work directory has %v, %v", left, err)
	}
	if _, err := os.Stat(l.data); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

func TestEndToEndDoctorWorksBesideARunningCountersign(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.configure("")
	l.start(nil, "worker")
	eventually(t, "the worker is connected", func() bool { s := l.ps(); return len(s.Connections) == 1 && s.Connections[0].State == "connected" })
	name := strings.TrimPrefix(l.origin, "http://")
	d, out, code := l.doctor(nil)
	if state, words := d.state(name, "at work"); code != 0 || state != "ok" || !strings.Contains(words, "connected") {
		t.Errorf("exit %d: %s", code, out)
	}
	l.run("pause")
	if d, out, code := l.doctor(nil); code != 0 || !strings.Contains(out, "It is paused") || d.Warnings == 0 {
		t.Errorf("paused: exit %d: %s", code, out)
	}
}

func TestEndToEndDoctorBesideAWorkerOfFlagsLooksAtItsConnection(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.configure("")
	file := strings.TrimPrefix(l.origin, "http://")
	l.serveHarness("--no-auth")
	l.work()
	eventually(t, "the worker is connected", func() bool { s := l.ps(); return len(s.Connections) == 1 && s.Connections[0].State == "connected" })
	d, out, code := l.doctor(nil)
	if state, words := d.state(strings.TrimPrefix(l.origin, "http://"), "at work"); code != 0 || state != "ok" || !strings.Contains(words, "connected to the harness") {
		t.Errorf("exit %d: %s", code, out)
	}
	if state, words := d.state(file, "at work"); state != "warning" || !strings.Contains(words, "without --harness") {
		t.Errorf("%s: %s", state, words)
	}
	if _, words := d.state("", "confinement"); !strings.Contains(words, "In the running Countersign: ") {
		t.Errorf("confinement: %s", words)
	}
}

func TestEndToEndDoctorSaysWhatIsWrongWithEachConnection(t *testing.T) {
	l := newLab(t)
	const key = "right-api-key-4711"
	l.hostHarness(harness.Options{APIKeys: []string{key}}, nil)
	guarded := l.origin
	l.hostHarness(harness.Options{Generation: harness.Old}, nil)
	old := l.origin
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var text, secrets strings.Builder
	for _, c := range []struct{ name, origin, dir, key string }{
		{"right", guarded, l.wrk, key},
		{"wrong", guarded + "/", l.wrk, "wrong-api-key-0815"},
		{"none", strings.Replace(guarded, "127.0.0.1", "localhost", 1), l.wrk, ""},
		{"old", old, l.wrk, ""},
		{"silent", "http://" + silent.Addr().String(), l.wrk, ""},
		{"gone", "http://" + gone.Addr().String(), l.wrk, ""},
		{"nowhere", "http://" + gone.Addr().String(), l.wrk + "/missing", ""},
	} {
		fmt.Fprintf(&text, "[[connection]]\nname = %q\nharness = %q\nworkdir = %q\nenvironment-id = %q\n", c.name, c.origin, c.dir, c.name)
		if c.key != "" {
			fmt.Fprintf(&secrets, "[%s]\napi-key = %q\n", c.name, c.key)
		}
	}
	for name, text := range map[string]string{"config.toml": text.String(), "credentials.toml": secrets.String()} {
		if err := os.WriteFile(filepath.Join(l.cfg, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, out, code := l.doctor(nil)
	if code != 1 || d.Problems != 8 {
		t.Errorf("exit %d, %d problems", code, d.Problems)
	}
	if strings.Contains(out, "api-key-") {
		t.Error("a key was printed")
	}
	for _, want := range []struct{ connection, check, state, words string }{
		{"right", "credentials", "ok", "API key: from credentials.toml. Environment key: none."},
		{"right", "accept", "ok", "can accept"},
		{"right", "clock", "ok", "agrees"},
		{"wrong", "accept", "problem", "rejected the API key (HTTP 401)"},
		{"none", "accept", "problem", "wants an API key, and there is none"},
		{"old", "harness", "ok", "answered in"},
		{"old", "accept", "problem", "no accept, so it cannot authorize a start"},
		{"silent", "harness", "problem", "no usable answer"},
		{"gone", "harness", "problem", "connection refused"},
		{"gone", "accept", "", ""},
		{"nowhere", "work directory", "problem", "does not exist"},
		{"nowhere", "harness", "problem", "connection refused"},
	} {
		if state, words := d.state(want.connection, want.check); state != want.state || !strings.Contains(words, want.words) {
			t.Errorf("%s of %s: %s, %s, want %s, %q", want.check, want.connection, state, words, want.state, want.words)
		}
	}
}

func TestEndToEndDoctorTakesOneConnectionFromFlagsAndItsKeyFromTheEnvironment(t *testing.T) {
	l := newLab(t)
	const key = "right-api-key-4711"
	l.hostHarness(harness.Options{APIKeys: []string{key}}, nil)
	d, out, code := l.doctor([]string{"MANAGED_AGENTS_API_KEY=" + key}, "--harness", l.origin, "--workdir", l.wrk)
	if _, words := d.state(strings.TrimPrefix(l.origin, "http://"), "credentials"); code != 0 || !strings.Contains(words, "API key: from the environment") || strings.Contains(out, key) {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, errs, code := l.run("doctor", "--workdir", l.wrk); code != 2 || !strings.Contains(errs, "expected together with --harness") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestEndToEndDoctorSaysWhatIsWrongWithThisMachine(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		name  string
		wrong func()
		check string
		state string
		words string
	}{
		{"configuration", func() { l.write("config.toml", "[limits]\nread-bytes = 0\n") }, "configuration", "problem", "config.toml:2: limits.read-bytes = 0"},
		{"rules", func() {
			l.write("config.toml", "")
			l.write("rules.toml", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"*\"]\n")
		}, "rules", "problem", "rules check"},
		{"an open data directory", func() { os.Mkdir(l.data, 0o755) }, "data directory", "problem", "chmod 0700"},
		{"a damaged journal", func() {
			os.Chmod(l.data, 0o700)
			os.WriteFile(filepath.Join(l.data, "countersign.db"), []byte(strings.Repeat("no database ", 100)), 0o600)
		}, "journal", "problem", "damaged"},
		{"open credentials", func() {
			l.write("config.toml", fmt.Sprintf("[[connection]]\nname = \"c\"\nharness = \"http://127.0.0.1:1\"\nworkdir = %q\n", l.wrk))
			l.write("credentials.toml", "[c]\napi-key = \"secret-4711\"\n")
			os.Chmod(filepath.Join(l.cfg, "credentials.toml"), 0o644)
		}, "credentials", "problem", "chmod 0600"},
		{"a profile that fails", func() {}, "environment", "warning", "login environment could not be had"},
	} {
		c.wrong()
		d, out, code := l.doctor([]string{"SHELL=/bin/false"})
		found := false
		for _, f := range d.Checks {
			found = found || f.Check == c.check && f.State == c.state && strings.Contains(f.Means+" "+f.Do, c.words)
		}
		if !found || code != 1 || strings.Contains(out, "4711") {
			t.Errorf("%s: exit %d: %s", c.name, code, out)
		}
	}
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.cfg, name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}
