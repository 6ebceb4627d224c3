package worker

import "time"

// Clock tells the two times the engine needs. Timers are the standard library's
// and do not run while the machine sleeps; Boot is how a sleep is noticed.
type Clock interface {
	// Now is the wall clock: for the journal and for people.
	Now() time.Time
	// Boot is the time since some fixed moment, on a clock that also runs while
	// the machine sleeps and that nobody sets: leases are counted on it.
	Boot() time.Duration
}

// SystemClock is the machine's own clock.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (systemClock) Now() time.Time { return time.Now() }
