//go:build !linux

package control

import (
	"net"
	"os"
	"path/filepath"
)

// address is the socket's path, which must fit.
func address(dir string) (name string, done func(), err error) {
	path := filepath.Join(dir, SocketName)
	if len(path) > sunPath {
		return "", nil, tooLong(path)
	}
	return path, func() {}, nil
}

// peer takes whoever could open the socket for this user: elsewhere than on
// Linux the directory's permissions alone keep others out.
func peer(*net.UnixConn) (uid, pid int, err error) { return os.Geteuid(), 0, nil }

func trusted(*net.UnixConn, int) bool { return true }

// Private takes every directory: elsewhere than on Linux its permissions are
// not looked at.
func Private(dir string) error {
	_, err := os.Stat(dir)
	return err
}
