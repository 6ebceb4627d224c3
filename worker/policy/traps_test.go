package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/worker/execute"
)

// denies are rules on top of the shipped ones for the traps.
const denies = `
[[rule]]
name = "no deploys"
kind = "exec"
deny = ["kubectl", "terraform apply", "rm -r", "cat /etc/shadow"]

[[rule]]
name = "say so before pushing"
kind = "exec"
ask = ["git push", "head -c"]
`

// Every trap of APPROVALS.md that policy answers for, by its row.
var traps = []struct {
	trap     string
	verdict  Verdict
	commands []string
}{
	{"what is simply allowed", Allow, []string{
		"ls", "ls -la src", "cat README.md", "git status", "go test ./...", "ls; pwd", "ls && pwd", "ls | sort", "ls || pwd", "ls & pwd", "ls\npwd",
		"cat README.md | sort | uniq -c | sort -rn", "git log --oneline -5", "go test ./... 2>&1 | tail -20", "ls # everything",
		"cd src && ls", "cd sub && cd deep && ls", "ls \\\n  -la", "sed -n 1,5p README.md", "cat < README.md", "ls > /dev/null 2>&1",
		"git diff HEAD~1 -- src", "! test -f nothing", "[ -f main.go ] && ls", "CI=1 go test ./...", "cat 'a file with blanks'", "cat src/../README.md",
	}},
	{"every part must be allowed", Ask, []string{
		"ls && other", "ls; other", "ls | other", "ls || other", "ls & other", "ls\nother", "other && ls", "ls &\nother", "ls;other;ls", "ls\\\nother", "ls # \\\nother", "ls # x \\\n -la", "ls \\\n# x \\\n -la",
		"ls\rother", "# &\rother", "ls # &\rother", "ls |& other", "(ls; other)", "{ ls; other; }", "if true; then other; fi", "while true; do other; done", "for i in a; do other; done", "case a in a) other;; esac",
	}},
	{"one denied part denies all", Deny, []string{
		"ls && kubectl get pods", "ls; kubectl", "kubectl | ls", "false || kubectl", "ls & kubectl", "ls\nkubectl", "# &\rkubectl delete", "ls && (kubectl)", "{ kubectl; }",
		"if true; then kubectl; fi", "f() { kubectl; }; f", "terraform -chdir=x apply -auto-approve", "ls && rm -fr src", "rm --recursive src; rm -r x",
	}},
	{"inner commands ask", Ask, []string{
		"ls $(other)", "ls `other`", "cat <(other)", "echo ${x:-$(other)}", "echo $((1+1))", "cat <<EOF\nhello\nEOF", "cat <<< hello", "echo $HOME", "echo \"$(other)\"", "echo $x", "echo ${x}", "echo $[1+1]", "ls >(other)",
	}},
	{"inner commands are searched by deny", Deny, []string{
		"ls $(kubectl)", "ls `kubectl`", "cat <(kubectl)", "echo ${x:-$(kubectl)}", "echo $(( $(kubectl) ))", "cat <<EOF\n$(kubectl)\nEOF", "sh <<EOF\nkubectl\nEOF", "bash <<< kubectl", "bash <<< 'kubectl delete'",
		"echo \"a `kubectl` b\"", "echo $(echo $(echo `kubectl`))", "k${x}ubectl", "k\"\"ubectl", "k\\ubectl", "$'\\x6bubectl'", "{kubectl,delete}", "/usr/bin/kubec?l", "/opt/bin/kubectl get", "'kubectl'",
	}},
	{"dialect gaps", Ask, []string{
		"((id))", "((ls))", "[[ x || id ]]", "[[ 1 > f ]]", "let a|id", "echo $'\\' # '; id", "[[ -f x ]]", "time ls", "function f { ls; }", "select x in a; do ls; done", "ls &> f", "ls >& f", "a+=b", "a[0]=b ls", "ls @(a|b)", "coproc ls", "ls {a,b}", "x=(1 2)", "ls ;& ls",
	}},
	{"dialect gaps are searched by deny", Deny, []string{
		"((x)) || kubectl", "[[ x || kubectl ]] || kubectl", "let a|kubectl", "echo $'\\' # '; kubectl", "time kubectl", "function f { kubectl; }",
	}},
	{"assignments and env", Ask, []string{
		"FOO=1 ls", "FOO=1", "PATH=. ls", "env ls", "env FOO=1 ls", "LD_PRELOAD=x ls", "IFS=x ls", "GIT_DIR=x git status", "CI=$(other) go test ./...", "CI=~/x go version", "CI=1 ls",
	}},
	{"redirections write", Ask, []string{
		"ls > file", "ls >> file", "ls 2> file", "ls >| file", "ls <> file", "tee file", "ls | tee file", "dd of=x", "ls > /tmp/x", "> file", "ls > ~/x", "ls > $x", "ls > 'a b'", "cat < /etc/passwd", "ls 3> x", "ls > .git/hooks/x", "ls {fd}> x", "ls >&3", "ls 2>&-", "ls > out/passwd", "ls >2>f", "ls >f>g",
	}},
	{"wrappers are not allowed by their names", Ask, []string{
		"sudo ls", "nohup ls", "time ls", "timeout 5 ls", "xargs ls", "nice ls", "command ls", "builtin pwd", "ssh host ls", "docker run x ls", "find . -exec ls {} +", "find . -exec other ';'", "git -c core.pager=x log", "git -c alias.x='!id' x", "awk 1 README.md", "sed p README.md", "tar xf x", "python -c 1", "sh -c ls", "bash -c ls", "env -i ls", "stdbuf -o0 ls", "timeout 5 other", "timeout 5 go run evil",
	}},
	{"deny looks through wrappers", Deny, []string{
		"sudo kubectl", "sudo -u root kubectl", "nohup kubectl", "time kubectl", "timeout 5 kubectl", "echo x | xargs kubectl", "nice -n 5 kubectl", "command kubectl", "ssh host kubectl", "ssh host 'cd /x; kubectl delete'", "docker run bitnami/kubectl", "find . -exec kubectl {} ';'", "find . -execdir sh -c 'kubectl x' ';'",
		"git -c alias.x='!kubectl delete' x", "awk 'BEGIN{system(\"kubectl\")}'", "sed '1e kubectl' f", "tar cf x --checkpoint=1 --checkpoint-action=exec=kubectl y", "python -c 'import os; os.system(\"kubectl x\")'", "python3.11 -c \"os.system('kubectl')\"", "sh -c kubectl", "sh -c 'ls; kubectl'", "bash -c \"bash -c 'kubectl'\"", "eval kubectl", "eval 'ls; kubectl'", "exec kubectl", "env FOO=1 kubectl", "env -S 'kubectl x'", "busybox sh -c kubectl", "perl -e 'system \"kubectl\"'", "rg --pre kubectl x", "git bisect run kubectl", "trap kubectl EXIT", "node -e 'x(\"kubectl\")'",
		"sudo sh -c 'sudo sh -c \"kubectl\"'", "GIT_SSH_COMMAND='kubectl x' git fetch",
	}},
	{"options that write or run", Ask, []string{
		"git diff --output=F", "git diff --output F", "git grep -O", "git grep -Oless x", "git grep --open-files-in-pager=x y", "git grep --open-files x", "go test -exec=x", "go test -exec x ./...", "find . -fprintf x y", "find . -delete", "find . -fls x", "rg --pre x y", "rg --pre=x y", "rg -z x", "sed -n w README.md", "sed -n '1w x' README.md", "sed -n 1e README.md", "sed -i s/a/b/ README.md", "tar --checkpoint-ac=exec=x", "sort -o main.go x", "sort --output=x y", "sort --compress-program=x y", "uniq a b", "ls --colo=auto", "ls -lZ", "ls -l1", "git diff --ext-diff", "git log --textconv", "go test -toolexec=x", "go vet -vettool=x", "go build -overlay=x", "date -s 1", "date --set=x",
	}},
	{"globs", Ask, []string{"ls *", "cat *.go", "ls ?", "ls [a-z]*", "cat src/*", "ls {a,b}", "ls ~", "ls ~root", "cat ~/x", "ls a=~/x", "ls !(x)", "ls +(x)"}},
	{"what is not that program", Ask, []string{"'ls ' x", "./ls", "/tmp/ls", "/bin/ls", "\u217cs", "l\u0455", "'l\u0455'", "LS", "ls\u00a0-l", "''ls\\ ", "-ls", "\"\"", "ls\u200b"}},
	{"unquoting", Allow, []string{"'l''s'", "l\\s", "\"l\"s", "'ls'", "l\"s\" '-l'", "cat \"READ\"ME.md", "cat READ\\ME.md"}},
	{"bytes", Ask, []string{"ls\x00", "ls \x1b[31m", "ls \xff", "ls 'a\xffb'", "ls \u2028", "echo \x07", "ls é", "cat a\u202eb", "ls \u0085", "ls \x7f", "ls \v", "ls \f"}},
	{"builtins that change the shell", Ask, []string{
		"export X=1", "set -e", "unset PATH", "trap ls EXIT", "alias ls=rm", "hash -p x ls", "read x", "exec ls", "eval ls", ". ./x", "source x", "let a", "declare -x A", "shopt -s expand_aliases", "enable -f x y", "ulimit -n 1", "umask 0", "printf -v x y", "printf '%n' x", "command -p ls", "wait", "exit 0", ":", "type ls",
	}},
	{"paths", Ask, []string{
		"cat /etc/passwd", "cat ../x", "cat src/../../x", "cat out/passwd", "cat up/x", "ls /", "ls ..", "cat .env", "cat ./.env", "cat secret", "cat src/../.env", "cat .git/config", "cat missing/../x", "cat -", "cat -- -x/../../y", "find / -name x", "cd .. && ls", "cd / && ls", "cd out && ls", "cd in && ls", "cd - && ls", "cd && ls", "cd src; ls", "cd src || ls", "ls && cd src && ls", "cd sub && cat ../../x", "cd src | ls", "cd sub && ls; cat b.txt; cat ../main.go", "cd src & ls", "cd $x && ls", "cd -P src && ls",
	}},
	{"paths inside", Allow, []string{
		"cat not/there/yet", "cat in/a.go", "cd sub && cat ../main.go", "cd sub/deep && cat ../../README.md && ls", "cat ./src/./a.go", "cat src//a.go", "ls .", "cat 'with blank'", "ls src/",
	}},
	{"a rule that asks", Ask, []string{"git push", "git push --force", "head -c 5 README.md", "cd src && git push origin main"}},
	{"long and deep", Ask, []string{
		strings.Repeat("(", 3000) + "ls" + strings.Repeat(")", 3000), "echo " + strings.Repeat("$(", 5000), strings.Repeat("`", 5000), "ls " + strings.Repeat("a ", 64<<10), strings.Repeat("! ", 20000) + "ls", strings.Repeat("if ", 20000),
		strings.Repeat("ls && ", 10000) + "other", strings.Repeat("ls | ", 12000) + "other",
	}},
	{"long and deep, denied", Deny, []string{
		strings.Repeat("(", 3000) + "kubectl" + strings.Repeat(")", 3000), "echo " + strings.Repeat("$(", 5000) + "kubectl", "ls " + strings.Repeat("a ", 64<<10) + "; kubectl x",
		strings.Repeat("ls && ", 10000) + "kubectl", strings.Repeat("ls | ", 100000) + "kubectl", "eval " + strings.Repeat("eval ", 10000) + "kubectl",
		strings.Repeat("! ", 20000) + "kubectl", "X=1 kubectl # " + strings.Repeat("x", 64<<10), "if kubectl; then " + strings.Repeat("ls;", 30000),
	}},
	{"unlimited parts", Allow, []string{strings.Repeat("ls && ", 5000) + "pwd", strings.Repeat("ls\n", 5000)}},
}

