package worker

import (
	"context"
	"errors"
)

// Journal is the engine's memory across crashes. When Open or Move returns nil
// what it was given is committed to disk. Package store implements it.
//
// All methods are safe for concurrent use; concurrent Moves may share a commit.
type Journal interface {
	// Open records a new hold, with its facts, as claimed, and the steps that
	// follow at once, and returns its number. Holds of one origin and item id share
	// the item's execution and outcome.
	Open(ctx context.Context, h Hold, reason string, then ...Move) (HoldID, error)

	// Move records steps, in order and all or none. It returns ErrForbidden, and
	// changes nothing, for a step that the write-ahead rules exclude: Starting
	// unless the hold is recorded as accepted and its item as not started.
	Move(ctx context.Context, id HoldID, steps ...Move) error

	// Unfinished returns the holds of a connection that are not closed, oldest
	// first.
	Unfinished(ctx context.Context, origin, environment string) ([]Hold, error)

	// Last returns the newest hold that came with the item's own work (the kind and
	// payload that its id first came with) and whether there is one.
	Last(ctx context.Context, origin, itemID string) (Hold, bool, error)

	// Entries returns what was recorded of a hold, oldest first.
	Entries(ctx context.Context, id HoldID) ([]Entry, error)

	// Usable says why nothing can be written, having tried.
	Usable(ctx context.Context) error
}

// ErrForbidden is returned for a step that the write-ahead rules exclude.
var ErrForbidden = errors.New("the journal refuses this step")
