package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func (l *lab) writeRules(text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.cfg, "rules.toml"), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

const lookRule = "[[rule]]\nname = \"look\"\nkind = \"exec\"\nallow = [\"echo <word>...\"]\ndeny = [\"kubectl\"]\n"

func TestEndToEndRulesDecideAndAChangeOfThemWaitsToBeSeen(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	l.writeRules(lookRule)
	w := l.work()
	if e := l.enqueue("s1", "50s", "exec", "--", "echo by rule"); e.wait() != 0 || e.out.String() != "by rule\n" {
		t.Errorf("an allowed command: %s", e.out.String())
	}
	if e := l.enqueue("s1", "50s", "exec", "--", "ls | kubectl delete"); e.wait() != 126 && !strings.Contains(e.out.String(), `rule "look"`) {
		t.Errorf("a denied command: %s", e.out.String())
	}
	if out, _, _ := l.run("history"); !strings.Contains(out, "Declined") {
		t.Errorf("history: %s", out)
	}

	l.writeRules(lookRule + "[[rule]]\nname = \"more\"\nkind = \"exec\"\nallow = [\"uname\"]\n")
	eventually(t, "the change is told", func() bool { return strings.Contains(w.out.String(), "changed outside Countersign") })
	e := l.enqueue("s2", "50s", "exec", "--", "uname")
	id, _ := l.waiting()
	out, errs, code := l.run("rules", "pending")
	accept := regexp.MustCompile(`rules accept ([0-9a-f]{12})`).FindStringSubmatch(out)
	if code != 0 || accept == nil || !strings.Contains(out, `+allow = ["uname"]`) {
		t.Fatalf("pending: exit %d, %s%s", code, out, errs)
	}
	if out, _, _ := l.run("show", id); !strings.Contains(out, "ask    uname") {
		t.Errorf("show: %s", out)
	}
	if _, errs, code := l.run("rules", "accept", "0123456789ab"); code == 0 || !strings.Contains(errs, "not what was shown") {
		t.Errorf("accepting something else: exit %d, %s", code, errs)
	}
	if _, errs, code := l.run("rules", "accept", accept[1]); code != 0 {
		t.Fatalf("accept: exit %d, %s", code, errs)
	}
	if e.wait() != 0 || !strings.Contains(e.out.String(), "Linux") {
		t.Errorf("what waited was not decided by the new rule: %s", e.out.String())
	}

	w.signal(syscall.SIGTERM)
	w.wait()
	w = l.work()
	eventually(t, "the rules are in force again", func() bool { return strings.Contains(w.out.String(), "rules are in force") })
	l.ps()
	w.signal(syscall.SIGTERM)
	if w.wait(); strings.Contains(w.out.String(), "changed outside") {
		t.Errorf("rules that nobody changed: %s", w.out.String())
	}
	l.writeRules("[[rule]]\nname = \"all\"\nkind = \"exec\"\nallow = [\"true\"]\n")
	w = l.work()
	eventually(t, "a change made meanwhile is told", func() bool { return strings.Contains(w.out.String(), "changed outside Countersign") })
	l.enqueue("s3", "50s", "exec", "--", "true")
	l.waiting()
	if out, errs, code := l.run("history", "verify"); code != 0 || !strings.Contains(out, "follow one another") {
		t.Errorf("verify: exit %d, %s%s", code, out, errs)
	}
}

