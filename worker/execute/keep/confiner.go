//go:build linux

package keep

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A confined command is started by way of the helper's program once more, which
// confines itself and then becomes the command. The helper does not confine a
// thread of its own for it: that thread would be in the command's reach.
const confiner = "confine"

// unconfined is why a command could not be confined.
type unconfined struct{ why string }

func (u *unconfined) Error() string { return u.why }

// startConfined starts a command confined, and returns when it runs.
func startConfined(c Command, files ...uintptr) (pid int, err error) {
	var command, answer [2]int
	if err := unix.Pipe2(command[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer func() { unix.Close(command[1]) }()
	if err := unix.Pipe2(answer[:], unix.O_CLOEXEC); err != nil {
		unix.Close(command[0])
		return 0, err
	}
	defer unix.Close(answer[0])
	pid, err = fork("/proc/self/exe", []string{Name, confiner}, nil, append(files, uintptr(command[0]), uintptr(answer[1]))...)
	unix.Close(command[0])
	unix.Close(answer[1])
	if err != nil {
		return 0, &unconfined{err.Error()}
	}
	for rest := c.Encode(); len(rest) > 0; {
		n, err := unix.Write(command[1], rest)
		if err != nil && err != unix.EINTR {
			break // it has ended, which shows below
		}
		rest = rest[max(n, 0):]
	}
	// The other end is closed when it becomes the command.
	said, _ := io.ReadAll(pipe(answer[0]))
	if string(said) == becoming {
		return pid, nil
	}
	_, _ = unix.Wait4(pid, nil, 0, nil)
	if len(said) == 0 {
		return 0, &unconfined{"what was to confine it ended too early"}
	}
	return 0, failure(strings.TrimPrefix(string(said), becoming))
}

// becoming is what a confiner answers right before it becomes the command, and
// before what it says where it cannot.
const becoming = "."

// failure is what a confiner answers: an errno of the command's, or why it could
// not be confined.
func failure(answer string) error {
	if errno, err := strconv.Atoi(answer); err == nil {
		return syscall.Errno(errno)
	}
	return &unconfined{answer}
}

// becomeConfined is the confiner, on one thread. It returns only if it fails.
func becomeConfined() int {
	answer := func(text string) int {
		_, _ = unix.Write(ReportFD, []byte(text))
		return 1
	}
	c, err := readCommand(pipe(CommandFD))
	if err != nil {
		return answer("what to confine could not be read: " + err.Error())
	}
	if err := confine(c.Writable); err != nil {
		return answer(err.Error())
	}
	_, _ = unix.Write(ReportFD, []byte(becoming))
	err = syscall.Exec(c.Path, c.Args, c.Env)
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return answer(strconv.Itoa(int(errno)))
	}
	return answer(strconv.Itoa(int(syscall.EINVAL)))
}
