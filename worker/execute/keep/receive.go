//go:build linux

package keep

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// given is a command that came, with what is the command's.
type given struct {
	command Command
	files   [Handed]int
	size    int // in bytes, about
}

// receive waits for a command.
func receive() (g given, err error) {
	var (
		letter  [1]byte
		control = make([]byte, unix.CmsgSpace(Handed*4))
		n, size int
	)
	for {
		n, size, _, _, err = unix.Recvmsg(CommandFD, letter[:], control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return g, err
	case n == 0:
		return g, io.EOF
	case letter[0] != Run:
		return g, errNotACommand
	}
	if err := g.take(control[:size]); err != nil {
		return g, err
	}
	in := counted{pipe(CommandFD), &g.size}
	g.command, err = readCommand(in)
	return g, err
}

var errNoFiles = errors.New("a command came without its descriptors")

// take takes the descriptors that were handed over.
func (g *given) take(control []byte) error {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return errNoFiles
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != Handed {
		return errNoFiles
	}
	copy(g.files[:], files)
	return nil
}

// letGo closes the command's descriptors here: its output ends with it.
func (g *given) letGo() {
	for _, fd := range g.files {
		unix.Close(fd)
	}
}

// counted counts what is read.
type counted struct {
	pipe
	read *int
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.pipe.Read(p)
	*c.read += n
	return n, err
}
