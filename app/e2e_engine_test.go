package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// configure writes config.toml, with one connection to the lab's harness.
func (l *lab) configure(rest string) {
	l.t.Helper()
	text := fmt.Sprintf("[[connection]]\nharness = %q\nworkdir = %q\ninterval-ms = 50\n%s\n", l.origin, l.wrk, rest)
	if err := os.WriteFile(filepath.Join(l.cfg, "config.toml"), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func TestEndToEndAStopIsToldToTheAgentInWords(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.work("--approve", "all")
	e := l.enqueue("s1", "50s", "exec", "--", "echo started >up; sleep 600")
	var id string
	eventually(t, "it runs", func() bool {
		s := l.ps()
		if len(s.Running) == 1 {
			id = fmt.Sprint(s.Running[0].ID)
		}
		return id != "" && l.file("up") == "started\n"
	})
	if _, errs, code := l.run("stop", id); code != 0 {
		t.Fatalf("stop: exit %d, %s", code, errs)
	}
	e.wait()
	if out := e.out.String(); !strings.Contains(out, "Countersign: the command was stopped by the operator.\n[exit 143]") {
		t.Errorf("the session was told %q", out)
	}
	if out, _, _ := l.run("show", id); !strings.Contains(out, "stopped: By the operator.") {
		t.Errorf("show printed %s", out)
	}
}

func TestEndToEndPsSaysWhatCommandsDoNotGetAndThatItQuits(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.configure("[environment]\nremove = [\"NOT_FOR_COMMANDS\"]")
	w := l.start([]string{"NOT_FOR_COMMANDS=x", "SHELL=/bin/sh"}, "worker", "--approve", "all", "--grace", "30s")
	removed := func() []string {
		out, _, _ := l.run("ps", "--json")
		var s struct {
			Connections []struct {
				RemovedEnv  []string `json:"removed_env"`
				Confinement string
			}
		}
		if json.Unmarshal([]byte(out), &s) != nil || len(s.Connections) != 1 || !strings.HasPrefix(s.Connections[0].Confinement, "none: ") {
			return nil
		}
		return s.Connections[0].RemovedEnv
	}
	eventually(t, "ps names what was removed", func() bool { return slices.Contains(removed(), "NOT_FOR_COMMANDS") })
	e := l.enqueue("s1", "50s", "exec", "--", "echo ready > ready; until [ -e go ]; do sleep 0.05; done; echo fine")
	eventually(t, "it runs", func() bool { return l.file("ready") != "" })
	w.signal(syscall.SIGTERM)
	eventually(t, "ps says that it quits", func() bool {
		out, _, code := l.run("ps")
		return code == 0 && strings.Contains(out, "Quitting: nothing more is claimed")
	})
	if err := os.WriteFile(filepath.Join(l.wrk, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.wait(); code != 0 {
		t.Errorf("the worker: exit %d", code)
	}
	if code := e.wait(); code != 0 || !strings.Contains(e.out.String(), "fine") {
		t.Errorf("what ran: exit %d, %s", code, e.out.String())
	}
}

func TestEndToEndWhatARemovedConnectionLeftUnfinishedIsTold(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.configure("")
	w := l.start(nil, "worker")
	l.enqueue("s1", "1s", "exec", "--", "true")
	id, _ := l.waiting()
	w.kill()
	first := l.origin
	l.serveHarness("--no-auth")
	l.configure("")
	l.accept()
	words := fmt.Sprintf("1 item of harness %s was left unfinished (#%s), and no connection is to it now", first, id)
	second := l.start(nil, "worker")
	eventually(t, "the log tells", func() bool { return strings.Contains(second.out.String(), words) })
	eventually(t, "and so does ps", func() bool { out, _, _ := l.run("ps"); return strings.Contains(out, words) })
	second.kill()
	l.origin = first
	l.configure("")
	l.accept()
	third := l.start(nil, "worker")
	eventually(t, "it is shown again once the connection is back", func() bool { return len(l.ps().Waiting) == 1 })
	if strings.Contains(third.out.String(), "left unfinished") {
		t.Errorf("it is still told: %s", third.out.String())
	}
}
