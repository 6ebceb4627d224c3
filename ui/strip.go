package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// strip is a line across the window that says something that matters now.
type strip struct {
	box  *fyne.Container
	text *widget.Label
}

func newStrip(icon fyne.Resource, actions ...fyne.CanvasObject) *strip {
	s := &strip{text: widget.NewLabel("")}
	s.text.Wrapping = fyne.TextWrapWord
	mark := widget.NewIcon(theme.NewColoredResource(icon, theme.ColorNameWarning))
	row := container.NewBorder(nil, nil, container.NewPadded(mark),
		container.NewCenter(container.NewHBox(actions...)), s.text)
	s.box = container.NewStack(newFill(colourNote), container.NewPadded(row))
	s.box.Hide()
	return s
}

// say shows the words, or hides the strip when there are none. It reports
// whether the strip came or went, so that the window is laid out anew.
func (s *strip) say(words string) bool {
	if s.text.Text == words {
		return false
	}
	s.text.SetText(words)
	if was := s.box.Visible(); was == (words != "") {
		return false
	}
	s.box.Hidden = words == ""
	return true
}