func TestEveryTrap(t *testing.T) {
	ctx := testContext(t)
	r := rulesOf(t, ctx, string(shipped(t, "starter", "developer"))+denies)
	for _, tr := range traps {
		for _, c := range tr.commands {
			e := r.Explain(command(c))
			if e.Verdict != tr.verdict {
				t.Errorf("%s: %.80q is %s, want %s: %s", tr.trap, c, e.Verdict, tr.verdict, e.Reason)
			}
			if e.Reason == "" || len(e.Parts) == 0 {
				t.Errorf("%s: %.80q has no reason or no parts", tr.trap, c)
			}
			for _, p := range e.Parts {
				if p.Reason == "" && p.Verdict != Allow {
					t.Errorf("%s: a part of %.80q has no reason", tr.trap, c)
				}
			}
		}
	}
}

func TestEnvironmentAdditionsAskUnlessTheRuleListsThem(t *testing.T) {
	r := rulesOf(t, testContext(t), string(shipped(t, "starter", "developer")))
	for _, c := range []struct {
		env  map[string]string
		want Verdict
	}{
		{nil, Allow}, {map[string]string{"CI": "1"}, Allow}, {map[string]string{"FOO": "1"}, Ask},
		{map[string]string{"CI": "1", "LD_PRELOAD": "x"}, Ask}, {map[string]string{"GOFLAGS": "-exec=x"}, Ask},
	} {
		i := command("go test ./...")
		i.Env = c.env
		if e := r.Explain(i); e.Verdict != c.want {
			t.Errorf("with %v: %s, want %s: %s", c.env, e.Verdict, c.want, e.Reason)
		}
	}
}

