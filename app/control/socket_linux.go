package control

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// address is the socket's path, by way of an open directory where the path
// itself is too long for a socket's address. done releases it.
func address(dir string) (name string, done func(), err error) {
	path := filepath.Join(dir, SocketName)
	if len(path) <= sunPath {
		return path, func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, tooLong(path)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, SocketName), func() { unix.Close(fd) }, nil
}

// peer tells who opened a connection.
func peer(c *net.UnixConn) (uid, pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, 0, err
	}
	if credErr != nil {
		return 0, 0, credErr
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// trusted says whether the process that opened a connection is there still and
// does not descend from this one, as what a tool call starts does: it is looked at
// at once, since it can hand the connection to a child and go.
func trusted(c *net.UnixConn, pid int) bool {
	if descends(pid, os.Getpid()) {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	there := true // where the kernel has no such thing, /proc has to do
	err = raw.Control(func(fd uintptr) {
		pidfd, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if err == nil {
			defer unix.Close(pidfd)
			there = unix.PidfdSendSignal(pidfd, 0, nil, 0) == nil // else its number is another's now
		}
		there = there && err != unix.EINVAL && err != unix.ESRCH // it has ended
	})
	return err == nil && there
}

// descends says whether a process is a child of another, or a child's child,
// and so on. One that cannot be looked at is taken to: it has ended.
func descends(pid, of int) bool {
	for range 1000 { // a bound, should the table change while it is walked
		if pid <= 1 {
			return false
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		// The name, in parentheses, may hold anything; the parent comes second after it.
		rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(rest) < 2 {
			return true
		}
		if pid, err = strconv.Atoi(string(rest[1])); err != nil || pid == of {
			return true
		}
	}
	return true
}

// Private returns an error, with what to do, for a directory that is not this
// user's alone.
func Private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be entered by others (mode %04o); run: chmod 0700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}
