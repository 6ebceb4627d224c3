//go:build linux || freebsd || openbsd || netbsd

package main

import (
	"context"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

// busPatience bounds all questions to the session bus.
const busPatience = 3 * time.Second

// sessionServices asks the session bus what is on it, or would be started by it.
// It starts neither a bus nor a service.
func sessionServices(ctx context.Context) (s services, looked bool) {
	ctx, cancel := context.WithTimeout(ctx, busPatience)
	defer cancel()
	conn, err := dbus.SessionBusPrivateNoAutoStartup(dbus.WithContext(ctx))
	if err != nil {
		return s, true
	}
	defer conn.Close()
	if conn.Auth(nil) != nil || conn.Hello() != nil {
		return s, true
	}
	s.bus = true
	var names, startable []string
	bus := conn.BusObject()
	_ = bus.CallWithContext(ctx, "org.freedesktop.DBus.ListNames", 0).Store(&names) // none then
	_ = bus.CallWithContext(ctx, "org.freedesktop.DBus.ListActivatableNames", 0).Store(&startable)
	has := func(name string) bool { return slices.Contains(names, name) || slices.Contains(startable, name) }
	s.keyring = has("org.freedesktop.secrets")
	s.notifications = has("org.freedesktop.Notifications")
	const watcher = "org.kde.StatusNotifierWatcher"
	if slices.Contains(names, watcher) {
		var host dbus.Variant
		err := conn.Object(watcher, "/StatusNotifierWatcher").CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0,
			watcher, "IsStatusNotifierHostRegistered").Store(&host)
		there, ok := host.Value().(bool)
		s.tray = err == nil && ok && there
	}
	return s, true
}
