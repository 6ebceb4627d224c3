package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"countersign/app/config"
	"countersign/ui"
	"countersign/worker"

	"fyne.io/fyne/v2"
	fyneapp "fyne.io/fyne/v2/app"
)

// appID names the app to the desktop and to Fyne's preferences.
const appID = "org.countersign.Countersign"

// desktopCommand is the app with its window and tray.
type desktopCommand struct {
	running
}

// Run implements the command.
func (c *desktopCommand) Run(g *global, given config.Credentials) (err error) {
	if hasDisplay() {
		defer func() { tellNotRunning(err, ui.NewBeeep()) }()
	}
	a := assembly{grace: c.Grace, given: given}
	if a.approve, err = c.check(); err != nil {
		return err
	}
	if err := a.fromGlobal(g); err != nil {
		return err
	}
	if err := a.checkWorkDirs(); err != nil {
		return err
	}
	release, err := a.place.open()
	var other *inUse
	if errors.As(err, &other) {
		return raiseFirst(context.Background(), a.place.data)
	}
	if err != nil {
		return err
	}
	defer release()
	if !hasDisplay() {
		return noDisplay{connected: len(a.config.Connections) > 0}
	}
	a.warnOfStrayKeys()
	hello := ""
	if len(a.config.Connections) == 0 {
		hello = "No harness is configured. Add a [[connection]] to " + a.place.configFile() + " and start again, or try \"countersign demo\"."
	}
	err = openWindow(a, "", hello, nil)
	var changed guards
	if errors.As(err, &changed) {
		return changed.ask(a)
	}
	return err
}

// openWindow runs a station with a window until the operator quits or a signal
// comes. beside, if any, runs next to it and ends with its context. It must be
// called on the main goroutine: the window's event loop runs there.
func openWindow(a assembly, suffix, hello string, beside func(context.Context)) error {
	ctx, cancel := withSignals(context.Background())
	defer cancel(nil)
	s, err := openStation(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	window := fyneapp.NewWithID(appID)
	// When Fyne's loop has ended, which a signal makes it do by itself, it runs what
	// is sent to it on the sender's own goroutine, where nothing may be drawn.
	var over atomic.Bool
	defer context.AfterFunc(ctx, func() { over.Store(errors.Is(context.Cause(ctx), errQuit)) })()
	onUI := func(draw func()) {
		fyne.Do(func() {
			if !over.Load() {
				draw()
			}
		})
	}
	u, err := newUI(len(a.fromFile.Connections) > 0, ui.Options{
		App: window, Desk: s.desk, History: s.store, Rulebook: rulebook{s}, Notifier: ui.NewBeeep(), TitleSuffix: suffix, OnUI: onUI,
		Quit:         func() { cancel(errQuitNow); s.hurry() },
		QuitWhenDone: func() { cancel(worker.ErrQuitWhenDone) },
	})
	if err != nil {
		return err
	}
	s.attach(u)
	ended := make(chan error, 1)
	go func() {
		err := s.run(ctx)
		ended <- err
		fyne.Do(func() {
			over.Store(true)
			if context.Cause(ctx) != errQuit {
				window.Quit()
			} else {
				// The loop ends by itself, or has, unless the signal came before it
				// began. This draws nothing and is nothing to one that has ended.
				window.Driver().Quit()
			}
		})
	}()
	played := make(chan struct{})
	go func() {
		defer close(played)
		if beside != nil {
			beside(ctx)
		}
	}()
	u.Show()
	if hello != "" {
		u.Banner(hello)
	}
	window.Run()
	cancel(errQuit) // the loop also ends by itself, when the desktop session does
	err = <-ended
	<-played
	u.Close()
	return err
}

// newUI makes the user interface.
func newUI(connected bool, o ui.Options) (u *ui.UI, err error) {
	err = withDisplay(connected, func() { u = ui.New(o) })
	return u, err
}

// withDisplay makes what is drawn with the window library. A display that is named
// and cannot be used makes that panic; that is a noDisplay.
func withDisplay(connected bool, draw func()) (err error) {
	defer func() {
		cause := recover()
		if glfw, ok := cause.(error); ok && strings.HasPrefix(glfw.Error(), "NotInitialized:") {
			err = noDisplay{unusable: true, connected: connected}
		} else if cause != nil {
			panic(cause)
		}
	}()
	draw()
	return nil
}

// hasDisplay says whether a window can be opened.
func hasDisplay() bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// noDisplay says that no window can be opened, and what can be done without.
type noDisplay struct {
	unusable  bool // one is named, and does not let a window be opened
	connected bool // the configuration has a connection
}

func (e noDisplay) Error() string {
	reason := "neither DISPLAY nor WAYLAND_DISPLAY is set"
	if e.unusable {
		reason = fmt.Sprintf("DISPLAY is %q, and no window can be opened there", os.Getenv("DISPLAY"))
	}
	worker := "countersign worker --harness http://127.0.0.1:3000 --workdir DIR"
	if e.connected {
		worker = "countersign worker"
	}
	return "There is no display to open a window on: " + reason + `.
Without one, run the headless worker and approve from the command line:
  ` + worker + `
  countersign ps
  countersign show ID
  countersign approve ID CODE
To try it, "countersign harness --no-auth" is a harness, and
"countersign enqueue --session try exec -- date" gives it work.`
}
