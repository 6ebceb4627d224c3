//go:build unix

package execute

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var defaultShell = []string{"/bin/sh", "-c"}

const (
	loginShell = "/bin/sh"

	// openNonblock keeps an open from waiting for the other end of a FIFO.
	openNonblock = unix.O_NONBLOCK
)

// process is a started command with all that it started in its process group.
// It is the one place that knows how a tree of processes is stopped.
type process struct{ cmd *exec.Cmd }

// startProcess starts cmd as the leader of a new process group.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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

// ask asks every process of the group to end, and kill makes it. To call them
// on a group that is gone does nothing.
func (p *process) ask() {
	p.signal(unix.SIGTERM)
	p.signal(unix.SIGCONT) // one that was suspended could not hear us
}

func (p *process) kill() { p.signal(unix.SIGKILL) }

func (p *process) signal(s unix.Signal) { _ = unix.Kill(-p.cmd.Process.Pid, s) }

// left reports whether the group still has processes that run. Its number is
// not given to another process as long as it has any.
func (p *process) left() bool {
	return !errors.Is(unix.Kill(-p.cmd.Process.Pid, 0), unix.ESRCH) && !allDead(p.cmd.Process.Pid)
}

// allDead reports whether a process group is known to consist of dead processes
// alone. In a container whose first process reaps nobody they stay for good.
func allDead(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state ppid pgrp …"; the name may have anything in it.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return true
}

// exitOf returns the exit status of an ended command as a shell reports it, and
// the name of the signal that ended it, if one did.
func exitOf(state *os.ProcessState) (exit int, signal string) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return state.ExitCode(), ""
	}
	s := status.Signal()
	if signal = unix.SignalName(s); signal == "" {
		signal = s.String()
	}
	return 128 + int(s), signal
}

// setCommandLine has a say where a command is not passed as an argument.
func setCommandLine(*exec.Cmd, []string, string) {}

// tooLong reports whether a command was not started because of its length.
func tooLong(err error) bool { return errors.Is(err, unix.E2BIG) }

// syncDir makes a rename in an open directory durable.
func syncDir(dir *os.File) error { return dir.Sync() }

// endReads makes reads of a pipe return by then at the latest.
func endReads(pipe *os.File, then time.Time) { _ = pipe.SetReadDeadline(then) }
