package ui

import (
	"slices"
	"strings"
	"time"

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
	presses
}

func newKeys(c fyne.Canvas, s *sheets, now func() time.Time, do func(action)) *keys {
	k := &keys{canvas: c, sheets: s, do: do, bound: bindings()}
	k.presses = presses{now: now, held: map[fyne.KeyEvent]fyne.KeyName{}}
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
		d.SetOnKeyUp(k.up)
	}
	return k
}

// typed handles keys without Control.
func (k *keys) typed(e *fyne.KeyEvent) { k.press(k.find(e.Name, 0), k.fresh(e.Name, 0)) }

// shortcut handles keys with Control.
func (k *keys) shortcut(s fyne.Shortcut) {
	if c, ok := s.(fyne.KeyboardShortcut); ok {
		k.press(k.find(c.Key(), c.Mod()), k.fresh(c.Key(), c.Mod()))
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
// work; while a field has the focus, nothing that decides. A decision needs a
// fresh press: a key that is held must not meet the next item with it.
func (k *keys) press(a action, fresh bool) {
	if a == doNothing || decides(a) && !fresh {
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
	k.do(a)
}

func decides(a action) bool {
	switch a {
	case doApprove, doApproveSession, doAllowReads, doEdit, doAlways, doMark, doDecline, doRelease, doStop:
		return true
	}
	return false
}

// longestDelay is longer than any desktop lets a key be held until it repeats.
const longestDelay = 2 * time.Second

// presses tells a key that has just been pressed from one that is held, which the
// driver does not always: what a held key does comes as a shortcut without a key
// going down; but where the key was pressed in another window, and for some keys
// always, a repeat looks like a press.
type presses struct {
	now  func() time.Time
	held map[fyne.KeyEvent]fyne.KeyName // what has gone down and not up, and what it was taken for

	last    *fyne.KeyEvent // what has just gone down; nil once it has done something
	settled bool           // as it went down, it could not be held from elsewhere

	entered time.Time // when the window got the focus; zero is long ago
	control bool      // Control has gone down since
}

// down notes that a key goes down. What it does follows at once.
func (p *presses) down(e *fyne.KeyEvent) {
	p.control = p.control || slices.Contains(controlKeys(), e.Name)
	_, repeats := p.held[physical(e)]
	if p.last = nil; repeats {
		return
	}
	p.held[physical(e)] = e.Name
	p.last = e
	p.settled = p.control || p.now().Sub(p.entered) >= longestDelay
}

// up notes that a key has been let go.
func (p *presses) up(e *fyne.KeyEvent) {
	delete(p.held, physical(e))
	p.last = nil
}

// fresh reports, once for each press, whether what a key does comes from its
// going down. With Control, that has to have gone down in this window too: a key
// held from elsewhere comes with a Control held from elsewhere.
func (p *presses) fresh(name fyne.KeyName, mod fyne.KeyModifier) bool {
	last := p.last
	p.last = nil
	// A letter that is not Latin goes down without a name and is taken for the
	// Latin one in its place.
	if last == nil || last.Name != name && last.Name != fyne.KeyUnknown {
		return false
	}
	for key, as := range p.held {
		if as == name && key != physical(last) {
			return false
		}
	}
	p.held[physical(last)] = name
	return mod == 0 || p.settled
}

// enter notes that the window has got the focus. What was held before counts no
// more: as the focus went, the driver said that every key went up, whether it did
// or not. Keys may be held that went down elsewhere; what repeats will speak up
// before longestDelay is over.
func (p *presses) enter() {
	clear(p.held)
	p.last, p.control, p.entered = nil, false, p.now()
}

// physical is what stays the same from a key's going down until it goes up,
// though the layout may change in between.
func physical(e *fyne.KeyEvent) fyne.KeyEvent {
	if e.Physical.ScanCode != 0 {
		return fyne.KeyEvent{Physical: e.Physical}
	}
	return fyne.KeyEvent{Name: e.Name}
}

// controlKeys are the keys that make the modifier of the bindings.
func controlKeys() []fyne.KeyName {
	if ctrl == fyne.KeyModifierSuper {
		return []fyne.KeyName{desktop.KeySuperLeft, desktop.KeySuperRight}
	}
	return []fyne.KeyName{desktop.KeyControlLeft, desktop.KeyControlRight}
}
