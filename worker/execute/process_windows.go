package execute

import (
	"errors"
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

// process is a started command. It is the one place that knows how processes
// are stopped.
type process struct{ cmd *exec.Cmd }

// startProcess starts cmd apart from our console's Ctrl+C.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd}, nil
}

// wait returns when the command itself has ended, whatever it left running.
func (p *process) wait() (*os.ProcessState, error) {
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return p.cmd.ProcessState, err
}

// ask asks the command to end. Windows has no request that a program without a
// console window hears, so this ends it.
func (p *process) ask()  { p.kill() }
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// left reports whether processes are left that kill could reach.
func (p *process) left() bool { return false }

func exitOf(state *os.ProcessState) (exit int, signal string) { return state.ExitCode(), "" }

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
