package policy

import (
	"fmt"
	"strings"
	"testing"

	"countersign/worker/execute"
)

func reasonOf(t execute.Task, mark Mark) string {
	for _, r := range Risks(t) {
		if r.Mark == mark {
			return r.Reason
		}
	}
	return ""
}

// What a duplicate names is a descriptor, wherever it stands, unless it is a name:
// Bash writes to that file.
func TestTheMarkNamesWhatRedirectionsWriteTo(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for command, want := range map[string]string{
		"echo a >&2": "", "echo a 1>&2; ls": "", "if true; then echo a 1>&2; fi": "", "for i in 1 2; do echo $i >&2; done": "",
		"while read l; do echo \"$l\" >&2; done <x": "", "echo $x >&-": "", "sh -c 'echo $x >&2'": "", "exec $x 3<&0 3<&-": "", "echo $x >&3-": "",
		"fd=3; echo a >&$fd": "", "echo a >&1$y": `it writes to "1$y"`, "echo a >&'2-'": `it writes to "2-"`, "echo a >&2-": "", "cat <<EOF\nx\nEOF": "", "cat <<-EOF $x\nx\nEOF": "", "cat <<<$x": "", "ls >/dev/null 2>&1": "", "ls $x < in.txt": "",

		"ls > x": `it writes to "x"`, "ls >& x": `it writes to "x"`, "ls $x &> y": `it writes to "y"`, "ls $x <> y": `it writes to "y"`,
		"a > x; b > y": `it writes to "x", "y"`, "a > x; $b > y 2>> x": `it writes to "x", "y"`,
		"if a > in.txt; then b > /tmp/out.txt; fi": `it writes to "in.txt", "/tmp/out.txt"`,
		"a >1 2>2 3>3 4>4 5>5 6>6":                 `it writes to "1", "2", "3", "4" and 2 more`,
		"a >x | tee y":                             `it writes to "x"; it uses tee to write`,

		"ls > ~/out.txt": `it writes to "/home/me/out.txt"`, "ls > $HOME/x": `it writes to "/home/me/x"`, `ls > "${HOME}/x"`: `it writes to "/home/me/x"`,
		"ls > $OUT": `it writes to "$OUT"`, `ls > "$OUT/x y"`: `it writes to "$OUT/x y"`, "f=x; ls > $f.txt": `it writes to "$f.txt"`,
		"ls > $(mktemp)": `it writes to "$(mktemp)"`, "HOME=/x; ls > $HOME/y": `it writes to "$HOME/y"`, "f=out; echo a >&$f": `it writes to "$f"`,
		"ls > x$((1+1))": `it writes to "x$((1+1))"`, "ls > ${HOME%/*}/y": `it writes to "${HOME%/*}/y"`, "ls > ${OUT:-x}": `it writes to "${OUT:-x}"`,
	} {
		if got := reasonOf(execute.Task{Kind: "exec", Command: command}, MarkRedirection); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestAMarkNamesTheFirstFewThatItWasFoundIn(t *testing.T) {
	for command, want := range map[string]string{
		"cat .env id_rsa": `it names ".env", "id_rsa"`, "cat .env .env": `it names ".env"`,
		"cat a.pem b.pem c.pem d.pem e.pem": `it names "a.pem", "b.pem", "c.pem", "d.pem" and 1 more`,
	} {
		if got := reasonOf(execute.Task{Kind: "exec", Command: command}, MarkCredentials); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "x >%d; ", i)
	}
	if got := reasonOf(execute.Task{Kind: "exec", Command: many.String()}, MarkRedirection); !strings.HasSuffix(got, ` and 996 more`) {
		t.Errorf("of many: %q", got)
	}
}

// A redirection whose file is not known before it runs says why, and no name that
// it has not.
func TestARedirectionThatIsNotUnderstoodSaysWhy(t *testing.T) {
	r := rulesOf(t, ownContext(t), "[[rule]]\nname = 'w'\nkind = ['read', 'write']\nallow-paths = ['new/**']\ndeny-paths = ['secret/**']\n")
	for _, c := range []struct{ command, first, second string }{
		{"ls > ~/out.txt", "it has an unquoted tilde in it", "it has an unquoted tilde in it"},
		{"ls > $HOME/x", "it has the value of a variable in it", "it has the value of a variable in it"},
		{"ls > new/$x", "it has the value of a variable in it", "it has the value of a variable in it"},
		{"ls > ''", "it redirects to a file without a name", "it redirects to a file without a name"},
		{"cat <<EOF\nx\nEOF", "it has a here-document", ""},
		{"ls <&3", "it redirects with <&", ""},
		{"ls >&new/x", "it duplicates a descriptor other than 1 and 2", `rule "w" allows to write it`},
		{"ls > secret/$x", "it has the value of a variable in it", `rule "w" denies to write "secret/"`},
	} {
		e := r.Explain(command(c.command))
		second := ""
		if len(e.Parts) > 1 && !e.Parts[1].Inner {
			second = e.Parts[1].Reason
		}
		if len(e.Parts) == 0 || e.Verdict == Allow || e.Parts[0].Reason != c.first || second != c.second {
			t.Errorf("%q is %s: %+v", c.command, e.Verdict, e.Parts)
		}
	}
}
