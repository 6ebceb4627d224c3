//go:build !linux

package execute

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// KeeperMain has nothing to do: there are no helpers on this system.
func KeeperMain() {}

// Keeper starts commands under helpers. There are none on this system.
type Keeper struct{}

// NewKeeper returns nil: commands run in process groups or jobs.
func NewKeeper() (*Keeper, error) { return nil, nil }

// Dismiss has nothing to do.
func (*Keeper) Dismiss() {}

func (*Keeper) start(context.Context, *exec.Cmd, time.Duration, *confinement) (process, error) {
	return nil, errors.New("there are no helpers on this system")
}
