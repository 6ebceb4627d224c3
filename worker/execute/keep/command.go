//go:build linux

package keep

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// version is of what is said over the pipes. A helper of another version, left
// by half an update, starts nothing.
const version = "countersign-keeper 4"

// Command is what a helper is asked to start. None of its strings has a NUL, as
// the kernel's own have none.
type Command struct {
	Path string
	Args []string // with argument 0
	Env  []string

	// Until is when it is started at the latest, as Now counts. The one who asked
	// for it may be suspended himself, or gone to sleep with the machine.
	Until uint64

	// Grace is between asking everything that runs to end and killing it.
	// LeftGrace is the same for what the command left running when it ended.
	Grace, LeftGrace time.Duration

	// TimerSlack is by how much its timers may be late, at least 1 ns: the
	// helper's own is another (Slack).
	TimerSlack time.Duration

	Confine  bool
	Writable []string // confined: the places that can be written to
}

// Encode returns c as the lifeline carries it to a helper, after Run. It
// is not passed in the helper's arguments or environment: those would be seen,
// and a variable like LD_PRELOAD would act on the helper itself, which is not
// confined.
func (c Command) Encode() []byte {
	var b strings.Builder
	put := func(s string) { b.WriteString(s); b.WriteByte(0) }
	list := func(list []string) {
		put(strconv.Itoa(len(list)))
		for _, s := range list {
			put(s)
		}
	}
	put(version)
	put(strconv.FormatUint(c.Until, 10))
	put(strconv.FormatInt(int64(c.Grace), 10))
	put(strconv.FormatInt(int64(c.LeftGrace), 10))
	put(strconv.FormatInt(int64(c.TimerSlack), 10))
	put(strconv.FormatBool(c.Confine))
	list(c.Writable)
	put(c.Path)
	list(c.Args)
	list(c.Env)
	return append(strconv.AppendInt(nil, int64(b.Len()), 10), "\x00"+b.String()...)
}

// maxEncoded is far above what the kernel lets a process have, in bytes.
const maxEncoded = 64 << 20

var errNotACommand = errors.New("that is no command for this helper")

// readCommand reads what Encode wrote, and nothing after it.
func readCommand(from io.Reader) (c Command, err error) {
	size, digit := 0, [1]byte{}
	for {
		if _, err := io.ReadFull(from, digit[:]); err != nil {
			return c, err
		}
		if digit[0] == 0 {
			break
		}
		if digit[0] < '0' || digit[0] > '9' || size > maxEncoded {
			return c, errNotACommand
		}
		size = size*10 + int(digit[0]-'0')
	}
	if size > maxEncoded {
		return c, errNotACommand
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(from, data); err != nil {
		return c, err
	}
	d := decoder{rest: string(data)}
	if d.text() != version {
		return c, errNotACommand
	}
	c.Until = uint64(d.number())
	c.Grace = time.Duration(d.number())
	c.LeftGrace = time.Duration(d.number())
	c.TimerSlack = time.Duration(d.number())
	c.Confine = d.text() == "true"
	c.Writable = d.list()
	c.Path = d.text()
	c.Args = d.list()
	c.Env = d.list()
	if d.bad || d.rest != "" || c.Path == "" {
		return c, errNotACommand
	}
	return c, nil
}

// decoder takes one field after the other; bad stays set after the first that
// makes no sense.
type decoder struct {
	rest string
	bad  bool
}

func (d *decoder) text() string {
	s, rest, ok := strings.Cut(d.rest, "\x00")
	d.bad = d.bad || !ok
	d.rest = rest
	return s
}

func (d *decoder) number() int64 {
	n, err := strconv.ParseInt(d.text(), 10, 64)
	d.bad = d.bad || err != nil || n < 0
	return n
}

func (d *decoder) list() []string {
	n := d.number()
	if d.bad || n > int64(len(d.rest)) {
		d.bad = true
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.text()
	}
	return list
}
