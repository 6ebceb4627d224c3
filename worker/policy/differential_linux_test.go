package policy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// differentialRules allow much, so that random strings are allowed often.
const differentialRules = `
[[rule]]
name = "files"
kind = ["read", "write"]
allow-paths = ["**"]

[[rule]]
name = "programs"
kind = "exec"
env = ["A", "B"]
allow = [
  "a <word>...", "b [-x -n <number> --long -k<word> --] <path>...", "ls [-l -a --] <path>...", "cat [-n --] <path>...",
  "fails <word>...", "g [-p] log [-1 --all] <word>...",
]
`

var standIns = []string{"a", "b", "ls", "cat", "fails", "g", "x", "y", "log"}

// soup is what random commands are made of.
var soup = strings.Split("a|b|ls|cat|fails|g log|g|x|-l|-x|-n|--|-|--long|-k1|12|f|f2|sub|sub/f|./f|'q'|\"q\"|'a b'|\"a b\"|''|\"\"|\\ |\\a|\\;|\\'|\\\"|\\\\|\\$|\\`|\\#|#|# c|=|A=1|B='x y'|A=|C=1|"+
	" | | | | | | |\t|\n|;|&|&&|\x01|\x01\x01| && | ; | \x01 | & | \x01\x01 | \n |>|>>|<|2>|2>&1|>&2|>\x01|>f|>>f2|2>f3| >f4 |<f|1>|0<|<>|>&|&>|> /dev/null|2>/dev/null| <in|"+
	"!|! |{|}|(|)|[|]|*|?|~|~/|$|$x|${|`|'|\"|\\|\\\n| \\\n |cd sub && |cd |cd . &&|cd ./sub &&|%|^|@|,|.|..|/|:|+|é|'é'|\"é\"|\r|\x02|if |then |fi|in|time |do|done|for |case |esac|function |select |[[ |]]|((|))|let |\\t|$'|$\"|\\x41|a#b|HEAD~1|a~|a=~|-é|;;|;&|{a,b}|\"a\\b\"|\"a\\\\\"|\"\\$\"|\"'\"|'\"'|\"#\"|'\n'|\"\n\"|a\"b\"c|a'b'c|'a'#|\"a\"#|'a'~|=~|!!|a!b", "|")

// TestShellsDoWhatPolicySays runs random commands that are allowed, by dash, by
// bash as sh, and by what other shells there are, with recording stand-ins for
// all programs, and compares what ran with what the policy took the command for. COUNTERSIGN_DIFFERENTIAL says
// how many commands each shell runs.
func TestShellsDoWhatPolicySays(t *testing.T) {
	count := 250
	if s := os.Getenv("COUNTERSIGN_DIFFERENTIAL"); s != "" {
		var err error
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d commands for each shell", seed, count)
	bin := buildRecorder(t)
	for i, shell := range []string{"dash", "bash", "busybox", "mksh", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s", shell)
			}
			d := newDifferential(t, path, bin)
			d.run(t, rand.New(rand.NewPCG(seed, uint64(i))), count)
		})
	}
}