func TestEndToEndANamedRuleFileIsInForceAndABrokenOneStartsNothing(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	mine := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(mine, []byte(lookRule), 0o600); err != nil {
		t.Fatal(err)
	}
	w := l.work("--rules", mine)
	if e := l.enqueue("s1", "50s", "exec", "--", "echo by rule"); e.wait() != 0 {
		t.Errorf("an allowed command: %s", e.out.String())
	}
	w.signal(syscall.SIGTERM)
	w.wait()
	if err := os.WriteFile(mine, []byte("[[rule]]\nname = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = l.work("--rules", mine)
	if code := w.wait(); code != 2 || !strings.Contains(w.out.String(), mine+":2") {
		t.Errorf("exit %d, %s", code, w.out.String())
	}
}

func TestEndToEndApprovedForASessionUntilItIsRevoked(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	e := l.enqueue("s1", "50s", "exec", "--", "echo again >> ran")
	id, code := l.waiting()
	if out, errs, exit := l.run("approve", id, code, "--session"); exit != 0 || !strings.Contains(out, "until its session ends") {
		t.Fatalf("approve: exit %d, %s%s", exit, out, errs)
	}
	e.wait()
	if e := l.enqueue("s1", "50s", "exec", "--", "echo again >> ran"); e.wait() != 0 {
		t.Errorf("the second time: %s", e.out.String())
	}
	w.kill() // the grant outlasts it
	l.work()
	if e := l.enqueue("s1", "50s", "exec", "--", "echo again >> ran"); e.wait() != 0 || l.file("ran") != "again\nagain\nagain\n" {
		t.Errorf("after a restart: %s, %q", e.out.String(), l.file("ran"))
	}
	out, _, _ := l.run("rules", "grants")
	grant := regexp.MustCompile(`(?m)^([A-Z0-9]{20,})`).FindString(out)
	if _, errs, exit := l.run("rules", "revoke", grant); exit != 0 {
		t.Fatalf("revoke %q: exit %d, %s of %s", grant, exit, errs, out)
	}
	l.enqueue("s1", "50s", "exec", "--", "echo again >> ran")
	l.waiting()
}

func TestEndToEndAScriptThatChangesWhileItWaitsComesBack(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	script := filepath.Join(l.wrk, "x.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("echo as shown >> ran\n")
	l.work()
	e := l.enqueue("s1", "50s", "exec", "--", "sh x.sh")
	id, code := l.waiting()
	write("echo something else >> ran\n")
	if _, errs, exit := l.run("approve", id, code); exit != 0 {
		t.Fatalf("approve: exit %d, %s", exit, errs)
	}
	eventually(t, "it waits again, marked", func() bool {
		s := l.ps()
		return len(s.Waiting) == 1 && s.Waiting[0].Status == "Changed since shown" && s.Waiting[0].Code != code
	})
	if out, _, _ := l.run("show", id); l.file("ran") != "" || !strings.Contains(out, "It was approved, and then what it names changed") || !strings.Contains(out, "x.sh") {
		t.Errorf("ran %q; shown %s", l.file("ran"), out)
	}
	if _, _, exit := l.run("approve", id, code); exit == 0 {
		t.Error("the old code still approves it")
	}
	if _, errs, exit := l.run("approve", id, l.ps().Waiting[0].Code); exit != 0 {
		t.Fatalf("approve anew: exit %d, %s", exit, errs)
	}
	if e.wait() != 0 || l.file("ran") != "something else\n" {
		t.Errorf("%s, ran %q", e.out.String(), l.file("ran"))
	}
}

func TestEndToEndAWriteIsShownAsADifference(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	if err := os.WriteFile(filepath.Join(l.wrk, "f"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.work()
	cmd := l.command("enqueue", "--harness", l.origin, "--session", "s", "--timeout", "50s", "write", "f")
	cmd.Stdin = strings.NewReader("one\n2\nthree\n")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, _ := l.waiting()
	if out, _, _ := l.run("show", id); !strings.Contains(out, "│ - two") || !strings.Contains(out, "│ + 2\n") || !strings.Contains(out, "│   one") {
		t.Errorf("shown %s", out)
	}
}

func TestEndToEndEveryWayToApproveFromTheTerminal(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	if err := os.MkdirAll(filepath.Join(l.wrk, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.wrk, "src", "a.txt"), []byte("read"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.work()

	e := l.enqueue("s1", "50s", "exec", "--", "echo asked >> ran")
	id, code := l.waiting()
	if _, errs, exit := l.runWith("echo edited >> ran\n", "approve", id, code, "--edited"); exit != 0 {
		t.Fatalf("edited: %s", errs)
	}
	if e.wait() != 0 || l.file("ran") != "edited\n" || !strings.Contains(e.out.String(), "What ran: echo edited >> ran") {
		t.Errorf("edited: ran %q, the agent reads %s", l.file("ran"), e.out.String())
	}

	e = l.enqueue("s1", "50s", "exec", "--", "basename x")
	id, code = l.waiting()
	if out, errs, exit := l.run("approve", id, code, "--always"); exit != 0 || !strings.Contains(out, "basename x") {
		t.Fatalf("always: %s%s", out, errs)
	}
	e.wait()
	if e := l.enqueue("s9", "50s", "exec", "--", "basename x"); e.wait() != 0 {
		t.Errorf("always, the second time: %s", e.out.String())
	}
	if out, _, code := l.run("rules", "check"); code != 0 || !strings.Contains(out, "1 rule") {
		t.Errorf("the rule file after it: %s", out)
	}

	e = l.enqueue("s1", "50s", "read", "src/a.txt")
	id, code = l.waiting()
	if _, errs, exit := l.run("approve", id, code, "--reads", "src/"); exit != 0 {
		t.Fatalf("reads: %s", errs)
	}
	e.wait()
	if e := l.enqueue("s1", "50s", "list", "src"); e.wait() != 0 {
		t.Errorf("a list below it: %s", e.out.String())
	}
	if out, errs, code := l.run("history", "verify"); code != 0 {
		t.Errorf("verify: exit %d, %s%s", code, out, errs)
	}
}
