package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/assets"
	"countersign/worker"
)

// trayApp is the test app with a tray that records what it is told.
type trayApp struct {
	fyne.App
	menus  []*fyne.Menu
	icons  []string
	window fyne.Window
}

func (a *trayApp) SetSystemTrayMenu(m *fyne.Menu) { a.menus = append(a.menus, m) }
func (a *trayApp) SetSystemTrayIcon(r fyne.Resource) {
	a.icons = append(a.icons, strings.TrimSuffix(strings.TrimPrefix(r.Name(), "tray-"), ".png"))
}
func (a *trayApp) SetSystemTrayWindow(w fyne.Window) {
	a.window = w
	w.SetCloseIntercept(w.Hide) // as the real one does
}

func (a *trayApp) labels() []string {
	var all []string
	for _, i := range a.menus[0].Items {
		all = append(all, i.Label)
	}
	return all
}

func (a *trayApp) item(t *testing.T, label string) *fyne.MenuItem {
	t.Helper()
	for _, i := range a.menus[0].Items {
		if strings.HasPrefix(i.Label, label) {
			return i
		}
	}
	t.Fatalf("no item %q in %q", label, a.labels())
	return nil
}

// newTrayStage is a stage with a session bus and a tray; the clock must pass a
// second between changes for them to be drawn.
func newTrayStage(t *testing.T, host bool) (*stage, *trayApp) {
	var app *trayApp
	st := newStage(t, func(o *Options) {
		app = &trayApp{App: o.App}
		o.App = app
		o.SessionBus = func() bool { return true }
		o.TrayHost = func(context.Context) bool { return host }
	})
	return st, app
}

func TestTheTraysMenuFollowsTheState(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.put(func(*worker.Snapshot) {})
	st.pass(time.Second)
	st.put(func(s *worker.Snapshot) {
		for id := range 7 {
			s.Waiting = append(s.Waiting, execItem(id+10, "rm -rf secret-project"))
		}
		s.Running = []worker.View{asRunning(execItem(3, "x"))}
	})
	want := []string{
		"7 waiting · 1 running · 127.0.0.1:3000", "Pause", "Pause for", "Stop everything and pause", "",
		"exec #10 waits", "exec #11 waits", "exec #12 waits", "exec #13 waits", "exec #14 waits", "",
		"Open Countersign", "History", "", "Quit",
	}
	if got := app.labels(); !slices.Equal(got, want) {
		t.Errorf("menu\n%q, want\n%q", got, want)
	}
	if !app.item(t, "7 waiting").Disabled || !app.item(t, "Quit").IsQuit {
		t.Error("the status line can be clicked, or Quit is not the quit item")
	}
	if strings.Contains(strings.Join(app.labels(), ""), "secret") {
		t.Error("the menu shows what an agent wrote")
	}
	if len(app.menus) != 1 {
		t.Errorf("%d menus were made, want one", len(app.menus))
	}
}

func TestTheTrayChangesAtMostOnceASecond(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.Show() // so that repaints are frequent
	st.put(func(*worker.Snapshot) {})
	first := app.labels()[0]
	st.pass(900 * time.Millisecond)
	st.put(waitingItems(execItem(1, "x")))
	if got := app.labels()[0]; got != first {
		t.Errorf("the menu changed to %q within a second", got)
	}
	st.pass(100 * time.Millisecond)
	st.put(func(*worker.Snapshot) {})
	if got := app.labels()[0]; got == first {
		t.Error("the menu did not change after a second")
	}
}

func TestPauseInTheTrayIsCheckedAndToggles(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.put(func(*worker.Snapshot) {})
	app.item(t, "Pause").Action()
	st.did("pause")
	st.pass(time.Second)
	st.put(func(s *worker.Snapshot) { s.Paused = true })
	if !app.item(t, "Pause").Checked {
		t.Error("Pause is not checked while paused")
	}
	app.item(t, "Pause").Action()
	st.did("resume")
	app.item(t, "Pause for").ChildMenu.Items[0].Action()
	st.did("pause until " + st.now().Add(15*time.Minute).Format(time.RFC3339))
	app.item(t, "Stop everything").Action()
	st.did("stop everything")
}

func TestAWaitingItemInTheTrayOpensItAndDecidesNothing(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.put(func(*worker.Snapshot) {})
	st.pass(time.Second)
	st.put(waitingItems(execItem(1, "one"), execItem(2, "two")))
	app.item(t, "exec #2").Action()
	st.until("the item is shown", func() bool { return st.visible.Load() && st.window.queue.selected == 2 })
	st.didNothing()
}

func TestTheTraysIconTellsTheState(t *testing.T) {
	connected := []worker.ConnectionView{{Origin: "http://h:1", State: worker.Connected}}
	lost := []worker.ConnectionView{{Origin: "http://h:1", State: worker.Unreachable}}
	one := []worker.View{execItem(1, "x")}
	for _, c := range []struct {
		snap  worker.Snapshot
		alarm bool
		want  assets.TrayState
	}{
		{worker.Snapshot{Connections: connected}, false, assets.Idle},
		{worker.Snapshot{Connections: connected, Running: one}, false, assets.Running},
		{worker.Snapshot{Connections: connected, Running: one, Waiting: one}, false, assets.Waiting},
		{worker.Snapshot{Connections: connected, Waiting: one, Paused: true}, false, assets.Paused},
		{worker.Snapshot{Connections: lost, Waiting: one}, false, assets.Disconnected},
		{worker.Snapshot{Connections: lost, Waiting: one}, true, assets.Attention},
	} {
		if got := trayState(c.snap, c.alarm); got != c.want {
			t.Errorf("%d waiting, %d running, paused %v, alarm %v: %s, want %s",
				len(c.snap.Waiting), len(c.snap.Running), c.snap.Paused, c.alarm, got, c.want)
		}
	}
}

