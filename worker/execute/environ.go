package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// removed names what a command has no business with: our credentials, the ways to
// act as the operator on their desktop, and the functions that Bash exports, which
// come before programs of their name: an approved ls has to be ls. A * stands for
// any ending.
//
// BASH_ENV, ENV and PROMPT_COMMAND stay: a shell that is given a command with -c as
// sh reads none of them, and the operator set them for the shells that do. We add
// none, and an item that does is asked for.
var removed = []string{
	"MANAGED_AGENTS_*", "ANTHROPIC_*", "COUNTERSIGN_*",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_*", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
	"BASH_FUNC_*",
}

// never names what cannot be passed on, whatever the configuration says.
var never = []string{"MANAGED_AGENTS_*"}

// splitEnv is a base environment: what commands get of it, and the names of
// what they do not, sorted.
type splitEnv struct {
	kept     []string
	unpassed []string
}

// filterEnv splits a base environment. What the configuration removes is removed;
// what it passes is only what we would have removed.
func filterEnv(base, more, pass []string) splitEnv {
	var kept, names []string
	for _, entry := range base {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" { // Windows keeps the current directory of drives as "=C:=C:\…"
			continue
		}
		if name == spawnMark { // ours, and nothing that could be missed
			continue
		}
		if matches(name, never) || matches(name, more) || matches(name, removed) && !matches(name, pass) {
			names = append(names, name)
			continue
		}
		kept = append(kept, entry)
	}
	slices.Sort(names)
	return splitEnv{kept, slices.Compact(names)}
}

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if prefix, any := strings.CutSuffix(p, "*"); any {
			if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				return true
			}
		} else if strings.EqualFold(name, p) {
			return true
		}
	}
	return false
}

// commandEnv is the environment of one command: what passed the filter, the
// item's own additions, which the operator was shown, and where it runs. Ours
// come before the item's.
func (r *Runner) commandEnv(t Task, dir string, ours []string) []string {
	env := append(slices.Clone(r.env().kept), ours...)
	for name, value := range t.Env {
		env = append(env, name+"="+value)
	}
	if _, own := t.Env["PWD"]; !own {
		env = append(env, "PWD="+dir)
	}
	return env // os/exec lets the last one of a name win
}

// CaptureLoginEnv returns the environment that the user's login shell sets up,
// which a program started from a desktop menu often lacks. The shell is run
// once and given up after timeout. The environment returned is always usable:
// with an error, which says why, it is that of this process.
func CaptureLoginEnv(ctx context.Context, timeout time.Duration) ([]string, error) {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = loginShell
	}
	if shell == "" {
		return os.Environ(), nil
	}
	env, err := loginEnv(ctx, shell, timeout)
	if err != nil {
		return os.Environ(), fmt.Errorf("capture the environment of the login shell %s: %w", shell, err)
	}
	return env, nil
}

// loginEnvLimit is far above what the kernel lets a process have.
const loginEnvLimit = 16 << 20

// profileGrace is how long a profile that took too long may tidy up.
const profileGrace = time.Second

func loginEnv(ctx context.Context, shell string, timeout time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	// Profiles print greetings: the answer has a descriptor of its own, 3.
	cmd := exec.Command(shell, "-l", "-c", "env -0 >&3")
	cmd.Env = filterEnv(os.Environ(), nil, []string{"*"}).kept
	if mark, ours := os.LookupEnv(spawnMark); ours {
		cmd.Env = append(cmd.Env, spawnMark+"="+mark) // profiles start agents, too
	}
	cmd.ExtraFiles = []*os.File{to}
	p, err := startProcess(cmd)
	to.Close()
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	gaveUp := context.AfterFunc(ctx, func() {
		p.ask() // a profile may have a lock to take away
		select {
		case <-ended:
		case <-time.After(profileGrace):
			p.kill()
		}
	})
	var out []byte
	var readErr error
	read := make(chan struct{})
	go func() {
		defer close(read)
		out, readErr = readAtMost(from, loginEnvLimit)
	}()
	end, waitErr := p.wait()
	close(ended)
	endReads(from, time.Now().Add(drainTime)) // profiles may start agents that keep it open
	<-read
	if !gaveUp() {
		return nil, context.Cause(ctx)
	}
	switch {
	case readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded):
		return nil, readErr
	case waitErr != nil:
		return nil, waitErr
	case end.signal != "":
		return nil, fmt.Errorf("it was ended by %s", end.signal)
	case end.exit != 0:
		return nil, fmt.Errorf("it ended with exit status %d", end.exit)
	}
	return parseEnv(out)
}

// parseEnv reads what env -0 printed, without what belongs to the shell alone.
func parseEnv(out []byte) ([]string, error) {
	var env []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		name, _, ok := strings.Cut(entry, "=")
		if ok && name != "" && name != "_" && name != spawnMark && name != "SHLVL" && name != "PWD" && name != "OLDPWD" {
			env = append(env, entry)
		}
	}
	if len(env) == 0 {
		return nil, fmt.Errorf("it printed no variables")
	}
	return env, nil
}
