package main

import (
	"context"
	"errors"

	"countersign/store"
	"countersign/ui"
	"countersign/worker/safetext"

	fyneapp "fyne.io/fyne/v2/app"
)

// ask shows a change that kept the desktop app from starting. What is accepted is
// put into force as it was shown; then the program starts anew, since a process can
// run the window library once only. The caller holds the lock of the data directory.
func (g guards) ask(a assembly) error {
	window, accepted := fyneapp.NewWithID(appID), false
	err := withDisplay(len(a.fromFile.Connections) > 0, func() {
		ui.Change{
			App: window, Title: g.title(), Words: "In " + g.since() + " " + nothingRan, Doubt: doubt, Diff: g.diff(),
			Accept: func() { accepted = true; window.Quit() },
			Quit:   window.Quit,
		}.Show()
	})
	if err != nil {
		return errors.Join(&exitError{exitUsage, g}, err)
	}
	a.log.Warn(g.what() + " A window asks to accept that. " + nothingRan)
	window.Run()
	if !accepted {
		return nil
	}
	if err := withHistory(context.Background(), g.place, func(s *store.Store) error { return g.keep(s) }); err != nil {
		return err
	}
	a.log.Info("the change was accepted; starting anew", "file", safetext.Line(g.place.configFile()))
	return startOver(a.given)
}
