//go:build !linux && !freebsd && !openbsd && !netbsd

package ui

import "context"

// sessionBus is true where trays and notifications need no bus.
func sessionBus() bool { return true }

// trayHost is true where every desktop has a place for tray icons.
func trayHost(context.Context) bool { return true }
