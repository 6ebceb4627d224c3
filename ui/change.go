package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// Change is a change that the operator has to see before Countersign starts: a
// window of its own, before any other.
type Change struct {
	App    fyne.App
	Title  string
	Words  string // what it is, above the change
	Doubt  string // what to think of it, below
	Diff   string // unified; untrusted
	Accept func() // called once at most, and then Quit is not
	Quit   func()

	// Now is the clock; time.Now by default.
	Now func() time.Time
}

// changeWindow shows it. A decision needs what every decision needs: a key that was
// pressed for it with Control, all of the change on screen, and long enough.
type changeWindow struct {
	Change
	win    fyne.Window
	keys   *keys
	view   *textView
	accept *button
	quit   *button
	early  *widget.Label // why nothing happened

	watched bool      // the window has the input focus
	since   time.Time // when it came before the operator's eyes
	over    bool
}

// Show opens the window. UI thread only, before the app runs.
func (c Change) Show() { newChangeWindow(c).show() }

func newChangeWindow(c Change) *changeWindow {
	if c.Now == nil {
		c.Now = time.Now
	}
	dress(c.App)
	w := &changeWindow{Change: c, win: c.App.NewWindow("Countersign – " + c.Title), view: newTextView(), early: caption("")}
	w.keys = newKeys(w.win.Canvas(), &sheets{win: w.win}, c.Now, w.do)
	w.view.keys, w.view.onScreen, w.view.now = w.keys, func() bool { return w.watched }, c.Now
	w.view.setLines(changeLines(c.Diff), nil)
	w.accept = newButton("Accept and start", keysOf(doApprove), theme.ConfirmIcon(), func() { w.do(doApprove) })
	w.accept.tone = theme.ColorNamePrimary
	w.quit = newButton("Quit", keysOf(doQuit), theme.LogoutIcon(), func() { w.do(doQuit) })
	title := widget.NewLabel(c.Title)
	title.TextStyle.Bold, title.SizeName = true, theme.SizeNameSubHeadingText
	w.win.SetPadded(false)
	w.win.SetContent(container.NewPadded(container.NewBorder(
		container.NewVBox(title, paragraph(c.Words)),
		container.NewVBox(paragraph(c.Doubt), w.early, container.NewPadded(container.New(&buttonRow{}, w.accept, w.quit))),
		nil, nil, w.view.themed())))
	w.win.Resize(fyne.NewSize(820, 560))
	w.win.SetCloseIntercept(func() { w.do(doQuit) })
	life := c.App.Lifecycle()
	life.SetOnEnteredForeground(func() { w.keys.enter(); w.seen() })
	life.SetOnExitedForeground(func() { w.watched = false })
	return w
}

func (w *changeWindow) show() {
	w.seen()
	w.win.Show()
}

// seen notes that the window has only now come before the operator's eyes.
func (w *changeWindow) seen() { w.watched, w.since = true, w.Now() }

func (w *changeWindow) do(a action) {
	switch {
	case w.over:
	case a == doApprove && !w.watched:
	case a == doApprove && w.Now().Sub(w.since) < readingTime:
		setText(w.early, "A moment: read it first")
	case a == doApprove && w.view.unseen() > 0:
		setText(w.early, "Not accepted: "+unseenWords(w.view.unseen())+" (Page Down scrolls)")
	case a == doApprove:
		w.over = true
		w.Accept()
	case a == doQuit:
		w.over = true
		w.Quit()
	default:
		w.view.scroll(a)
	}
}
