package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/worker/api/wire"
	"countersign/worker/execute/keep"
)

// foreigner is the user that a command becomes, as sudo becomes root.
const foreigner = nobody - 1

// playLimited is a Countersign of an ordinary user that stops its command once
// that has written the number of its foreign process. It prints the outcome.
func playLimited() int {
	dir, command := os.Args[1], os.Args[2]
	r, err := runnerIn(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for {
			if text, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil && strings.HasSuffix(string(text), "\n") {
				cancel(errors.New("stopped by the operator"))
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	o := r.Run(ctx, sh(command), "")
	r.o.Keeper.Dismiss()
	if json.NewEncoder(os.Stdout).Encode(o) != nil {
		return 1
	}
	return 0
}

// What sudo starts belongs to another user, who cannot be told to end. Here root
// plays that, with a Countersign of one user and a command that may become another.
func TestAStopSaysWhatItCouldNotEndAndDoesNotHang(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start something as another user")
	}
	become := fmt.Sprintf("setpriv --reuid=%d --regid=%d --clear-groups sh -c 'trap \"\" TERM; echo $$ >pid; exec sleep 300'", foreigner, foreigner)
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("no setpriv")
	}
	testKeeper(t) // what is left comes to us
	for name, command := range map[string]string{
		"beside the command": become + " >&- 2>&- & wait",
		"in its place":       "exec " + become,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("/tmp", "limited-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(dir, 0o777)); err != nil {
				t.Fatal(err)
			}
			cmd := as("limited", dir, command)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
				AmbientCaps: []uintptr{unix.CAP_SETUID, unix.CAP_SETGID}}
			out, err := cmd.Output()
			text, _ := os.ReadFile(filepath.Join(dir, "pid"))
			pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
			if convErr != nil {
				t.Fatalf("%v, %v, printed %s", err, convErr, out)
			}
			p, there := keep.Look(pid)
			if !there || p.Dead {
				t.Fatalf("it was ended: what belongs to another cannot be, so the test shows nothing (%+v)", p)
			}
			defer unix.Wait4(pid, nil, 0, nil)
			defer p.Signal(unix.SIGKILL)
			var o Outcome
			if err != nil || json.Unmarshal(out, &o) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var res wire.ExecResult
			if err := json.Unmarshal(o.Result, &res); err != nil {
				t.Fatal(err)
			}
			for _, told := range []string{o.Reason, res.Stderr} {
				if !strings.Contains(told, "could not be ended") || strings.Contains(told, "helper") {
					t.Errorf("told: %q", told)
				}
			}
			if o.How != Stopped || res.ExitCode == 0 || !res.Aborted {
				t.Errorf("how %s, exit %d", o.How, res.ExitCode)
			}
		})
	}
}
