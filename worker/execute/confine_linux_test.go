package execute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"countersign/worker/execute/keep"
)

// confinedRunner returns a runner that confines, and a place that it may write
// to besides; it skips the test where commands cannot be confined.
func confinedRunner(t testing.TB, change ...func(*Options)) (r *Runner, place string) {
	t.Helper()
	if _, err := ConfinementLevel(); err != nil {
		t.Skipf("commands cannot be confined here: %v", err)
	}
	place = filepath.Join(t.TempDir(), "made", "when", "needed")
	change = append([]func(*Options){func(o *Options) { o.Confine, o.WritablePaths = true, []string{place} }}, change...)
	return newRunner(t, change...), place
}

func TestAConfinedCommandWritesWhereItMay(t *testing.T) {
	r, place := confinedRunner(t)
	t.Setenv("PLACE", place) // before the runner first asks for its environment
	o, res := run(t, r, sh(`set -e
echo a >file; mkdir -p d/e; mv file d/e/moved; ln -s d link; rm link
echo b >"$PLACE/kept"; mv "$PLACE/kept" d/kept; echo c >"$PLACE/kept"
echo d >"$TMPDIR/temp"; mv "$TMPDIR/temp" d/temp
echo e >/dev/null; : </dev/zero; echo out >/dev/stdout; echo err >/dev/stderr
[ "$(stat -c %a "$TMPDIR")" = 700 ]; echo "$TMPDIR"`))
	lines := strings.Split(res.Stdout, "\n")
	if res.ExitCode != 0 || len(lines) != 3 || lines[0] != "out" || res.Stderr != "err\n" {
		t.Fatalf("outcome %+v, %+v", o, res)
	}
	if got := content(t, filepath.Join(place, "kept")) + content(t, filepath.Join(r.Dir(), "d/temp")); got != "c\nd\n" {
		t.Errorf("content %q", got)
	}
	if _, err := os.Stat(lines[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory %s is still there", lines[1])
	}
}

func TestAConfinedCommandWritesNowhereElse(t *testing.T) {
	r, _ := confinedRunner(t)
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	os.WriteFile(file, []byte("as it was"), 0o666)
	os.Symlink(outside, filepath.Join(r.Dir(), "out"))
	for _, command := range []string{
		"echo x >$O/file", "echo x >>$O/file", ": >$O/file", "truncate -s 0 $O/file", "rm $O/file", "mv $O/file .",
		"ln $O/file hard && echo x >hard", "echo x >$O/new", "mkdir $O/new", "ln -s x $O/new", "mkfifo $O/new", "touch $O/new",
		"cp /etc/passwd $O/new", "echo x >out/new", "cd $O && echo x >new", "mv ../$(basename $PWD) $O/new", "mknod dev c 1 3",
		"echo x >/tmp/countersign-new-$$", "setsid sh -c 'echo x >$O/new'", "sh -c 'echo x >$O/new'",
	} {
		task := sh(command)
		task.Env = map[string]string{"O": outside}
		if _, res := run(t, r, task); res.ExitCode == 0 {
			t.Errorf("%s: done", command)
		}
	}
	if got := content(t, file); got != "as it was" {
		t.Errorf("the file outside has %q", got)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside there is %v", entries)
	}
}

func TestAConfinedCommandReadsAndRunsWhatItLikes(t *testing.T) {
	r, _ := confinedRunner(t)
	if _, res := run(t, r, sh("cat /etc/passwd >copy && ls / >list && env true && wc -c <copy")); res.ExitCode != 0 {
		t.Errorf("result %+v", res)
	}
}

func TestAConfinedCommandCannotEndItsHelper(t *testing.T) {
	if abi, _ := keep.ABI(); abi < keep.ScopeABI {
		t.Skipf("Landlock version %d does not keep back signals", abi)
	}
	r, _ := confinedRunner(t)
	o, res := run(t, r, sh(`kill -KILL $PPID 2>/dev/null && exit 9; kill -STOP $PPID 2>/dev/null && exit 8
for t in $(ls /proc/$PPID/task); do # tgkill
	perl -e 'exit(syscall(234, $ARGV[0], $ARGV[1], 9) == 0 ? 0 : 1)' $PPID $t 2>/dev/null && exit 7
done
sleep 300 & kill $! && echo fine`))
	if o.How != Ended || res.Stdout != "fine\n" || res.ExitCode != 0 {
		t.Errorf("outcome %+v, %+v", o, res)
	}
}

func TestAStopEndsAConfinedTree(t *testing.T) {
	r, _ := confinedRunner(t)
	o, _ := stopped(t, r, zoo("sleep 300"), 1)
	if o.How != Stopped {
		t.Errorf("outcome %+v", o)
	}
	checkGone(t, zooPids(t, r.Dir())...)
	noChildren(t)
}

func TestATemporaryDirectoryIsRemovedWhateverIsInIt(t *testing.T) {
	r, _ := confinedRunner(t)
	keepIt := filepath.Join(t.TempDir(), "kept")
	os.Mkdir(keepIt, 0o500)
	_, res := run(t, r, sh(`mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; ln -s `+keepIt+` "$TMPDIR/a/link"; chmod 500 "$TMPDIR/a/b"; chmod 0 "$TMPDIR/a"; echo "$TMPDIR"`))
	temp := strings.TrimSpace(res.Stdout)
	if _, err := os.Lstat(temp); temp == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q: %v", temp, err)
	}
	if info, err := os.Stat(keepIt); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link led to was changed: %v, %v", info, err)
	}
}