func buildRecorder(t *testing.T) string {
	t.Helper()
	bin, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bin, ".recorder")
	if out, err := exec.Command("go", "build", "-o", file, "./testdata/recorder").CombinedOutput(); err != nil {
		t.Fatalf("build the recorder: %v\n%s", err, out)
	}
	for _, name := range standIns {
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

type differential struct {
	shell, bin, root, around string
	rules                    *Rules
}

func newDifferential(t *testing.T, shell, bin string) *differential {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &differential{shell: shell, bin: bin, root: filepath.Join(base, "root"), around: base}
	if err := os.MkdirAll(filepath.Join(d.root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.rules = rulesOf(t, Context{Root: d.root, SearchPath: bin}, differentialRules)
	return d
}

func (d *differential) run(t *testing.T, random *rand.Rand, count int) {
	seeds := differentialSeeds()
	seen := map[string]bool{}
	commands := make(chan string)
	var wg sync.WaitGroup
	wg.Go(func() { // one at a time: they share the directory
		for c := range commands {
			if err := d.compare(c); err != nil {
				t.Errorf("%q: %v", c, err)
			}
			if t.Failed() {
				for range commands { // let the other end go
				}
				return
			}
		}
	})
	tried, interesting := 0, 0
	for len(seen) < count && !t.Failed() {
		tried++
		c := randomCommand(random, seeds)
		if seen[c] || len(c) > 120 || d.rules.Explain(command(c)).Verdict != Allow {
			continue
		}
		seen[c] = true
		if strings.ContainsAny(c, "'\"\\#<>|&;\n") {
			interesting++
		}
		if len(seeds) < 5000 {
			seeds = append(seeds, c)
		} else {
			seeds[random.IntN(len(seeds))] = c
		}
		commands <- c
	}
	close(commands)
	wg.Wait()
	t.Logf("%d different commands ran, %d of them with quotes or operators; %d were tried", len(seen), interesting, tried)
}

// differentialSeeds are the traps, with programs that have stand-ins.
func differentialSeeds() []string {
	var seeds []string
	for _, tr := range traps {
		for _, c := range tr.commands {
			if len(c) < 300 {
				seeds = append(seeds, strings.NewReplacer("README.md", "f", "other", "x", "git", "g", "kubectl", "y", "sort", "a").Replace(c))
			}
		}
	}
	return seeds
}

// randomCommand is soup, or a seed with a few random changes.
func randomCommand(r *rand.Rand, seeds []string) string {
	token := func() string { return strings.ReplaceAll(soup[r.IntN(len(soup))], "\x01", "|") }
	if r.IntN(3) == 0 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(token())
		}
		return b.String()
	}
	s := seeds[r.IntN(len(seeds))]
	for range 1 + r.IntN(3) {
		at := r.IntN(len(s) + 1)
		switch r.IntN(5) {
		case 0, 1:
			s = s[:at] + token() + s[at:]
		case 2:
			to := min(len(s), at+1+r.IntN(3))
			s = s[:at] + s[to:]
		case 3:
			other := seeds[r.IntN(len(seeds))]
			s = s[:at] + other[r.IntN(len(other)+1):]
		case 4:
			s = s[:at] + string(rune(r.IntN(128))) + s[at:]
		}
	}
	return s
}

// ran is one start of a stand-in.
type ran struct {
	dir   string
	fds   [3]string
	words []string
}

// compare runs one command and compares.
func (d *differential) compare(command string) error {
	s := understand(command)
	if s.why != "" {
		return fmt.Errorf("it was allowed and is not understood: %s", s.why)
	}
	started, err := d.start(command)
	if err != nil {
		return err
	}
	expected, all := d.expect(s)
	left := slices.Clone(expected)
	for _, r := range started {
		at := slices.IndexFunc(left, func(e want) bool { return e.is(r) })
		if at < 0 {
			return fmt.Errorf("%q ran, which is not what was said: %+v", r, expected)
		}
		left = slices.Delete(left, at, at+1)
	}
	if all && len(left) > 0 {
		return fmt.Errorf("%+v did not run; only %q did", left, started)
	}
	return d.tidy(s)
}

// start runs the command and returns what stand-ins recorded, once all ended.
func (d *differential) start(command string) ([]ran, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	cmd := exec.CommandContext(ctx, d.shell, "-c", command)
	cmd.Args[0] = "sh"
	cmd.Dir, cmd.Env, cmd.ExtraFiles = d.root, []string{"PATH=" + d.bin, "PWD=" + d.root}, []*os.File{to}
	for _, std := range []struct {
		name string
		to   func(*os.File)
	}{{"stdin", func(f *os.File) { cmd.Stdin = f }}, {"stdout", func(f *os.File) { cmd.Stdout = f }}, {"stderr", func(f *os.File) { cmd.Stderr = f }}} {
		f, err := os.OpenFile(filepath.Join(d.around, std.name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		std.to(f)
	}
	err = cmd.Start()
	to.Close()
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(from)
	_ = cmd.Wait() // it may fail as it likes
	if err != nil || ctx.Err() != nil {
		return nil, fmt.Errorf("it did not end: %v", ctx.Err())
	}
	return parseRecords(string(out))
}

func parseRecords(out string) (all []ran, err error) {
	for line := range strings.Lines(out) {
		var fields []string
		for rest := strings.TrimSuffix(line, "\n"); rest != ""; {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("a record cannot be read: %q", line)
			}
			text, _ := strconv.Unquote(quoted)
			fields = append(fields, text)
			rest = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		if len(fields) < 5 {
			return nil, fmt.Errorf("a record is short: %q", line)
		}
		all = append(all, ran{fields[0], [3]string(fields[1:4]), fields[4:]})
	}
	return all, nil
}

// want is what the policy says will run, if nothing before it prevents it.
type want struct {
	dirs  []string
	fds   [3][]string // each may be one of these
	words []string
}

func (w want) is(r ran) bool {
	for i, fd := range r.fds {
		if !slices.Contains(w.fds[i], fd) {
			return false
		}
	}
	return slices.Contains(w.dirs, r.dir) && slices.Equal(w.words, r.words)
}

// expect turns parts into what should run; all reports whether each must.
func (d *differential) expect(s script) (out []want, all bool) {
	all = true
	b := bases{at: d.root}
	for i, p := range s.parts {
		b.before(p)
		if p.op == "||" || strings.HasPrefix(p.text, "!") {
			all = false
		}
		if isCd(p) {
			to, why := (&judging{r: d.rules}).cdTarget(b.at, p.words[1])
			if why != "" {
				return nil, false
			}
			b.past, b.at = append(b.past, b.at), to
			if info, err := os.Stat(to); err != nil || !info.IsDir() {
				all = false
			}
			continue
		}
		all = all && p.words[0] != "fails"
		next := ""
		if i+1 < len(s.parts) {
			next = s.parts[i+1].op
		}
		w := want{dirs: b.all(), words: p.words}
		w.fds = d.descriptors(p, next, b.all())
		for _, r := range p.redirs { // it fails where a file or directory is missing
			if r.use() == reads && r.target != "/dev/null" || strings.Contains(r.target, "/") && r.target != "/dev/null" || r.target == "." || r.target == ".." || r.target == "sub" {
				all = false
			}
		}
		out = append(out, w)
	}
	return out, all
}

func (d *differential) descriptors(p part, next string, dirs []string) (fds [3][]string) {
	fds[0] = []string{filepath.Join(d.around, "stdin"), "/dev/null"} // in the background it is the latter
	fds[1] = []string{filepath.Join(d.around, "stdout")}
	fds[2] = []string{filepath.Join(d.around, "stderr")}
	if p.op == "|" {
		fds[0] = []string{"pipe"}
	}
	if next == "|" {
		fds[1] = []string{"pipe"}
	}
	for _, r := range p.redirs {
		fd := 1
		if r.use() == reads {
			fd = 0
		}
		if r.fd != "" {
			fd = int(r.fd[0] - '0')
		}
		if r.use() == noFile {
			fds[fd] = fds[r.target[0]-'0']
			continue
		}
		fds[fd] = nil
		for _, dir := range dirs {
			to := r.target
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			fds[fd] = append(fds[fd], to)
		}
	}
	return fds
}

// tidy removes what the command made. It must be what redirections name, and
// no shell may have complained that it does not know what to do.
func (d *differential) tidy(s script) error {
	named := map[string]bool{}
	for _, p := range s.parts {
		for _, r := range p.redirs {
			if r.use() == writes {
				named[filepath.Base(r.target)] = true
			}
		}
	}
	var bad error
	for _, dir := range []string{filepath.Join(d.root, "sub"), d.root} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			if e.Name() == "sub" && e.IsDir() {
				continue
			}
			if !named[e.Name()] {
				bad = fmt.Errorf("%s was made", e.Name())
			}
			if err := complaint(file); err != nil {
				bad = err
			}
			if err := os.RemoveAll(file); err != nil {
				return err
			}
		}
	}
	if bad == nil {
		bad = complaint(filepath.Join(d.around, "stderr"))
	}
	return bad
}

func complaint(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil // a redirection to a descriptor's own file
	}
	for _, sign := range []string{"not found", "yntax", "nterminated", "unexpected", "expansion", "bad ", "ermission denied"} {
		if strings.Contains(string(text), sign) {
			return fmt.Errorf("the shell says %q", text)
		}
	}
	return nil
}
