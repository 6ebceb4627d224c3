package ui

import (
	"testing"

	"fyne.io/fyne/v2"
)

func TestTheListOfKeysFitsALowWindowAndScrolls(t *testing.T) {
	st := newStage(t)
	st.window.win.Resize(fyne.NewSize(800, 500))
	st.show(waitingItems(execItem(1, "ls")))
	st.press(fyne.KeyF1, 0)
	s := st.window.sheets
	at := st.App.Driver().AbsolutePositionForObject(s.long)
	if end := at.Y + s.long.Size().Height; at.Y < 0 || end > 460 {
		t.Errorf("the keys are from %.0f to %.0f in a window of 500", at.Y, end)
	}
	for range 10 {
		st.press(fyne.KeyPageDown, 0)
	}
	if got, want := s.long.Offset.Y, s.long.Content.MinSize().Height-s.long.Size().Height; got < want-1 {
		t.Errorf("Page Down scrolls to %.0f of %.0f", got, want)
	}
	st.picture("help")
	st.press(fyne.KeyHome, 0)
	if s.long.Offset.Y != 0 {
		t.Error("Home does not scroll back")
	}
	st.press(fyne.KeyEscape, 0)
	if s.open() || s.long != nil {
		t.Error("the dialog is still there")
	}
}

func TestEveryKeyIsListed(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "ls")))
	st.press(fyne.KeyF1, 0)
	for _, b := range bindings() {
		if !st.shows(b.keys) || !st.shows(b.words) {
			t.Errorf("%s (%s) is not listed", b.keys, b.words)
		}
	}
}
