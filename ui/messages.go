package ui

import (
	"fmt"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
)

// messagesKept is how many messages wait to be read; what they are about is in
// the history too.
const messagesKept = 20

// message is one thing that the banner says.
type message struct {
	text string
	kind worker.EventKind // "" where it is about no event
	calm bool             // it can wait: it stands behind what went wrong
}

// messages is what the banner has to say until it is dismissed: what went wrong
// before what can wait, each newest first.
type messages struct {
	strip               *strip
	more                *widget.Label
	dismiss, dismissAll *button
	changed             func(cameOrWent bool)

	all []message
}

// newMessages makes a banner; changed is told when the window is to be laid out
// anew.
func newMessages(changed func(bool)) *messages {
	m := &messages{changed: changed, more: caption("")}
	m.dismiss = newButton("Dismiss", "", nil, func() { m.all = m.all[1:]; m.show() })
	m.dismissAll = newButton("Dismiss all", "", nil, func() { m.all = nil; m.show() })
	m.strip = newStrip(theme.InfoIcon(), m.more, m.dismiss, m.dismissAll)
	return m
}

// box is what stands in the window.
func (m *messages) box() fyne.CanvasObject { return m.strip.box }

// add says something, once: what is said already only comes to the front, and
// there is one message at most that something waits.
func (m *messages) add(n message) {
	m.all = slices.DeleteFunc(m.all, func(o message) bool {
		return o.text == n.text || o.kind == n.kind && passes(n.kind)
	})
	at := 0
	if n.calm {
		at = slices.IndexFunc(m.all, func(o message) bool { return o.calm })
		if at < 0 {
			at = len(m.all)
		}
	}
	m.all = slices.Insert(m.all, at, n)
	m.all = m.all[:min(len(m.all), messagesKept)]
	m.show()
}

// passes tells the events whose message the next of their kind makes old.
func passes(kind worker.EventKind) bool {
	return kind == worker.EventWaiting || kind == worker.EventExpiring
}

// calm tells the events that nothing went wrong with.
func calm(kind worker.EventKind) bool {
	return kind == worker.EventWaiting || kind == worker.EventReachable
}

func (m *messages) show() {
	words, more := "", ""
	if len(m.all) > 0 {
		words = m.all[0].text
	}
	if n := len(m.all) - 1; n > 0 {
		more = fmt.Sprintf("+%d more", n)
	}
	setText(m.more, more)
	m.more.Hidden, m.dismissAll.Hidden = more == "", more == ""
	cameOrWent := m.strip.say(words)
	m.strip.box.Refresh()
	m.changed(cameOrWent)
}