func TestWhatCanChangeTheCodeThatRunsCanNeverBeListed(t *testing.T) {
	for _, name := range strings.Fields("PATH HOME LD_PRELOAD DYLD_X BASH_ENV ENV IFS PS4 SHELLOPTS BASH_FUNC_x PROMPT_COMMAND CFLAGS GOFLAGS MAKEFLAGS JAVA_TOOL_OPTIONS NODE_OPTIONS PYTHONPATH PERL5LIB RUBYOPT GIT_DIR EDITOR PAGER RUSTC_WRAPPER RIPGREP_CONFIG_PATH path CDPATH") {
		text := "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\nenv = [\"" + name + "\"]\n"
		_, err := Parse("r.toml", []byte(text), testContext(t))
		if err == nil || !strings.Contains(err.Error(), "r.toml:5: ") {
			t.Errorf("listing %s: %v", name, err)
		}
	}
}

func TestTheDirectoryOfACommandIsPartOfItsVerdict(t *testing.T) {
	r := rulesOf(t, testContext(t), string(shipped(t, "starter")))
	for cwd, want := range map[string]Verdict{"": Allow, "src": Allow, "/src": Allow, "..": Ask, "out": Ask, "up": Ask, "src/../..": Ask, "in": Allow} {
		i := command("ls")
		i.Cwd = cwd
		if e := r.Explain(i); e.Verdict != want {
			t.Errorf("in %q: %s, want %s: %s", cwd, e.Verdict, want, e.Reason)
		}
	}
	i := command("cat ../main.go")
	i.Cwd = "sub"
	if e := r.Explain(i); e.Verdict != Allow {
		t.Errorf("a path from the directory: %s", e.Reason)
	}
}

