//go:build unix

package execute

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var baseEnv = []string{
	"PATH=" + os.Getenv("PATH"), "HOME=/home/op", "EDITOR=vi",
	"MANAGED_AGENTS_API_KEY=secret1", "MANAGED_AGENTS_ENVIRONMENT_KEY=secret2", "ANTHROPIC_API_KEY=secret3",
	"COUNTERSIGN_SOCKET=secret4", "DISPLAY=:0", "WAYLAND_DISPLAY=w", "XAUTHORITY=x", "DBUS_SESSION_BUS_ADDRESS=d",
	"XDG_RUNTIME_DIR=/run", "SSH_AUTH_SOCK=s", "AWS_KEY=secret5",
}

func environment(t *testing.T, r *Runner, add map[string]string) map[string]string {
	t.Helper()
	task := sh("env")
	task.Env = add
	_, res := run(t, r, task)
	env := map[string]string{}
	for line := range strings.Lines(res.Stdout) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	return env
}

func TestSecretsAndTheDesktopDoNotReachACommand(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.Env, o.RemoveEnv = func() []string { return baseEnv }, []string{"AWS_*"} })
	env := environment(t, r, nil)
	for name, value := range env {
		if strings.HasPrefix(value, "secret") || slices.Contains(r.RemovedEnv(), name) {
			t.Errorf("%s=%s reached the command", name, value)
		}
	}
	if env["HOME"] != "/home/op" || env["EDITOR"] != "vi" || env["PWD"] != r.Dir() {
		t.Errorf("environment %v", env)
	}
	want := []string{"ANTHROPIC_API_KEY", "AWS_KEY", "COUNTERSIGN_SOCKET", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "MANAGED_AGENTS_API_KEY",
		"MANAGED_AGENTS_ENVIRONMENT_KEY", "SSH_AUTH_SOCK", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"}
	if !slices.Equal(r.RemovedEnv(), want) {
		t.Errorf("RemovedEnv() = %v, want %v", r.RemovedEnv(), want)
	}
}

func TestWhatIsPassedOnByConfigurationReachesACommandButNeverOurCredentials(t *testing.T) {
	r := newRunner(t, func(o *Options) {
		o.Env, o.PassEnv = func() []string { return baseEnv }, []string{"DISPLAY", "DBUS_*", "MANAGED_AGENTS_*", "MANAGED_AGENTS_API_KEY", "*"}
	})
	env := environment(t, r, nil)
	if env["DISPLAY"] != ":0" || env["DBUS_SESSION_BUS_ADDRESS"] != "d" {
		t.Errorf("environment %v", env)
	}
	if env["MANAGED_AGENTS_API_KEY"] != "" || env["MANAGED_AGENTS_ENVIRONMENT_KEY"] != "" {
		t.Error("our credentials were passed on")
	}
	if got := r.RemovedEnv(); !slices.Equal(got, []string{"MANAGED_AGENTS_API_KEY", "MANAGED_AGENTS_ENVIRONMENT_KEY"}) {
		t.Errorf("RemovedEnv() = %v", got)
	}
}

func TestAFunctionThatBashExportedIsNotRunInAProgramsPlace(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, name := range []string{"BASH_FUNC_true%%", "BASH_FUNC_ls%%"} {
		r := newRunner(t, func(o *Options) {
			o.Shell = []string{bash, "-c"}
			o.Env = func() []string { return append(slices.Clone(baseEnv), name+"=() {  echo not that program\n}") }
		})
		if _, res := run(t, r, sh("true; ls; declare -F")); res.Stdout != "" || res.ExitCode != 0 {
			t.Errorf("%s: printed %q%q", name, res.Stdout, res.Stderr)
		}
		if !slices.Contains(r.RemovedEnv(), name) {
			t.Errorf("RemovedEnv() = %v", r.RemovedEnv())
		}
	}
}

func TestAnItemsAdditionsWin(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.Env = func() []string { return baseEnv } })
	env := environment(t, r, map[string]string{"EDITOR": "ed", "NEW": "a b", "MANAGED_AGENTS_API_KEY": "theirs"})
	if env["EDITOR"] != "ed" || env["NEW"] != "a b" || env["MANAGED_AGENTS_API_KEY"] != "theirs" {
		t.Errorf("environment %v", env)
	}
}

// fakeShell makes a shell that does what script says.
func fakeShell(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHELL", path)
}

func TestTheLoginEnvironmentIsWhatTheShellSetsUp(t *testing.T) {
	t.Setenv("MANAGED_AGENTS_API_KEY", "secret")
	fakeShell(t, `echo a greeting
[ "$1$2" = -l-c ] || exit 1
export FROM_PROFILE="a
b" SEEN="$MANAGED_AGENTS_API_KEY"
sleep 300 3>&3 & echo $! > "${0}.pid"
eval "$3"`)
	env, err := CaptureLoginEnv(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(env, "FROM_PROFILE=a\nb") || !slices.Contains(env, "SEEN=") {
		t.Errorf("environment %q", env)
	}
	pid, _ := os.ReadFile(os.Getenv("SHELL") + ".pid")
	if p, err := os.FindProcess(atoi(t, string(pid))); err == nil {
		p.Kill()
	}
}

func TestALoginShellThatFailsOrHangsLeavesTheProcessesOwnEnvironment(t *testing.T) {
	t.Setenv("OWN", "yes")
	for name, c := range map[string]struct {
		script  string
		timeout time.Duration
		want    string
	}{
		"hangs":         {"sleep 300", 100 * time.Millisecond, "no answer within 100ms"},
		"fails":         {"exit 5", time.Minute, "exit status 5"},
		"prints naught": {"exit 0", time.Minute, "no variables"},
	} {
		fakeShell(t, c.script)
		env, err := CaptureLoginEnv(t.Context(), c.timeout)
		if err == nil || !strings.Contains(err.Error(), c.want) || !slices.Contains(env, "OWN=yes") {
			t.Errorf("%s: %v, want %q and the own environment", name, err, c.want)
		}
	}
	t.Setenv("SHELL", "/no/such/shell")
	if env, err := CaptureLoginEnv(context.Background(), time.Minute); err == nil || !slices.Contains(env, "OWN=yes") {
		t.Errorf("no shell: %v", err)
	}
}

func TestWhatTheConfigurationRemovesIsRemovedWhateverItPasses(t *testing.T) {
	r := newRunner(t, func(o *Options) {
		o.Env = func() []string { return []string{"TOKEN=x", "DISPLAY=:0", "PATH=/bin"} }
		o.RemoveEnv, o.PassEnv = []string{"TOKEN"}, []string{"TOKEN", "DISPLAY"}
	})
	if got := r.RemovedEnv(); !slices.Equal(got, []string{"TOKEN"}) {
		t.Errorf("removed %v, want TOKEN", got)
	}
}

func TestAProfileThatTakesTooLongMayTidyUp(t *testing.T) {
	fakeShell(t, `trap 'rm "$0.lock"; exit 0' TERM
touch "$0.lock"
sleep 300 & wait`)
	lock := os.Getenv("SHELL") + ".lock"
	timeout := time.Second // for the shell to get there on a busy machine
	if _, err := CaptureLoginEnv(t.Context(), timeout); err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("its lock is left: %v", err)
	}
}
