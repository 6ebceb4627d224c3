package ui

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/safetext"
)

// window is the main window: a rail of places at the left, a bar with the
// connections on top, strips that say what matters, and one place.
type window struct {
	u      *UI
	win    fyne.Window
	keys   *keys
	sheets *sheets

	railQueue, railHistory *button
	railRules              *button
	pause, stopAll         *button
	connMark               *widget.Icon
	counts, conn           *widget.Label

	strips                 *fyne.Container
	harness, unasked, away *strip
	messages               *messages

	ruled           *strip // about the rules
	toRules, notNow *button

	queue   *queue
	history *history
	rules   *rules
}

func newWindow(u *UI) *window {
	w := &window{u: u, win: u.App.NewWindow("Countersign" + u.TitleSuffix)}
	w.sheets = &sheets{win: w.win}
	w.keys = newKeys(w.win.Canvas(), w.sheets, u.Now, w.do)
	w.queue = newQueue(u, w.keys)
	w.sheets.closed = w.queue.detail.shownNow // what lay under a dialog could not be read
	w.history = newHistory(u, w.keys)
	w.rules = newRules(u, w.keys)
	places := container.NewStack(w.queue.root, w.history.root, w.rules.root)
	w.win.SetPadded(false)
	w.win.SetContent(container.NewBorder(nil, nil, w.rail(), nil,
		container.NewBorder(container.NewVBox(w.bar(), w.banners()), nil, nil, nil, places)))
	w.win.Resize(fyne.NewSize(1180, 760))
	w.win.SetCloseIntercept(w.closing)
	w.goTo(w.railQueue)
	return w
}

func (w *window) rail() fyne.CanvasObject {
	place := func(label string, a action, icon fyne.Resource) *button {
		b := newButton(label, keysOf(a), icon, func() { w.do(a) })
		b.flat, b.left = true, true
		return b
	}
	w.railQueue = place("Queue", doQueue, theme.ListIcon())
	w.railHistory = place("History", doHistory, theme.HistoryIcon())
	w.railRules = place("Rules", doRules, theme.DocumentIcon())
	w.railRules.Hidden = w.u.Rulebook == nil
	help := place("Keys", doHelp, theme.HelpIcon())
	quit := place("Quit", doQuit, theme.LogoutIcon())
	column := container.NewBorder(
		container.NewVBox(w.railQueue, w.railHistory, w.railRules), container.NewVBox(help, quit), nil, nil)
	return container.NewStack(newFill(colourRail),
		container.New(atLeast{fyne.NewSize(150, 0)}, container.NewPadded(column)))
}

func (w *window) bar() fyne.CanvasObject {
	w.connMark = widget.NewIcon(nil)
	w.counts, w.conn = widget.NewLabel(""), caption("")
	w.counts.TextStyle.Bold = true
	w.counts.Truncation, w.conn.Truncation = fyne.TextTruncateEllipsis, fyne.TextTruncateEllipsis
	w.pause = newButton("Pause", keysOf(doPause), theme.MediaPauseIcon(), func() { w.do(doPause) })
	w.stopAll = newButton("Stop everything and pause", "", theme.MediaStopIcon(), func() { w.do(doStopAll) })
	row := container.NewBorder(nil, nil,
		container.NewPadded(w.connMark), container.NewHBox(w.pause, w.stopAll),
		container.NewThemeOverride(container.NewVBox(w.counts, w.conn), dense{NewTheme(), 0, 2, false}))
	return container.NewVBox(container.NewPadded(row), widget.NewSeparator())
}

func (w *window) banners() fyne.CanvasObject {
	here := newButton("I am here", "", nil, func() { w.present() })
	w.harness = newStrip(theme.WarningIcon())
	w.unasked = newStrip(theme.WarningIcon())
	w.away = newStrip(theme.HistoryIcon(), here)
	w.toRules = newButton("Rules", keysOf(doRules), nil, func() { w.do(doRules) })
	w.notNow = newButton("Not now", "", nil, func() { w.rules.notNow = true; w.rules.offer() })
	w.ruled = newStrip(theme.WarningIcon(), w.toRules, w.notNow)
	w.messages = newMessages(w.relayout)
	w.strips = container.New(layout.NewCustomPaddedVBoxLayout(1),
		w.harness.box, w.unasked.box, w.away.box, w.ruled.box, w.messages.box())
	return w.strips
}