func TestAProgramIsTheFileThatItWasWhenTheRulesWereLoaded(t *testing.T) {
	ctx := testContext(t)
	bin := t.TempDir()
	bin, _ = filepath.EvalSymlinks(bin)
	other := filepath.Join(filepath.Dir(ctx.Root), "other")
	program := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "ls"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program(bin)
	ctx.LookPath = nil
	const rules = "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\", \"rg\"]\n"
	verdict := func(r *Rules, c string) Verdict { return r.Explain(command(c)).Verdict }

	ctx.SearchPath = other + ":" + bin
	r := rulesOf(t, ctx, rules)
	if v := verdict(r, "ls"); v != Allow {
		t.Errorf("as it was: %s", v)
	}
	if v := verdict(r, "rg"); v != Ask {
		t.Errorf("a program that is not installed: %s", v)
	}
	program(other) // another ls earlier in PATH
	if v := verdict(r, "ls"); v != Ask {
		t.Errorf("another ls earlier in PATH: %s", v)
	}
	for _, dir := range []string{".", "", "bin", ctx.Root, ctx.Root + "/src"} {
		ctx.SearchPath = dir + ":" + bin
		if v := verdict(rulesOf(t, ctx, rules), "ls"); v != Ask {
			t.Errorf("with %q first in PATH: %s", dir, v)
		}
	}
	program(filepath.Join(ctx.Root, "tools"))
	if err := os.Symlink(filepath.Join(ctx.Root, "tools", "ls"), filepath.Join(bin, "rg")); err != nil {
		t.Fatal(err)
	}
	ctx.SearchPath = bin
	if v := verdict(rulesOf(t, ctx, rules), "rg"); v != Ask {
		t.Errorf("a program that is a link into the work directory: %s", v)
	}
}

