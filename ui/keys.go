package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
)

// action is something a key does.
type action int

const (
	doNothing action = iota
	doApprove
	doDecline
	doRelease
	doStop
	doStopAll
	doPause
	doNext
	doPrevious
	doNextWaiting
	doPageDown
	doPageUp
	doTop
	doEnd
	doCopy
	doSearch
	doQueue
	doHistory
	doLeave
	doHelp
	doQuit
)

// binding ties keys to an action.
type binding struct {
	action action
	mod    fyne.KeyModifier
	names  []fyne.KeyName
	keys   string // as people read them
	words  string // what it does; "" is not listed
}

const (
	ctrl      = fyne.KeyModifierShortcutDefault
	ctrlShift = fyne.KeyModifierShortcutDefault | fyne.KeyModifierShift
)

// bindings is every key of the window. Decisions need Control: no bare key, and
// never Enter or Space alone, decides anything.
func bindings() []binding {
	one := func(n fyne.KeyName) []fyne.KeyName { return []fyne.KeyName{n} }
	enter := []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter}
	return []binding{
		{doApprove, ctrl, enter, "Ctrl+Enter", "approve the item shown"},
		{doDecline, ctrl, one(fyne.KeyD), "Ctrl+D", "decline it, with words for the agent"},
		{doRelease, ctrl, one(fyne.KeyR), "Ctrl+R", "release it: hold it no longer, without an answer"},
		{doStop, ctrlShift, one(fyne.KeyBackspace), "Ctrl+Shift+Backspace", "stop the running item shown"},
		{doStopAll, ctrlShift, one(fyne.KeyDelete), "Ctrl+Shift+Delete", "stop everything and pause"},
		{doPause, ctrl, one(fyne.KeyP), "Ctrl+P", "pause or resume"},
		{doNext, 0, []fyne.KeyName{fyne.KeyJ, fyne.KeyDown}, "J or ↓", "next item"},
		{doPrevious, 0, []fyne.KeyName{fyne.KeyK, fyne.KeyUp}, "K or ↑", "previous item"},
		{doNextWaiting, 0, one(fyne.KeyN), "N", "next item that waits for you"},
		{doPageDown, 0, one(fyne.KeyPageDown), "Page Down", "scroll the command or content, then the output"},
		{doPageUp, 0, one(fyne.KeyPageUp), "Page Up", "scroll back"},
		{doTop, 0, one(fyne.KeyHome), "Home", "to the beginning"},
		{doEnd, 0, one(fyne.KeyEnd), "End", "to the end"},
		{doCopy, ctrlShift, one(fyne.KeyC), "Ctrl+Shift+C", "copy the command, path or content"},
		{doSearch, ctrl, one(fyne.KeyF), "Ctrl+F", "search the history"},
		{doQueue, ctrl, one(fyne.Key1), "Ctrl+1", "the queue"},
		{doHistory, ctrl, one(fyne.Key2), "Ctrl+2", "the history"},
		{doLeave, 0, one(fyne.KeyEscape), "Escape", "leave a field or a dialog"},
		{doHelp, 0, one(fyne.KeyF1), "F1", "these keys"},
		{doQuit, ctrl, one(fyne.KeyQ), "Ctrl+Q", "quit"},
	}
}

// keysOf is how the keys of an action are written beside a button.
func keysOf(a action) string {
	for _, b := range bindings() {
		if b.action == a {
			return b.keys
		}
	}
	return ""
}

// keys is the one dispatcher: every key that does something passes through it,
// and it alone knows when decisions are let through.
type keys struct {
	canvas fyne.Canvas
	sheets *sheets
	do     func(action)
	bound  []binding
	fresh  bool // a key went down since the last decision: it is not being held
}

func newKeys(c fyne.Canvas, s *sheets, do func(action)) *keys {
	k := &keys{canvas: c, sheets: s, do: do, bound: bindings()}
	for _, b := range k.bound {
		if b.mod == 0 {
			continue
		}
		for _, name := range b.names {
			c.AddShortcut(&desktop.CustomShortcut{KeyName: name, Modifier: b.mod}, k.shortcut)
		}
	}
	c.SetOnTypedKey(k.typed)
	if d, ok := c.(desktop.Canvas); ok {
		d.SetOnKeyDown(k.down)
	}
	return k
}

// down notes a fresh press of any key. A held key repeats without one.
func (k *keys) down(*fyne.KeyEvent) { k.fresh = true }

// typed handles keys without Control.
func (k *keys) typed(e *fyne.KeyEvent) { k.press(k.find(e.Name, 0)) }

// shortcut handles keys with Control.
func (k *keys) shortcut(s fyne.Shortcut) {
	if c, ok := s.(fyne.KeyboardShortcut); ok {
		k.press(k.find(c.Key(), c.Mod()))
	}
}

func (k *keys) find(name fyne.KeyName, mod fyne.KeyModifier) action {
	for _, b := range k.bound {
		if b.mod != mod {
			continue
		}
		for _, n := range b.names {
			if strings.EqualFold(string(n), string(name)) {
				return b.action
			}
		}
	}
	return doNothing
}

// press lets an action through or not. Under a dialog only the dialog's own keys
// work; while a field has the focus, nothing that decides.
func (k *keys) press(a action) {
	if a == doNothing {
		return
	}
	if k.sheets.open() {
		k.sheets.press(a)
		return
	}
	if k.canvas.Overlays().Top() != nil {
		if a == doLeave { // a menu of choices
			k.canvas.Overlays().Remove(k.canvas.Overlays().Top())
		}
		return
	}
	if _, typing := k.canvas.Focused().(*field); typing && decides(a) {
		return
	}
	if decides(a) {
		if !k.fresh {
			return
		}
		k.fresh = false
	}
	k.do(a)
}

func decides(a action) bool {
	switch a {
	case doApprove, doDecline, doRelease, doStop:
		return true
	}
	return false
}
