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

// group is a started command with all that it started in its process group.
// What leaves the group is out of reach.
type group struct{ cmd *exec.Cmd }

// startProcess starts cmd as the leader of a new process group.
func startProcess(cmd *exec.Cmd) (process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd}, nil
}

func (p *group) wait() (status, error) { return waitFor(p.cmd) }

func (p *group) ask() {
	p.signal(unix.SIGTERM)
	p.signal(unix.SIGCONT) // one that was suspended could not hear us
}

func (p *group) kill() { p.signal(unix.SIGKILL) }

func (p *group) signal(s unix.Signal) { _ = unix.Kill(-p.cmd.Process.Pid, s) }

func (p *group) sweep(grace time.Duration) leftover {
	if !p.left() {
		return leftover{}
	}
	p.ask()
	if gone(p.left, grace) {
		return leftover{some: true}
	}
	p.kill()
	return leftover{some: true, alive: !gone(p.left, goneTime)}
}

// left reports whether the group still has processes that run. Its number is
// not given to another process as long as it has any.
func (p *group) left() bool {
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

// statusOf returns the exit status of an ended command.
func statusOf(state *os.ProcessState) status {
	if state == nil {
		return status{}
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return status{exit: state.ExitCode()}
	}
	return statusOfWait(ws)
}

func statusOfWait(ws syscall.WaitStatus) status {
	if !ws.Signaled() {
		return status{exit: ws.ExitStatus()}
	}
	s := ws.Signal()
	name := unix.SignalName(s)
	if name == "" {
		name = s.String()
	}
	return status{exit: 128 + int(s), signal: name}
}

// setCommandLine has a say where a command is not passed as an argument.
func setCommandLine(*exec.Cmd, []string, string) {}

// tooLong reports whether a command was not started because of its length.
func tooLong(err error) bool { return errors.Is(err, unix.E2BIG) }

// syncDir makes a rename in an open directory durable.
func syncDir(dir *os.File) error { return dir.Sync() }

// endReads makes reads of a pipe return by then at the latest.
func endReads(pipe *os.File, then time.Time) { _ = pipe.SetReadDeadline(then) }