func TestWritesToWhatIsOursAreDenied(t *testing.T) {
	ctx := testContext(t)
	own := ctx.Own[0]
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(ctx.Root, "cfg")); err != nil {
		t.Fatal(err)
	}
	r := rulesOf(t, ctx, string(shipped(t, "starter")))
	for _, c := range []string{
		"ls > " + own + "/rules.toml", "echo x >> ../config/rules.toml", "tee " + own + "/x", "cp x " + own, "dd of=" + own + "/x", "rm -rf " + own, "rm -rf ..", "mv x cfg/rules.toml",
		"sh -c 'echo > " + own + "/x'", "sudo tee " + own + "/x", "python3 -c 'open(\"" + own + "/x\", \"w\")'", "echo $(touch " + own + "/x)", "cat <<EOF > cfg/x\nEOF", "sed -i s/a/b/ cfg/rules.toml", "cd src && cp a.go " + own,
	} {
		if e := r.Explain(command(c)); e.Verdict != Deny || e.By != BuiltIn {
			t.Errorf("%q is %s by %q: %s", c, e.Verdict, e.By, e.Reason)
		}
	}
	if e := r.Explain(command("cat " + own + "/rules.toml")); e.Verdict != Ask {
		t.Errorf("reading is %s", e.Verdict)
	}
	for _, path := range []string{"../config/x", "cfg/x", "cfg"} {
		if e := r.Explain(Item{Task: execute.Task{Kind: "write", Path: path}}); e.Verdict != Deny {
			t.Errorf("write %s is %s: %s", path, e.Verdict, e.Reason)
		}
	}
}

func TestFilesAreJudgedAsSpelledAndAsResolved(t *testing.T) {
	starter, _, _ := strings.Cut(string(shipped(t, "starter")), "[[test]]")
	text := starter + "\n[[rule]]\nname = \"write sources\"\nkind = \"write\"\nallow-paths = [\"**\"]\ndeny-paths = [\"docs/**\"]\n"
	r := rulesOf(t, testContext(t), text)
	for _, c := range []struct {
		kind, path string
		want       Verdict
	}{
		{"read", "main.go", Allow}, {"read", "/main.go", Allow}, {"read", ".env", Deny}, {"read", "./.env", Deny}, {"read", "src/../.env", Deny}, {"read", "secret", Deny}, {"read", "secret/../main.go", Allow},
		{"read", "out/passwd", Ask}, {"read", "../x", Ask}, {"read", "in/a.go", Allow}, {"read", "x/id_rsa", Deny}, {"read", ".git/config", Deny}, {"read", ".git", Deny},
		{"list", ".", Allow}, {"list", "", Allow}, {"list", "src", Allow}, {"list", "up", Ask},
		{"write", "src/b.go", Allow}, {"write", "docs/x", Deny}, {"write", "src/../docs/x", Deny}, {"write", ".git/hooks/pre-commit", Ask}, {"write", "a/.git/config", Ask}, {"write", ".git", Ask}, {"write", "sub/.GIT/config", Ask}, {"write", "out/x", Ask}, {"write", "up/x", Ask},
	} {
		e := r.Explain(Item{Task: execute.Task{Kind: c.kind, Path: c.path}})
		if e.Verdict != c.want {
			t.Errorf("%s %q is %s, want %s: %s", c.kind, c.path, e.Verdict, c.want, e.Reason)
		}
	}
	for entry, want := range map[string]bool{"main.go": false, ".env": true, "a/b/.env.local": true, ".git/config": true, "src/key.pem": true, "environment": false} {
		if got := r.Hidden(Item{}, entry); got != want {
			t.Errorf("a list hides %q: %v, want %v", entry, got, want)
		}
	}
}

