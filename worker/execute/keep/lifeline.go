//go:build linux

package keep

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// order is what came down the lifeline.
type order struct {
	order   byte
	cut     bool // the other end is gone: the last order there is
	command Command
	files   [Handed]int // the command's, with Run
}

// listen passes on orders as they come, the last one for the end of the lifeline.
func listen(orders chan<- order) {
	for {
		o, err := receive()
		if err != nil {
			orders <- order{order: Ask, cut: true}
			return
		}
		orders <- o
	}
}

// receive reads one order, and a command with its descriptors.
func receive() (o order, err error) {
	var (
		letter  [1]byte
		control = make([]byte, unix.CmsgSpace(Handed*4))
		n, size int
	)
	for {
		n, size, _, _, err = unix.Recvmsg(LifelineFD, letter[:], control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return o, err
	}
	o.order = letter[0]
	switch o.order {
	case Ask, Kill:
		return o, nil
	case Run:
		if err := o.take(control[:size]); err != nil {
			return o, err
		}
		o.command, err = readCommand(pipe(LifelineFD))
		return o, err
	}
	return o, errNotACommand
}

var errNoFiles = errors.New("a command came without its descriptors")

// take takes the descriptors that were handed over.
func (o *order) take(control []byte) error {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return errNoFiles
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != Handed {
		return errNoFiles
	}
	copy(o.files[:], files)
	return nil
}

// letGo closes the command's descriptors here: its output ends with it.
func (o *order) letGo() {
	for _, fd := range o.files {
		unix.Close(fd)
	}
}
