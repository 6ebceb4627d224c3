package execute

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"
)

// output carries what a command prints from two pipes to a recorder.
type output struct {
	from [2]*os.File // ends that we read
	to   [2]*os.File // ends that the command writes to
	rec  *recorder
	done sync.WaitGroup
	held [2]bool // someone still had to's end when reading was given up
}

// capture makes the pipes of a command that is about to start. They are ours
// and not os/exec's, whose Wait would wait for everyone who keeps them open.
func capture(cmd *exec.Cmd, rec *recorder) (*output, error) {
	c := &output{rec: rec}
	for s := range c.from {
		var err error
		if c.from[s], c.to[s], err = os.Pipe(); err != nil {
			for _, f := range []*os.File{c.from[0], c.to[0], c.from[1], c.to[1]} {
				f.Close() // nil says so, harmlessly
			}
			rec.close()
			return nil, err
		}
	}
	cmd.Stdout, cmd.Stderr = c.to[stdout], c.to[stderr]
	return c, nil
}

// started gives up our hold of the command's ends, and starts to read.
func (c *output) started() {
	for s := range c.from {
		c.to[s].Close()
		c.done.Go(func() { c.copy(stream(s)) })
	}
}

func (c *output) copy(s stream) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.from[s].Read(buf)
		if n > 0 {
			c.rec.write(s, buf[:n])
		}
		if err != nil {
			c.held[s] = errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// finish reads what the ended command still had in its pipes and closes them.
// Something that outlived it and keeps them open is not waited for, but told.
func (c *output) finish() (held bool) {
	for _, f := range c.from {
		endReads(f, time.Now().Add(drainTime))
	}
	read := make(chan struct{})
	go func() {
		c.done.Wait()
		close(read)
	}()
	stuck := time.NewTimer(drainTime + stuckTime)
	defer stuck.Stop()
	select {
	case <-read:
		held = c.held[stdout] || c.held[stderr]
	case <-stuck.C:
		held = true
	}
	for _, f := range c.from {
		f.Close()
	}
	return held
}