// say shows words in the banner, in front of what it says already.
func (w *window) say(words string) { w.messages.add(message{text: words}) }

func (w *window) relayout(changed bool) {
	if changed {
		w.strips.Refresh()
		w.win.Content().Refresh()
	}
}

// draw shows the newest snapshot.
func (w *window) draw() {
	s := w.u.snap
	w.drawBar(s)
	w.relayout(w.harness.say(connectionTrouble(s.Connections)))
	all := ""
	if s.ApproveAll {
		all = "Everything is approved without asking (--approve all): tool calls run unseen."
	}
	w.relayout(w.unasked.say(all))
	away := ""
	if s.Away {
		away = "Nobody answered twice in a row, so nothing more is claimed and what waited was released."
	}
	w.relayout(w.away.say(away))
	w.queue.draw(s)
	if w.history.root.Visible() {
		w.history.draw()
	}
	if w.rules.root.Visible() {
		w.rules.draw()
	}
}

func (w *window) drawBar(s worker.Snapshot) {
	title := "Countersign" + w.u.TitleSuffix
	if s.ApproveAll {
		title += " – approving everything"
	}
	if s.Paused {
		title += " – paused"
	}
	if w.win.Title() != title {
		w.win.SetTitle(title)
	}
	words, icon, tone := connectionLine(s, w.u.Now())
	setText(w.conn, words)
	setIcon(w.connMark, icon, tone)
	setText(w.counts, countsWords(s))
	if s.Paused {
		w.pause.icon, w.pause.tone = theme.MediaPlayIcon(), theme.ColorNamePrimary
		w.pause.set("Resume", true)
	} else {
		w.pause.icon, w.pause.tone = theme.MediaPauseIcon(), ""
		w.pause.set("Pause", true)
	}
}

// countsWords says how much there is, and that nothing is added while paused.
func countsWords(s worker.Snapshot) string {
	words := fmt.Sprintf("%d waiting", undecided(s))
	if n := len(s.Waiting) - undecided(s); n > 0 {
		words += fmt.Sprintf(" · %d in line", n)
	}
	words += fmt.Sprintf(" · %d running", len(s.Running))
	switch {
	case s.Paused && !s.PausedUntil.IsZero():
		return "Paused until " + s.PausedUntil.Local().Format("15:04") + " · " + words
	case s.Paused:
		return "Paused · " + words
	}
	return words
}

func undecided(s worker.Snapshot) int {
	waits, _ := byDecision(s.Waiting)
	return len(waits)
}

// connectionLine says where work comes from and how that connection is: the one
// that is in trouble, or the first, and how many more there are.
func connectionLine(s worker.Snapshot, now time.Time) (words string, icon fyne.Resource, tone fyne.ThemeColorName) {
	if len(s.Connections) == 0 {
		return "No connection is set up", theme.ErrorIcon(), theme.ColorNameError
	}
	c := s.Connections[0]
	for _, other := range s.Connections {
		if c.State == worker.Connected && other.State != worker.Connected {
			c = other
		}
	}
	state, icon, tone := stateWords(c.State)
	parts := []string{safetext.Clip(c.Name, 40), state} // first, where little room leaves them
	if host := hostOf(c.Origin); host != c.Name {
		parts = append(parts, host)
	}
	if n := len(s.Connections) - 1; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	if c.Environment != "" {
		parts = append(parts, "environment "+safetext.Clip(c.Environment, 40))
	}
	if contact := contactWords(c, now); contact != "" {
		parts = append(parts, contact)
	}
	return strings.Join(parts, " · "), icon, tone
}

// stateWords says how a harness was last met.
func stateWords(state worker.ConnectionState) (words string, icon fyne.Resource, tone fyne.ThemeColorName) {
	icon, tone = theme.ErrorIcon(), theme.ColorNameError
	switch state {
	case worker.Connected:
		return "connected, accepts", theme.ConfirmIcon(), theme.ColorNameSuccess
	case worker.Connecting:
		return "connecting", theme.ViewRefreshIcon(), theme.ColorNamePlaceHolder
	case worker.CannotAccept:
		return "cannot accept a start", icon, tone
	case worker.ClaimsRefused:
		return "refuses to hand out work", icon, tone
	case worker.WorkDirUnusable:
		return "the work directory cannot be used", icon, tone
	}
	return string(state), icon, tone
}

