package execute

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

var defaultShell = []string{"cmd", "/S", "/C"}

const (
	loginShell   = "" // the process's environment is the user's
	openNonblock = 0
)

// startProcess starts cmd in a job, apart from our console's Ctrl+C. It is
// suspended until it is in the job, so that nothing it starts is outside.
func startProcess(cmd *exec.Cmd) (process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW | windows.CREATE_SUSPENDED
	handle, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("make a job for the command: %w", err)
	}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(handle)
		return nil, err
	}
	pid := uint32(cmd.Process.Pid)
	if err = join(handle, pid); err == nil {
		err = resume(pid)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		windows.CloseHandle(handle)
		return nil, fmt.Errorf("put the command into its job: %w", err)
	}
	return &job{cmd: cmd, handle: handle}, nil
}

// statusOf returns the exit status of an ended command.
func statusOf(state *os.ProcessState) status {
	if state == nil {
		return status{}
	}
	return status{exit: state.ExitCode()}
}

// setCommandLine passes a command to cmd.exe as it is: /S strips exactly the
// outer quotes, where the usual quoting would add backslashes of its own.
func setCommandLine(cmd *exec.Cmd, shell []string, command string) {
	if name := strings.ToLower(shell[0]); name != "cmd" && !strings.HasSuffix(name, "cmd.exe") {
		return
	}
	line := syscall.EscapeArg(shell[0]) + " " + strings.Join(shell[1:], " ") + ` "` + command + `"`
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: line}
}

func tooLong(err error) bool { return errors.Is(err, windows.ERROR_FILENAME_EXCED_RANGE) }

// syncDir has nothing to do: directories are not flushed here.
func syncDir(*os.File) error { return nil }

// endReads makes reads of a pipe return. Pipes have no deadlines here; what was
// not read in time is given up by the caller, and the pipe closed.
func endReads(*os.File, time.Time) {}
