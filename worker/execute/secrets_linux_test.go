package execute

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/worker/api/wire"
	"countersign/worker/execute/keep"
)

// nobody is a user with no rights but those of anybody.
const nobody = 65534

// peek prints the environments and descriptors of a command's ancestors, where
// the kernel lets it.
const peek = `env; p=$PPID
for i in 1 2 3; do
	[ -r /proc/$p/stat ] || break
	cat /proc/$p/environ 2>&1; echo; ls /proc/$p/fd 2>&1
	p=$(sed 's/.*) . \([0-9]*\) .*/\1/' /proc/$p/stat)
done`

func TestNoAncestorOfACommandShowsItOurSecrets(t *testing.T) {
	t.Setenv("MANAGED_AGENTS_API_KEY", "our-secret")
	r := newRunner(t, func(o *Options) { o.Env = os.Environ })
	// As root nothing is hidden: the helper has nothing to hide.
	_, res := run(t, r, sh("env; cat /proc/$PPID/environ"))
	if strings.Contains(res.Stdout, "our-secret") || strings.Contains(res.Stdout, spawnMark) {
		t.Errorf("printed %q", res.Stdout)
	}
}

// ownDir is a directory of another user's, whom only root can be.
func ownDir(t *testing.T, user int) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("/tmp", "own-") // others cannot come to t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestACommandCannotLookIntoItsHelper has this program run as a user without
// privileges, for whom the kernel's rules count.
func TestACommandCannotLookIntoItsHelper(t *testing.T) {
	cmd := as("nobody", ownDir(t, nobody))
	cmd.Env = append(cmd.Env, "MANAGED_AGENTS_API_KEY=our-secret")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var res wire.ExecResult
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if strings.Contains(res.Stdout, "our-secret") || strings.Count(res.Stdout, "Permission denied") < 4 {
		t.Errorf("printed %s", res.Stdout)
	}
}

// playNobody runs a command that looks around, as Countersign does: not to be
// looked into itself.
func playNobody() int {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 1
	}
	return runIn(os.Args[1], peek)
}

func TestAHelperStartsWithSignalsThatWereBlocked(t *testing.T) {
	env, err := exec.LookPath("env")
	self, selfErr := os.Executable()
	if err != nil || selfErr != nil || exec.Command(env, "--block-signal=USR2", "true").Run() != nil {
		t.Skip("no env that blocks signals")
	}
	cmd := as("victim", t.TempDir(), "cat /proc/self/status")
	cmd.Path, cmd.Args = env, append([]string{"env", "--block-signal=USR2", self}, cmd.Args[1:]...)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `SigBlk:\t0000000000000000`) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestStraysAreWaitedFor(t *testing.T) {
	k := testKeeper(t)
	out, err := exec.Command("sh", "-c", "sh -c 'echo $$; exec sleep 0.05 >&- 2>&-' & exit").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid := atoi(t, string(out))
	until(t, "it is dead", func() bool { p, there := keep.Look(pid); return there && p.Dead && p.Parent == os.Getpid() })
	k.mu.Lock()
	now := k.looked.Add(strayTime)
	k.reapStrays(now)
	k.mu.Unlock()
	if _, there := keep.Look(pid); !there {
		t.Error("it was waited for at once: its starter may want to")
	}
	k.mu.Lock()
	k.reapStrays(now.Add(strayTime))
	k.mu.Unlock()
	if _, there := keep.Look(pid); there {
		t.Error("it is still there")
	}
}
