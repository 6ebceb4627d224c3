package main

import (
	"errors"

	"countersign/ui"
)

// tellNotRunning has the desktop say that the app could not start, or could not go
// on: started from a menu, its stderr is read by nobody. A notification has fixed
// words; the reason is on stderr, and doctor finds it again.
func tellNotRunning(err error, to ui.Notifier) {
	if err == nil || errors.As(err, new(noDisplay)) {
		return
	}
	_ = to.Notify("Countersign is not running", // without a notification service there is stderr alone
		`It could not start, or could not go on. Run "countersign doctor" in a terminal: it says why, and what to do.`)
}
