package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// ownListener hands out connections of this user's processes only, and takes
// the socket away when it is closed.
type ownListener struct {
	*net.UnixListener
	path  string
	close func() // releases what the address needed
}

// peerConn is a connection and the process at its other end; 0 where the
// system does not tell.
type peerConn struct {
	*net.UnixConn
	pid    int
	inside bool // it comes from inside a tool call, for all that can be told
}

// listen opens the control socket in dir, mode 0600. The directory must be
// this user's alone: between bind and chmod it is what protects the socket.
func listen(dir string) (net.Listener, error) {
	if err := Private(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name, done, err := address(dir)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		done()
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	own := &ownListener{UnixListener: l, path: path, close: done}
	if err := os.Chmod(path, 0o600); err != nil {
		own.Close()
		return nil, err
	}
	return own, nil
}

// Accept waits for the next connection of this user; others are closed unread.
func (l *ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, pid, err := peer(c)
		if err != nil || uid != os.Geteuid() {
			c.Close()
			continue
		}
		return &peerConn{UnixConn: c, pid: pid, inside: !trusted(c, pid)}, nil
	}
}

// Close stops listening and removes the socket.
func (l *ownListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		os.Remove(l.path)
		l.close()
	}
	return err
}

// sunPath is the longest path that fits a socket's address on every system.
const sunPath = 103

func tooLong(path string) error {
	return fmt.Errorf("the path %s is %d bytes long and a socket's may have %d; choose a shorter --data-dir", path, len(path), sunPath)
}
