//go:build !linux

package worker

import "time"

// Boot is the larger of the monotonic and the wall difference: the monotonic
// clock may stand still during a sleep, and the wall clock may be set back.
func (c systemClock) Boot() time.Duration {
	now := time.Now()
	return max(now.Sub(c.start), now.Round(0).Sub(c.start.Round(0)))
}