// contactWords says when the harness last gave an answer that was of use; ""
// where it answered, but has never been of use.
func contactWords(c worker.ConnectionView, now time.Time) string {
	switch ago := now.Sub(c.LastContact); {
	case !c.LastContact.IsZero() && ago < 20*time.Second:
		return "last contact just now"
	case !c.LastContact.IsZero():
		return "last contact " + ageWords(ago) + " ago"
	case c.State == worker.Unreachable:
		return "no usable answer yet"
	case c.State == worker.Connecting:
		return "no contact yet"
	}
	return ""
}

func hostOf(origin string) string {
	_, host, found := strings.Cut(origin, "://")
	if !found {
		return origin
	}
	return host
}

// connectionTrouble says why work does not come, one line per connection.
func connectionTrouble(all []worker.ConnectionView) string {
	var lines []string
	for _, c := range all {
		if c.State == worker.Connected || c.State == worker.Connecting {
			continue
		}
		words := safetext.Clip(c.Detail, 500)
		if words == "" {
			words = sentence(string(c.State))
		}
		if len(all) > 1 {
			words = safetext.Clip(c.Name, 40) + ": " + words
		}
		lines = append(lines, words)
	}
	return strings.Join(lines, "\n")
}

// capital begins words with a capital letter.
func capital(words string) string {
	r, n := utf8.DecodeRuneInString(words)
	return strings.ToUpper(string(r)) + words[n:]
}

// sentence makes words of an error a sentence.
func sentence(words string) string {
	words = capital(words)
	if !strings.HasSuffix(words, ".") {
		words += "."
	}
	return words
}

// do is everything that keys and buttons do.
func (w *window) do(a action) {
	w.present()
	switch a {
	case doQueue:
		w.goTo(w.railQueue)
	case doHistory:
		w.goTo(w.railHistory)
	case doRules:
		if w.u.Rulebook != nil {
			w.goTo(w.railRules)
		}
	case doSearch:
		if !w.history.root.Visible() {
			w.goTo(w.railHistory)
		}
		w.win.Canvas().Focus(w.history.search)
	case doLeave:
		w.win.Canvas().Unfocus()
	case doHelp:
		w.sheets.help()
	case doQuit:
		w.u.askQuit()
	case doPause:
		w.u.togglePause()
	case doStopAll:
		w.u.stopEverything()
	default:
		w.here().do(a)
	}
}

// place is what can fill the window.
type place interface{ do(action) }

func (w *window) here() place {
	switch {
	case w.history.root.Visible():
		return w.history
	case w.rules.root.Visible():
		return w.rules
	}
	return w.queue
}

func (w *window) goTo(b *button) {
	w.railQueue.choose(b == w.railQueue)
	w.railHistory.choose(b == w.railHistory)
	w.railRules.choose(b == w.railRules)
	w.win.Canvas().Unfocus()
	place := func(o *fyne.Container, here bool) {
		if here {
			o.Show()
		} else {
			o.Hide()
		}
	}
	place(w.queue.root, b == w.railQueue)
	place(w.history.root, b == w.railHistory)
	place(w.rules.root, b == w.railRules)
	w.rules.offer() // it is not made where it is answered
	w.rules.leave()
	switch b {
	case w.railHistory:
		w.history.enter()
	case w.railRules:
		w.rules.enter()
	default:
		w.queue.detail.shownNow()
	}
}

// shown notes that what is in the window has only now come before the
// operator's eyes, and that alarms have been looked at.
func (w *window) shown() {
	w.queue.detail.shownNow()
	w.queue.detail.enable()
	w.rules.page.shownNow()
	w.u.tray.alarm.Store(false)
}

// present tells the engines, if they had given up on the operator, that somebody
// is there.
func (w *window) present() {
	w.u.tray.alarm.Store(false)
	if w.u.snap.Away {
		w.u.snap.Away = false
		w.u.intent(func() error { w.u.Desk.Present(); return nil }, nil)
	}
}