func TestAListThroughALinkLeavesOutWhatIsDeniedWhereItIs(t *testing.T) {
	ctx := testContext(t)
	write(t, filepath.Join(ctx.Root, "src/private/key"), "x")
	for link, to := range map[string]string{"sub/up": "../src", "sub/notes": "../.env", "sub/there": "../src/private"} {
		if err := os.Symlink(to, filepath.Join(ctx.Root, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := rulesOf(t, ctx, "[[rule]]\nname = \"list\"\nkind = \"list\"\nallow-paths = [\"**\"]\ndeny-paths = [\"src/private/**\", \"**/.env\", \"in/a.go\", \""+ctx.Root+"/docs/**\"]\n")
	for entry, want := range map[string]bool{
		"in/private": true, "in/private/key": true, "src/private": true, "sub/up/private/key": true, "sub/notes": true, "sub/there": true, "sub/there/key": true, "docs": true, "docs/x": true,
		"in": false, "in/a.go": true, "src/a.go": false, "sub/up/a.go": false, "sub/b.txt": false, "secret": true, "sub/none": false,
	} {
		if got := r.Hidden(Item{Task: execute.Task{Kind: "list", Path: "in"}}, entry); got != want {
			t.Errorf("a list hides %q: %v, want %v", entry, got, want)
		}
	}
}

func TestGitTakesNoOrdersFromTheWorkDirectory(t *testing.T) {
	for _, c := range []struct {
		brings []string // what the agent wrote
		at     string   // where git runs
		want   Verdict
	}{
		{nil, ".", Allow},
		{nil, "sub/deep", Allow},
		{[]string{"sub/HEAD", "sub/objects/x", "sub/refs/x"}, "src", Allow},
		{[]string{"sub/HEAD"}, "sub", Allow},
		{[]string{"sub/objects/x", "sub/refs/x", "sub/config"}, "sub", Allow},
		{[]string{"sub/HEAD", "sub/objects/x", "sub/refs/x"}, "sub", Ask},
		{[]string{"sub/HEAD", "sub/objects/x", "sub/refs/x"}, "sub/deep", Ask},
		{[]string{"sub/HEAD", "sub/commondir"}, "sub", Ask}, // names another directory, with all that git wants
		{[]string{"sub/HEAD", "sub/commondir"}, "sub/deep", Ask},
		{[]string{"sub/HEAD", "sub/config"}, "sub", Ask},
		{[]string{"sub/HEAD", "sub/gitdir"}, "sub", Ask},
		{[]string{"sub/HEAD", "sub/refs/x"}, "sub", Ask},
		{[]string{"HEAD", "config"}, ".", Ask},
		{[]string{"HEAD", "commondir"}, "sub/deep", Ask},
		{[]string{"sub/HEAD", "sub/commondir", "sub/deep/.git/x"}, "sub/deep", Ask}, // that .git is none, so git goes on
	} {
		ctx := testContext(t)
		for _, name := range c.brings {
			write(t, filepath.Join(ctx.Root, name), "x\n")
		}
		r := rulesOf(t, ctx, string(shipped(t, "starter")))
		for _, git := range []string{"git status", "git log"} {
			i := command(git)
			i.Cwd = c.at
			if e := r.Explain(i); e.Verdict != c.want {
				t.Errorf("with %q, %s in %s is %s, want %s: %s", c.brings, git, c.at, e.Verdict, c.want, e.Reason)
			}
			if e := r.Explain(command("cd " + c.at + " && " + git)); e.Verdict != c.want {
				t.Errorf("with %q, %s after cd %s is %s, want %s: %s", c.brings, git, c.at, e.Verdict, c.want, e.Reason)
			}
		}
	}
}

func TestAValueThatIsAttachedIsNotEmpty(t *testing.T) {
	const rules = "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"a [-g<word> -n<number> -p<path>] <word>...\", \"b -x<word> <word>\", \"c [-g <word>] <word>\"]\n[[rule]]\nname = \"y\"\nkind = \"read\"\nallow-paths = [\"**\"]\n"
	r := rulesOf(t, testContext(t), rules)
	for c, want := range map[string]Verdict{
		"a -gx y": Allow, "a -n5 y": Allow, "a -psrc y": Allow, "b -xa y": Allow, "c -g x y": Allow, "c -g '' y": Allow,
		"a -g y": Ask, "a -n y": Ask, "a -p y": Ask, "b -x y": Ask, "c -g -x y": Ask, "c -g -- y": Ask, "a '-g' y": Ask,
	} {
		if e := r.Explain(command(c)); e.Verdict != want {
			t.Errorf("%q is %s, want %s: %s", c, e.Verdict, want, e.Reason)
		}
	}
}

func TestWithoutAPosixShellNothingIsUnderstood(t *testing.T) {
	ctx := testContext(t)
	ctx.OtherShell = true
	r := rulesOf(t, ctx, string(shipped(t, "starter"))+denies)
	if e := r.Explain(command("ls")); e.Verdict != Ask {
		t.Errorf("ls is %s", e.Verdict)
	}
	if e := r.Explain(command("dir & kubectl")); e.Verdict != Deny {
		t.Errorf("a denied command is %s: %s", e.Verdict, e.Reason)
	}
}

func TestInvalidFilesAreRefusedWithTheirLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"TOML", "[[rule]]\nname = \n", "r.toml:2: "},
		{"an unknown key", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\nalow = 1\n", "r.toml:5: alow is not a setting"},
		{"an unknown table", "[rules]\nx = 1\n", "r.toml:1: "},
		{"no name", "[[rule]]\nkind = \"exec\"\nallow = [\"ls\"]\n", "r.toml:1: a rule needs a name"},
		{"no kind", "[[rule]]\nname = \"x\"\nallow = [\"ls\"]\n", "r.toml:1: rule \"x\" needs a kind"},
		{"a wrong kind", "[[rule]]\nname = \"x\"\nkind = [\"exec\",\n \"run\"]\nallow = [\"ls\"]\n", "r.toml:4: kind is \"run\""},
		{"a rule that says nothing", "[[rule]]\nname = \"x\"\nkind = \"exec\"\n", "r.toml:1: rule \"x\" says nothing"},
		{"two of a name", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\n[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\n", "r.toml:6: another rule"},
		{"a bare *", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\n  \"ls\",\n  \"*\",\n]\n", "r.toml:6: allow \"*\": a bare *"},
		{"a * among the words", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls *\"]\n", "r.toml:4: allow \"ls *\""},
		{"a program with a slash", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"./ls\"]\n", "has a slash"},
		{"code without runs-code", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"make test\"]\n", "needs runs-code"},
		{"go test without runs-code", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"go test <path>...\"]\n", "needs runs-code"},
		{"git with hooks without runs-code", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"git commit -m <word>\"]\n", "needs runs-code"},
		{"git with any subcommand", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"git <word>\"]\n", "needs runs-code"},
		{"python with a version", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"python3.11 <path>\"]\n", "needs runs-code"},
		{"a sed script", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"sed [-n] <word> <path>\"]\n", "can write files"},
		{"a wrapper of anything", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nruns-code = true\nallow = [\"sudo <word>...\"]\n", "any command"},
		{"a builtin", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nruns-code = true\nallow = [\"eval <word>\"]\n", "always asked"},
		{"an unknown placeholder", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls <dir>\"]\n", "none of <path>"},
		{"... in the middle", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"cp <path>... <path>\"]\n", "after ..."},
		{"a bracket left open", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls [-l\"]\n", "without its ]"},
		{"paths for exec", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow-paths = [\"**\"]\n", "r.toml:4: allow-paths is for rules of kind read"},
		{"commands for read", "[[rule]]\nname = \"x\"\nkind = \"read\"\nallow = [\"ls\"]\n", "r.toml:4: allow is for rules of kind exec"},
		{"an absolute path", "[[rule]]\nname = \"x\"\nkind = \"read\"\nallow-paths = [\"/etc/**\"]\n", "begins with a /"},
		{"** beside letters", "[[rule]]\nname = \"x\"\nkind = \"read\"\nallow-paths = [\"a**\"]\n", "stands for whole names"},
		{"a cwd outside", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\ncwd = \"../x\"\n", "r.toml:5: cwd"},
		{"a test without an expectation", "[[test]]\ncommand = \"ls\"\n", "r.toml:1: a test needs to expect"},
		{"a test of nothing", "[[test]]\nexpect = \"ask\"\n", "r.toml:1: a test needs one of"},
		{"a failing test", "[[rule]]\nname = \"x\"\nkind = \"exec\"\nallow = [\"ls\"]\n\n[[test]]\ncommand = \"ls\"\nexpect = \"ask\"\n", "r.toml:6: test failed: exec \"ls\": expected ask, the rules say allow"},
		{"a deny pattern with a glob", "[[rule]]\nname = \"x\"\nkind = \"exec\"\ndeny = [\"rm *\"]\n", "deny \"rm *\""},
	} {
		r, err := Parse("r.toml", []byte(c.text), testContext(t))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if r != nil {
			t.Errorf("%s: rules are returned", c.name)
		}
		var bad *Invalid
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: the error is a %T", c.name, err)
		}
	}
}