func TestClosedDirectoriesAreOpenedUpForTheirRemoval(t *testing.T) {
	c := &confinement{temp: filepath.Join(t.TempDir(), "temp")}
	for dir := filepath.Dir(c.temp); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o777)
	}
	asNobody(t, func() {
		os.MkdirAll(filepath.Join(c.temp, "a", "b"), 0o755)
		os.WriteFile(filepath.Join(c.temp, "a", "b", "c"), nil, 0o444)
		os.Chmod(filepath.Join(c.temp, "a", "b"), 0o500)
		os.Chmod(filepath.Join(c.temp, "a"), 0)
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(c.temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestAVariableOfTheItemDoesNotReachTheHelper(t *testing.T) {
	r, _ := confinedRunner(t)
	outside := t.TempDir()
	task := sh("true")
	// The Go runtime writes to this directory at the end of an instrumented program.
	task.Env = map[string]string{"GOCOVERDIR": outside, "LD_PRELOAD": "/no/such.so"}
	_, res := run(t, r, sh("tr '\\0' '\\n' </proc/$PPID/environ"))
	if res.Stdout != strings.Join(keep.Environ, "\n")+"\n" {
		t.Errorf("the helper's environment: %q", res.Stdout)
	}
	if o, _ := run(t, r, task); o.How != Ended {
		t.Errorf("outcome %+v", o)
	}
}

func TestWhatCannotBeConfinedDoesNotRun(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no helper": inAGroup,
		"a place that cannot be made": func(o *Options) {
			o.WritablePaths = []string{"/proc/no/such"}
		},
	} {
		r := newRunner(t, func(o *Options) { o.Confine = true }, change)
		o, res := run(t, r, sh("touch effect"))
		if o.How != CouldNotStart || res.ExitCode != 126 || !strings.Contains(res.Stderr, "it is to be confined, and that cannot be done") {
			t.Errorf("%s: %+v", name, o)
		}
		if _, err := os.Stat(filepath.Join(r.Dir(), "effect")); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	if _, err := New(Options{Dir: t.TempDir(), WritablePaths: []string{"relative"}}); err == nil || !strings.Contains(err.Error(), "expected an absolute path") {
		t.Errorf("New = %v", err)
	}
}

// TestWithoutLandlockAConfinedCommandDoesNotRun takes Landlock away from this
// program in another role, as a kernel without it would.
func TestWithoutLandlockAConfinedCommandDoesNotRun(t *testing.T) {
	for name, errno := range map[string]unix.Errno{"this kernel has no Landlock": unix.ENOSYS, "was not enabled": unix.EOPNOTSUPP} {
		dir := t.TempDir()
		out, err := as("unconfined", dir, fmt.Sprint(int(errno))).Output()
		if err != nil {
			t.Fatal(err)
		}
		text := string(out)
		if !strings.Contains(text, `"exitCode":126`) || !strings.Contains(text, name) || !strings.Contains(text, "it is to be confined, and that cannot be done") {
			t.Errorf("result %s", text)
		}
		if !strings.Contains(text, "checked: it is to be confined") {
			t.Errorf("Check did not say so beforehand: %s", text)
		}
		if _, err := os.Stat(filepath.Join(dir, "effect")); err == nil {
			t.Error("it ran")
		}
	}
}

// playUnconfined runs a command that is to be confined and cannot be.
func playUnconfined() int {
	errno := 0
	fmt.Sscan(os.Args[2], &errno)
	runtime.LockOSThread()
	if err := forbid(unix.SYS_LANDLOCK_CREATE_RULESET, errno); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("checked:", checkConfined(os.Args[1]))
	return runIn(os.Args[1], "touch effect", func(o *Options) { o.Confine = true })
}

// forbid has a system call fail in all threads of this process and in all that
// it starts.
func forbid(call uint32, errno int) error {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: equal, K: call, Jt: 0, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return e
	}
	return nil
}
