package main

import (
	"context"
	"errors"

	"github.com/zalando/go-keyring"
)

// isNoSecret says that a keyring answered, and has no such secret.
func isNoSecret(err error) bool { return errors.Is(err, keyring.ErrNotFound) }

// services says what of a desktop session is there.
type services struct {
	bus           bool // the session bus, on which the others are
	keyring       bool
	notifications bool
	tray          bool // something shows tray icons
}

// desktop looks at what a desktop session offers. Countersign works without any
// of it, and says then how.
func (d *doctor) desktop(ctx context.Context) []finding {
	display := finding{Check: "display", Grade: isOK, Means: "There is one; whether a window opens on it shows at the start."}
	ring := finding{Check: "keyring", Grade: isOK, Means: "There is a system keyring."}
	if !hasDisplay() {
		display.Means = `There is none here: no window, tray or notifications. "countersign worker" does without.`
	}
	s, looked := sessionServices(ctx)
	if !looked {
		return []finding{display}
	}
	if !s.keyring {
		ring.Means = "There is no system keyring: keys come from the environment or from " + d.credentialsFile() + "."
	}
	found := []finding{display, ring}
	if !hasDisplay() {
		return found
	}
	notifications := finding{Check: "notifications", Grade: isOK, Means: "The desktop shows notifications."}
	if !s.notifications {
		notifications.Grade, notifications.Means = isWarning, "The desktop has no notification service: what needs you is told in the window and the log alone."
		notifications.Do = "Install one, such as your desktop's own."
	}
	tray := finding{Check: "tray", Grade: isOK, Means: "The desktop shows tray icons."}
	if !s.tray {
		tray.Grade, tray.Means = isWarning, `Nothing shows tray icons here: a second start of "countersign" brings the window back.`
		tray.Do = "Some desktops need an extension for them."
	}
	if !s.bus {
		tray.Means = "There is no session bus to ask. " + tray.Means
	}
	return append(found, notifications, tray)
}
