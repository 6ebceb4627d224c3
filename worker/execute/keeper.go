package execute

import "errors"

// spawnMark is a variable that every program started by this process itself
// inherits, with a value that no command gets to see: see isOrphan.
const spawnMark = "COUNTERSIGN_SPAWNED"

var (
	// errStoppedFirst is a start that was called off in time.
	errStoppedFirst = errors.New("it was stopped before it started")

	// errMayHaveRun is a start that nobody knows the end of.
	errMayHaveRun = errors.New("the helper that was to start the command ended")

	// errHelperKilled is the end of a command whose own end nobody saw.
	errHelperKilled = errors.New("the helper that kept it was killed, perhaps by the command itself")
)

// unconfined is a command that was not started because it could not be confined.
type unconfined struct{ why string }

func (u *unconfined) Error() string {
	return "it is to be confined, and that cannot be done: " + u.why
}
