package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// choice is one way out of a dialog, with the key that takes it.
type choice struct {
	label string
	key   action // doApprove is Ctrl+Enter, doLeave is Escape
	tone  fyne.ThemeColorName
	do    func() // nil only closes
	stays bool   // the dialog stays open: do closes it
}

// sheets shows dialogs, one at a time, and takes their keys: Ctrl+Enter for the
// first choice, Escape for none.
type sheets struct {
	win     fyne.Window
	shown   dialog.Dialog
	choices []choice
	long    *container.Scroll // what is scrolled in it, by keys too; nil for nothing
	closed  func()            // called when one has closed; may be nil
}

func (s *sheets) open() bool { return s.shown != nil }

// show opens a dialog, unless one is open. focus may be nil.
func (s *sheets) show(title string, content fyne.CanvasObject, focus fyne.Focusable, choices ...choice) {
	if s.open() {
		return
	}
	s.choices = choices
	row := container.NewHBox(layout.NewSpacer())
	for _, c := range choices {
		b := newButton(c.label, keysOf(c.key), nil, func() { s.press(c.key) })
		b.tone = c.tone
		row.Add(b)
	}
	s.shown = dialog.NewCustomWithoutButtons(title, container.NewVBox(content, row), s.win)
	s.shown.Show()
	if focus != nil {
		s.win.Canvas().Focus(focus)
	}
}

// press takes the choice of a key, which closes most dialogs. Other keys do
// nothing.
func (s *sheets) press(a action) {
	if s.long != nil {
		scrollBy(s.long, a)
	}
	for _, c := range s.choices {
		if c.key == a {
			if !c.stays {
				s.close()
			}
			if c.do != nil {
				c.do()
			}
			return
		}
	}
}

func (s *sheets) close() {
	if s.shown != nil {
		d := s.shown
		s.shown, s.choices, s.long = nil, nil, nil
		d.Hide()
		if s.closed != nil {
			s.closed()
		}
	}
}

// paragraph is text of our own for a dialog.
func paragraph(text string) fyne.CanvasObject { return paragraphOf(widget.NewLabel(text)) }

func paragraphOf(l *widget.Label) fyne.CanvasObject {
	l.Wrapping = fyne.TextWrapWord
	return container.New(atLeast{fyne.NewSize(460, 0)}, l)
}

// help lists the keys.
func (s *sheets) help() {
	rows := container.New(layout.NewFormLayout())
	for _, b := range bindings() {
		key := widget.NewLabel(b.keys)
		key.TextStyle.Bold = true
		rows.Add(container.New(layout.NewCustomPaddedLayout(0, 0, 0, 14), key))
		rows.Add(widget.NewLabel(b.words))
	}
	if s.open() {
		return
	}
	long := container.NewVScroll(container.New(layout.NewCustomPaddedLayout(0, 0, 0, barRoom),
		container.NewThemeOverride(rows, dense{NewTheme(), 1, 2, false})))
	room := s.win.Canvas().Size().Height - 170 // for the title and the button
	long.SetMinSize(fyne.NewSize(long.Content.MinSize().Width, min(long.Content.MinSize().Height, room)))
	s.show("Keys", long, nil, choice{label: "Close", key: doLeave})
	s.long = long
}

// scrollBy scrolls with the keys that do so elsewhere.
func scrollBy(c *container.Scroll, a action) {
	by := float32(0)
	switch a {
	case doPageDown:
		by = c.Size().Height * 0.8
	case doPageUp:
		by = -c.Size().Height * 0.8
	case doNext:
		by = 30
	case doPrevious:
		by = -30
	case doTop:
		by = -c.Content.Size().Height
	case doEnd:
		by = c.Content.Size().Height
	default:
		return
	}
	most := max(c.Content.MinSize().Height-c.Size().Height, 0)
	c.ScrollToOffset(fyne.NewPos(0, min(max(c.Offset.Y+by, 0), most)))
}

// askWords asks for the operator's words before an item is declined. What it
// returns says in the dialog that there is nothing to decline any more.
func (s *sheets) askWords(k *keys, about string, decline func(words string)) (gone func(why string)) {
	words := newField(k, "Why, or what to do instead (may stay empty)", 4)
	means := widget.NewLabel("Nothing of " + about + " will run. The agent is told that you declined it, and these words:")
	content := container.NewVBox(paragraphOf(means), words)
	s.show("Decline "+about, content, words,
		choice{label: "Decline", key: doApprove, tone: theme.ColorNameError, do: func() { decline(words.Text) }},
		choice{label: "Back", key: doLeave})
	return means.SetText
}

// narrowable lets one object be made narrower than it wants to be, so that a
// longer word in it does not push its neighbours about.
type narrowable struct{}

func (narrowable) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(380, objects[0].MinSize().Height)
}

func (narrowable) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	atLeast{}.Layout(objects, size)
}

// atLeast lays one object out at a minimum size.
type atLeast struct{ size fyne.Size }

func (a atLeast) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return objects[0].MinSize().Max(a.size)
}

func (a atLeast) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	objects[0].Resize(size)
	objects[0].Move(fyne.Position{})
}