func TestAnAlarmStaysInTheTrayUntilItIsLookedAt(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.put(func(*worker.Snapshot) {})
	st.pass(time.Second)
	st.Happened(worker.Event{Kind: worker.EventLeaseLost, Hold: 1, Text: "#1"})
	st.until("the alarm", func() bool { return app.icons[len(app.icons)-1] == "attention" })
	st.Show()
	st.pass(time.Second)
	st.put(func(*worker.Snapshot) {})
	if got := app.icons[len(app.icons)-1]; got != "idle" {
		t.Errorf("the icon is %s after the window was opened, want idle", got)
	}
}

func TestClosingHidesTheWindowWhereTheTrayLeadsBack(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.until("the host is found", st.tray.hosted.Load)
	st.show(func(*worker.Snapshot) {})
	st.window.closing()
	if st.visible.Load() || st.window.sheets.open() {
		t.Error("closing did not just hide the window")
	}
	app.item(t, "Open Countersign").Action()
	st.until("the window is back", st.visible.Load)
}

func TestWithoutAPlaceForTrayIconsTheWindowSaysSoOnceAndClosingAsks(t *testing.T) {
	st, _ := newTrayStage(t, false)
	st.Show()
	st.until("the words", func() bool { return st.shows("shows no tray icons") })
	st.window.closing()
	if !st.visible.Load() || !st.shows("Keep working in the background") {
		t.Fatal("closing did not ask")
	}
	st.press(fyne.KeyReturn, ctrl)
	if st.visible.Load() {
		t.Error("the window did not hide")
	}
	st.Raise()
	st.until("a second start brings it back", st.visible.Load)
}

func TestWithoutASessionBusThereIsNoTray(t *testing.T) {
	st := newStage(t, func(o *Options) {
		o.App = &noTrayAllowed{trayApp{App: o.App}, t}
	})
	st.show(func(*worker.Snapshot) {})
	if n := len(st.window.messages.all); n != 1 || !st.shows("There is no session bus here, so Countersign has no tray icon") {
		t.Errorf("the window does not say once that there is no tray: %q", st.texts())
	}
	st.window.closing()
	if !st.shows("Close the window?") {
		t.Error("closing did not ask")
	}
}

type noTrayAllowed struct {
	trayApp
	t *testing.T
}

func (a *noTrayAllowed) SetSystemTrayMenu(*fyne.Menu) {
	a.t.Error("a tray was made without a session bus: quitting would panic")
}

func TestQuitAsksWhileSomethingRuns(t *testing.T) {
	two := func(s *worker.Snapshot) {
		s.Running = []worker.View{asRunning(execItem(1, "a")), asRunning(execItem(2, "b"))}
	}
	for _, c := range []struct {
		key         fyne.KeyName
		mod         fyne.KeyModifier
		quits, wait int
	}{
		{fyne.KeyReturn, ctrl, 0, 1}, {fyne.KeyBackspace, ctrlShift, 1, 0}, {fyne.KeyEscape, 0, 0, 0},
	} {
		st := newStage(t)
		st.show(two)
		st.press(fyne.KeyQ, ctrl)
		if !st.shows("2 commands are running") {
			t.Fatalf("it did not ask: %q", st.texts())
		}
		st.press(c.key, c.mod)
		if st.quits != c.quits || st.waits != c.wait || st.window.sheets.open() {
			t.Errorf("%s: quit %d times, waited %d times", c.key, st.quits, st.waits)
		}
	}
}

func TestQuitFromAHiddenWindowShowsTheQuestion(t *testing.T) {
	st, app := newTrayStage(t, true)
	st.put(func(s *worker.Snapshot) { s.Running = []worker.View{asRunning(execItem(1, "a"))} })
	app.item(t, "Quit").Action()
	if !st.visible.Load() || !st.shows("1 command is running") {
		t.Error("the question is not to be seen")
	}
}

func TestQuitWithNothingRunningQuits(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "a")))
	st.press(fyne.KeyQ, ctrl)
	if st.quits != 1 {
		t.Errorf("quit %d times, want once", st.quits)
	}
}

func TestSeveralConnectionsAreCounted(t *testing.T) {
	var all []worker.ConnectionView
	for i := range 3 {
		all = append(all, worker.ConnectionView{
			Name: fmt.Sprintf("c%d", i), Origin: fmt.Sprintf("https://h%d", i), State: worker.Connected,
		})
	}
	all[2].State = worker.CredentialsRejected
	if got, want := whereTo(all), "3 connections, 1 not connected"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	words, _, _ := connectionLine(worker.Snapshot{Connections: all}, time.Time{})
	if want := "c2 · credentials rejected · h2 · and 2 more"; words != want {
		t.Errorf("%q, want %q: the connection in trouble is the one to name", words, want)
	}
}
