package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

func (c systemClock) Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(c.start)
	}
	return time.Duration(ts.Nano())
}
