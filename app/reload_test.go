package main

import (
	"log/slog"
	"reflect"
	"testing"

	"countersign/app/config"
)

func TestWhatDoesNotApplyAtOnceIsSaidToTakeARestart(t *testing.T) {
	base := config.Default()
	base.Connections = []config.Connection{config.DefaultConnection()}
	atOnce := map[string]func(*config.Config){
		"log level":     func(c *config.Config) { c.LogLevel = slog.LevelDebug },
		"notifications": func(c *config.Config) { c.Notifications.Waiting = "off" },
		"max held":      func(c *config.Config) { c.Connections[0].MaxHeld = 1 },
		"max running":   func(c *config.Config) { c.Connections[0].MaxRunning = 1 },
	}
	restart := map[string]func(*config.Config){
		"confine":        func(c *config.Config) { c.Confinement.Confine = true },
		"writable":       func(c *config.Config) { c.Confinement.Writable = []string{"/x"} },
		"environment":    func(c *config.Config) { c.Environment.Pass = []string{"X"} },
		"limits":         func(c *config.Config) { c.Limits.ReadBytes = 1 },
		"work directory": func(c *config.Config) { c.Connections[0].WorkDir = "/x" },
		"lease":          func(c *config.Config) { c.Connections[0].Lease = 1 },
		"a connection":   func(c *config.Config) { c.Connections = nil },
	}
	for _, c := range []struct {
		changes map[string]func(*config.Config)
		same    bool
	}{{atOnce, true}, {restart, false}} {
		for name, change := range c.changes {
			next := base
			next.Connections = append([]config.Connection(nil), base.Connections...)
			change(&next)
			if same := reflect.DeepEqual(guarded(base), guarded(next)); same != c.same {
				t.Errorf("%s: taken to apply at once: %v", name, same)
			}
		}
	}
	if base.Connections[0].MaxHeld == 0 {
		t.Error("what was compared was changed")
	}
}
