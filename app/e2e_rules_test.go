package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestEndToEndRulesAreCheckedExplainedAndSuggested(t *testing.T) {
	l := newLab(t)
	rules := filepath.Join(l.cfg, "rules.toml")
	write := func(text string) {
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[[rule]]\nname = \"look\"\nkind = \"exec\"\nallow = [\"ls\"]\ndeny = [\"kubectl\"]\n")
	if out, errs, code := l.run("rules", "check"); code != 0 || !strings.Contains(out, "1 rule, 0 tests passed") {
		t.Errorf("check: exit %d, %s%s", code, out, errs)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{0, `rule "look" allows it`, []string{"exec", "--", "ls"}},
		{0, `"verdict":"allow"`, []string{"--json", "exec", "ls"}},
		{10, "no rule lists the option", []string{"exec", "--", "ls", "-l"}},
		{11, `rule "look" denies "kubectl"`, []string{"exec", "ls | sudo kubectl"}},
		{10, "no rule allows to read", []string{"read", "main.go"}},
		{11, "Countersign's own", []string{"write", "../config/rules.toml"}},
		{10, "no rule allows to list", []string{"list"}},
		{2, "", []string{"exec", "--", " "}},
	} {
		out, errs, code := l.run(append([]string{"rules", "--workdir", l.wrk, "explain"}, c.args...)...)
		if says := strings.Contains(out, c.says) || strings.Contains(out, "no rule for ls lists the option"); code != c.code || !says {
			t.Errorf("%q: exit %d, %s%s", c.args, code, out, errs)
		}
	}
	write("[[rule]]\nname = \"look\"\nkind = \"exec\"\nallow = [\"*\"]\n")
	for _, args := range [][]string{{"check"}, {"explain", "exec", "ls"}, {"suggest"}} {
		out, errs, code := l.run(append([]string{"rules"}, args...)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, rules+":4: ") {
			t.Errorf("%q of a broken file: exit %d, %s%s", args, code, out, errs)
		}
	}
}

func TestEndToEndWhatIsApprovedAgainAndAgainBecomesARule(t *testing.T) {
	l := newLab(t)
	l.serveHarness("--no-auth")
	w := l.work()
	for range 3 {
		e := l.enqueue("s1", "50s", "exec", "--", "echo once more")
		id, code := l.waiting()
		if out, errs, exit := l.run("approve", id, code); exit != 0 {
			t.Fatalf("approve: exit %d, %s%s", exit, out, errs)
		}
		e.wait()
	}
	if out, errs, code := l.run("rules", "suggest"); code != 0 || !strings.Contains(out, `"echo once more"`) {
		t.Errorf("suggest for the connection that runs: exit %d, %s%s", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(l.cfg, "rules.toml"), []byte("[[rule]]\nname = \"look\"\nkind = \"exec\"\nallow = [\"ls\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"explain", "exec", "ls"}} {
		if out, errs, code := l.run(append([]string{"rules"}, args...)...); code != 0 || !strings.Contains(out, "this file is not in force yet") {
			t.Errorf("%q of a change that waits: exit %d, %s%s", args, code, out, errs)
		}
	}
	w.signal(syscall.SIGTERM)
	w.wait()
	if out, errs, code := l.run("rules", "check"); code != 0 || !strings.Contains(out, "this file is not in force yet") {
		t.Errorf("check of a change that waits for the next start: exit %d, %s%s", code, out, errs)
	}
	if out, errs, code := l.run("rules", "suggest"); code != 0 || !strings.Contains(out, "rules suggest --workdir "+l.wrk) {
		t.Errorf("suggest for nowhere: exit %d, %s%s", code, out, errs)
	}
	out, errs, code := l.run("rules", "suggest", "--workdir", l.wrk)
	if code != 0 || !strings.Contains(out, "# approved by hand 3 times") || !strings.Contains(out, `"echo once more"`) {
		t.Fatalf("suggest: exit %d, %s%s", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(l.cfg, "rules.toml"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = l.run("rules", "explain", "--workdir", l.wrk, "--json", "exec", "--", "echo once more")
	var got struct{ Verdict, Rule string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.Verdict != "allow" || got.Rule != "often approved: echo once more" {
		t.Errorf("explain: exit %d, %v, %s%s", code, err, out, errs)
	}
}
