package policy

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// FuzzExplain: nothing makes it panic; what it allows, both shells can read; and
// what is added to an allowed command after a separator has to be allowed too.
func FuzzExplain(f *testing.F) {
	for _, tr := range traps {
		for _, c := range tr.commands {
			if len(c) < 1000 {
				f.Add(c)
			}
		}
	}
	for _, c := range corpus(f) {
		f.Add(c.command)
	}
	r := rulesOf(f, testContext(f), string(shipped(f, "starter", "developer"))+denies)
	f.Fuzz(func(t *testing.T, c string) {
		if len(c) > 4096 {
			return
		}
		e := r.Explain(command(c))
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		Risks(command(c).Task)
		if e.Verdict != Allow {
			return
		}
		for _, shell := range []string{"dash", "bash"} {
			if path, err := exec.LookPath(shell); err == nil {
				if out, err := exec.Command(path, "-n", "-c", c).CombinedOutput(); err != nil {
					t.Errorf("%q is allowed and %s -n says %s", c, shell, out)
				}
			}
		}
		separators := []string{"\nunlisted", "\n\nunlisted #", "\n;unlisted"}
		if !strings.Contains(c, "#") { // the others would be part of a comment
			separators = append(separators, "; unlisted", " && unlisted", " || unlisted", " | unlisted", " & unlisted", "&unlisted", "|unlisted -x")
		}
		for _, more := range separators {
			if v := r.Explain(command(c + more)).Verdict; v == Allow {
				t.Errorf("%q is allowed", c+more)
			}
		}
	})
}

// FuzzRuleFile: no rule file makes loading panic.
func FuzzRuleFile(f *testing.F) {
	f.Add(string(shipped(f, "starter")))
	f.Add("[[rule]]\nname=\"x\"\nkind=\"exec\"\nallow=[\"ls [-l <word>] <path>...\", \"a=<path>\"]\ndeny='x y'\nuntil=2026-01-01T00:00:00Z\n[[test]]\ncommand='ls'\nexpect='allow'\n")
	ctx := testContext(f)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Parse("r.toml", []byte(text), ctx); err == nil {
			r.Explain(command("ls a | b > c"))
		}
	})
}

func TestRandomCommandsNeverTakeLong(t *testing.T) {
	r := rulesOf(t, testContext(t), string(shipped(t, "starter", "developer"))+denies)
	for _, c := range []string{
		"eval " + strings.Repeat(`\`, 20000) + "x", "eval '" + strings.Repeat("{a,b} ", 3000) + "'", "sudo " + strings.Repeat("{a,b,c}", 5000), "eval " + strings.Repeat("'eval ", 5000),
		"eval \"" + strings.Repeat("eval \\\"", 5000), strings.Repeat("find -exec ", 5000), strings.Repeat("sudo 'a ", 5000), "sh -c '" + strings.Repeat("sh -c \"", 3000), strings.Repeat("a=\"eval ", 5000), strings.Repeat("$HOME/", 5000), "eval \"" + strings.Repeat("$HOME ", 5000),
		strings.Repeat("<<a ", 5000), strings.Repeat("cat <<EOF\n", 5000), strings.Repeat("${x:-", 3000), strings.Repeat("'\"", 20000), strings.Repeat("{", 60000), strings.Repeat("a{b,", 2000) + strings.Repeat("}", 2000), strings.Repeat("git -c ", 8000), strings.Repeat("awk '(", 8000),
	} {
		if e := r.Explain(command(c)); e.Verdict == Allow {
			t.Errorf("%.60q is allowed", c)
		}
	}
}
