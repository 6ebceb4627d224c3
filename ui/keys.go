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
	doApproveSession
	doAllowReads
	doEdit
	doAlways
	doTest
	doMark
	doDecline
	doRelease
	doStop
	doStopAll
	doPause
	doNext
	doPrevious
	doNextWaiting
	doWhole
	doPageDown
	doPageUp
	doTop
	doEnd
	doCopy
	doSearch
	doQueue
	doHistory
	doRules
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
		{doApproveSession, ctrlShift, enter, "Ctrl+Shift+Enter", "approve it, and what is identical to it until its session ends"},
		{doAllowReads, ctrl, one(fyne.KeyG), "Ctrl+G", "approve a read or a list, and those below its directory for 15 min"},
		{doEdit, ctrl, one(fyne.KeyE), "Ctrl+E", "edit the command or the content, and approve that"},
		{doAlways, ctrl, one(fyne.KeyL), "Ctrl+L", "always approve such items: write a rule"},
		{doTest, ctrl, one(fyne.KeyT), "Ctrl+T", "test the rule that is being written"},
		{doMark, 0, one(fyne.KeyX), "X", "mark the item, to approve several at once"},
		{doDecline, ctrl, one(fyne.KeyD), "Ctrl+D", "decline it, with words for the agent"},
		{doRelease, ctrl, one(fyne.KeyR), "Ctrl+R", "release it: hold it no longer, without an answer"},
		{doStop, ctrlShift, one(fyne.KeyBackspace), "Ctrl+Shift+Backspace", "stop the running item shown"},
		{doStopAll, ctrlShift, one(fyne.KeyDelete), "Ctrl+Shift+Delete", "stop everything and pause"},
		{doPause, ctrl, one(fyne.KeyP), "Ctrl+P", "pause or resume"},
		{doNext, 0, []fyne.KeyName{fyne.KeyJ, fyne.KeyDown}, "J or ↓", "next item"},
		{doPrevious, 0, []fyne.KeyName{fyne.KeyK, fyne.KeyUp}, "K or ↑", "previous item"},
		{doNextWaiting, 0, one(fyne.KeyN), "N", "next item that waits for you"},
		{doWhole, 0, one(fyne.KeyV), "V", "a write: what changes in the file, or all of its new content"},
		{doPageDown, 0, one(fyne.KeyPageDown), "Page Down", "scroll the command or content, then the output"},
		{doPageUp, 0, one(fyne.KeyPageUp), "Page Up", "scroll back"},
		{doTop, 0, one(fyne.KeyHome), "Home", "to the beginning"},
		{doEnd, 0, one(fyne.KeyEnd), "End", "to the end"},
		{doCopy, ctrlShift, one(fyne.KeyC), "Ctrl+Shift+C", "copy the command, path or content"},
		{doSearch, ctrl, one(fyne.KeyF), "Ctrl+F", "search the history"},
		{doQueue, ctrl, one(fyne.Key1), "Ctrl+1", "the queue"},
		{doHistory, ctrl, one(fyne.Key2), "Ctrl+2", "the history"},
		{doRules, ctrl, one(fyne.Key3), "Ctrl+3", "the rules; the buttons there name their keys"},
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
		if k.unheld(a) {
			k.sheets.press(a)
		}
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
	if k.unheld(a) {
		k.do(a)
	}
}

// unheld lets a decision through once for each press of a key: a key that is
// held repeats, and must not meet the next item with it.
func (k *keys) unheld(a action) bool {
	if !decides(a) {
		return true
	}
	fresh := k.fresh
	k.fresh = false
	return fresh
}

func decides(a action) bool {
	switch a {
	case doApprove, doApproveSession, doAllowReads, doEdit, doAlways, doMark, doDecline, doRelease, doStop:
		return true
	}
	return false
}
