package ui

import (
	"errors"
	"time"

	"github.com/gen2brain/beeep"

	"countersign/assets"
)

// notifyLimit bounds a call of the desktop's notification service, which has no
// limit of its own.
const notifyLimit = 5 * time.Second

var (
	errNoNotifications = errors.New("there is no notification service")
	errNotifyTimeout   = errors.New("the notification service does not answer")
)

// Beeep notifies through the desktop's own service. Only one call is on its way
// at a time, so that a service that hangs costs one goroutine.
type Beeep struct {
	slot  chan struct{}
	limit time.Duration
	ready func() bool
	send  func(title, text string) error
}

// NewBeeep makes a Notifier for this desktop.
func NewBeeep() *Beeep {
	beeep.AppName = "Countersign"
	icon := assets.Tray(assets.Idle)
	return &Beeep{
		slot: make(chan struct{}, 1), limit: notifyLimit,
		// Without this look the library would start a session bus of its own,
		// with nobody on it, and call that success.
		ready: sessionBus,
		send:  func(title, text string) error { return beeep.Notify(title, text, icon) },
	}
}

// Notify shows a notification. It takes five seconds at most.
func (b *Beeep) Notify(title, text string) error {
	if !b.ready() {
		return errNoNotifications
	}
	select {
	case b.slot <- struct{}{}:
	default:
		return errNotifyTimeout // the last one still hangs
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { <-b.slot }()
		answer <- b.send(title, text)
	}()
	select {
	case err := <-answer:
		return err
	case <-time.After(b.limit):
		return errNotifyTimeout
	}
}
