package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// field is an Entry that gives the dispatcher the keys an Entry would swallow.
type field struct {
	widget.Entry
	keys *keys
}

var _ desktop.Keyable = (*field)(nil)

func newField(k *keys, placeholder string, lines int) *field {
	f := &field{keys: k}
	f.PlaceHolder = placeholder
	f.MultiLine = lines > 1
	if f.MultiLine {
		f.Wrapping = fyne.TextWrapWord
		f.SetMinRowsVisible(lines)
	}
	f.ExtendBaseWidget(f)
	return f
}

// TypedKey leaves the field on Escape, F1 and, in one line, on Down.
func (f *field) TypedKey(e *fyne.KeyEvent) {
	switch a := f.keys.find(e.Name, 0); {
	case a == doLeave, a == doHelp, e.Name == fyne.KeyDown && !f.MultiLine:
		f.keys.typed(e)
	default:
		f.Entry.TypedKey(e)
	}
}

// TypedShortcut gives the dispatcher what is bound, and the Entry the rest: copy,
// paste, undo.
func (f *field) TypedShortcut(s fyne.Shortcut) {
	if c, ok := s.(*desktop.CustomShortcut); ok && f.keys.find(c.KeyName, c.Modifier) != doNothing {
		f.keys.shortcut(c)
		return
	}
	f.Entry.TypedShortcut(s)
}

// KeyDown tells the dispatcher of a fresh press.
func (f *field) KeyDown(e *fyne.KeyEvent) {
	f.keys.down(e)
	f.Entry.KeyDown(e)
}

// KeyUp tells the dispatcher that a key was let go.
func (f *field) KeyUp(e *fyne.KeyEvent) {
	f.keys.up(e)
	f.Entry.KeyUp(e)
}

// toEnd puts the cursor behind the text.
func (f *field) toEnd() {
	f.Entry.TypedKey(&fyne.KeyEvent{Name: fyne.KeyPageDown}) // which in an Entry leads to its end
}
