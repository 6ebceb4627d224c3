package ui

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"countersign/assets"
	"countersign/worker"
)

// hostPatience is how long to look for a place for tray icons: a panel may start
// after us.
const hostPatience = 30 * time.Second

// waitingShown is how many waiting items the menu names.
const waitingShown = 5

const withoutTray = "Closing the window asks whether to go on in the background; starting Countersign again brings it back."

// tray is the icon and menu beside the clock. Its words are our own, with short
// numbers: what an agent wrote is never in a menu.
type tray struct {
	u      *UI
	app    desktop.App // nil without a tray
	hosted atomic.Bool // there is a place for it, so the window may hide
	alarm  atomic.Bool // something went wrong that nobody has looked at yet
	menu   *fyne.Menu  // one and the same for good
	face   trayFace    // what is drawn now
	drawn  time.Time   // when; it follows at most once a second
	later  bool        // a change waits for that second to pass

	status, pause, pauseFor *fyne.MenuItem
	tail                    []*fyne.MenuItem
}

// trayFace is all that the tray shows.
type trayFace struct {
	icon    assets.TrayState
	status  string
	paused  bool
	waiting [waitingShown]waitingItem
}

type waitingItem struct {
	id   worker.HoldID
	name string
}

// newTray makes the tray, where there is a session bus to show it on: without
// one, an app with a tray cannot even quit.
func newTray(u *UI) *tray {
	t := &tray{u: u}
	app, ok := u.App.(desktop.App)
	if !ok {
		return t
	}
	if !u.SessionBus() {
		u.Banner("There is no session bus here, so Countersign has no tray icon and the window says what notifications would. " + withoutTray)
		return t
	}
	t.app = app
	t.build()
	app.SetSystemTrayMenu(t.menu)
	app.SetSystemTrayWindow(u.window.win)
	u.window.win.SetCloseIntercept(u.window.closing) // the line before set its own
	t.setIcon(assets.Idle)
	u.start(t.findHost)
	return t
}

// findHost looks for a place for tray icons. Where there is none the window says
// so once; it asks before it closes.
func (t *tray) findHost(ctx context.Context) {
	patient, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	if t.u.TrayHost(patient) {
		t.hosted.Store(true)
		return
	}
	if ctx.Err() == nil {
		t.u.Banner("This desktop shows no tray icons, so Countersign has none. " + withoutTray)
	}
}

func (t *tray) build() {
	w := t.u.window
	open := func(a action) func() {
		return func() {
			t.u.raise()
			if a != doNothing {
				w.do(a)
			}
		}
	}
	t.status = fyne.NewMenuItem("Starting", nil)
	t.status.Disabled = true
	t.pause = fyne.NewMenuItem("Pause", t.u.togglePause)
	t.pauseFor = fyne.NewMenuItem("Pause for", nil)
	t.pauseFor.ChildMenu = fyne.NewMenu("",
		fyne.NewMenuItem("15 minutes", func() { t.u.pauseUntil(t.u.Now().Add(15 * time.Minute)) }),
		fyne.NewMenuItem("1 hour", func() { t.u.pauseUntil(t.u.Now().Add(time.Hour)) }),
		fyne.NewMenuItem("Until tomorrow", func() { t.u.pauseUntil(tomorrow(t.u.Now())) }))
	quit := fyne.NewMenuItem("Quit", t.u.askQuit)
	quit.IsQuit = true
	t.tail = []*fyne.MenuItem{
		fyne.NewMenuItemSeparator(),
		fyne.NewMenuItem("Open Countersign", open(doNothing)),
		fyne.NewMenuItem("History", open(doHistory)),
		fyne.NewMenuItemSeparator(),
		quit,
	}
	t.menu = fyne.NewMenu("Countersign")
	t.fill()
}

// fill puts the items for the face of now into the one menu.
func (t *tray) fill() {
	items := []*fyne.MenuItem{t.status, t.pause, t.pauseFor,
		fyne.NewMenuItem("Stop everything and pause", t.u.stopEverything)}
	for i, w := range t.face.waiting {
		if w.id == 0 {
			break
		}
		if i == 0 {
			items = append(items, fyne.NewMenuItemSeparator())
		}
		items = append(items, fyne.NewMenuItem(w.name+" waits", func() { t.openItem(w.id) }))
	}
	t.menu.Items = append(items, t.tail...)
}

// openItem shows a waiting item in the window. It never decides.
func (t *tray) openItem(id worker.HoldID) {
	t.u.raise()
	t.u.window.do(doQueue)
	t.u.window.queue.selectItem(id)
}

// draw follows a snapshot, at most once a second. UI thread only.
func (t *tray) draw(s worker.Snapshot) {
	if t.app == nil {
		return
	}
	face := newTrayFace(s, t.alarm.Load())
	if face == t.face {
		return
	}
	now := t.u.Now()
	if wait := t.drawn.Add(time.Second).Sub(now); wait > 0 && !t.drawn.IsZero() {
		t.after(wait)
		return
	}
	t.drawn = now
	was := t.face
	t.face = face
	if face.icon != was.icon {
		t.setIcon(face.icon)
	}
	t.status.Label, t.pause.Checked = face.status, face.paused
	t.fill()
	t.menu.Refresh()
}

// after asks for a repaint when the tray may change again.
func (t *tray) after(wait time.Duration) {
	if t.later {
		return
	}
	t.later = true
	t.u.start(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		t.u.OnUI(func() { t.later = false })
		t.u.Changed()
	})
}

func (t *tray) setIcon(s assets.TrayState) {
	t.app.SetSystemTrayIcon(fyne.NewStaticResource(fmt.Sprintf("tray-%s.png", s), assets.Tray(s)))
}

func newTrayFace(s worker.Snapshot, alarm bool) trayFace {
	f := trayFace{icon: trayState(s, alarm), paused: s.Paused}
	f.status = fmt.Sprintf("%d waiting · %d running · %s", undecided(s), len(s.Running), whereTo(s.Connections))
	if s.ApproveAll {
		f.status += " · approving everything"
	}
	n := 0
	for _, v := range s.Waiting {
		if v.Decision == worker.Undecided && n < waitingShown {
			f.waiting[n] = waitingItem{v.ID, itemName(v.Hold)}
			n++
		}
	}
	return f
}

// trayState is the picture for a snapshot; what needs somebody comes first.
func trayState(s worker.Snapshot, alarm bool) assets.TrayState {
	trouble := connectionTrouble(s.Connections) != ""
	switch {
	case alarm:
		return assets.Attention
	case trouble:
		return assets.Disconnected
	case s.Paused:
		return assets.Paused
	case undecided(s) > 0:
		return assets.Waiting
	case len(s.Running) > 0:
		return assets.Running
	}
	return assets.Idle
}

// whereTo names the connection, or how many there are, and what is wrong.
func whereTo(all []worker.ConnectionView) string {
	switch len(all) {
	case 0:
		return "no connection"
	case 1:
		if all[0].State != worker.Connected {
			return hostOf(all[0].Origin) + " " + string(all[0].State)
		}
		return hostOf(all[0].Origin)
	}
	bad := 0
	for _, c := range all {
		if c.State != worker.Connected {
			bad++
		}
	}
	words := fmt.Sprintf("%d connections", len(all))
	if bad > 0 {
		words += fmt.Sprintf(", %d not connected", bad)
	}
	return words
}
