//go:build linux || freebsd || openbsd || netbsd

package ui

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	watcherPath = "/StatusNotifierWatcher"
	hostThere   = watcherName + ".IsStatusNotifierHostRegistered"
)

// sessionBus reports whether a session bus answers. It does not start one.
func sessionBus() bool {
	conn, err := connectSession(context.Background())
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func connectSession(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup(dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// trayHost waits until something on the session bus shows tray icons.
func trayHost(ctx context.Context) bool {
	conn, err := connectSession(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	watcher := conn.Object(watcherName, watcherPath)
	for {
		if v, err := watcher.GetProperty(hostThere); err == nil {
			if there, ok := v.Value().(bool); ok && there {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}
