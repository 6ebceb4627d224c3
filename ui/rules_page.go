package ui

import (
	"fmt"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/safetext"
)

// rulePage shows what is selected in the list of rules, whole, and has the buttons
// for it.
type rulePage struct {
	u        *UI
	onScreen func() bool
	root     *fyne.Container
	page     *fyne.Container
	name     *widget.Label
	icon     *widget.Icon
	mind     *strip
	view     *textView
	buttons  *fyne.Container

	act, choose, revoke *button

	id    string    // of the entry
	drawn string    // what of it is drawn
	hash  string    // of the change that is drawn
	since time.Time // when it came before the operator's eyes
}

func newRulePage(u *UI, k *keys, onScreen func() bool) *rulePage {
	p := &rulePage{u: u, onScreen: onScreen, view: newTextView(), mind: newStrip(theme.WarningIcon())}
	p.view.keys, p.view.side, p.view.onScreen, p.view.now = k, verdictGutter, onScreen, u.Now
	p.name, p.icon = widget.NewLabel(""), widget.NewIcon(nil)
	p.name.TextStyle.Bold, p.name.SizeName = true, theme.SizeNameSubHeadingText
	p.name.Truncation = fyne.TextTruncateEllipsis
	do := func(label string, a action, icon fyne.Resource) *button {
		return newButton(label, keysOf(a), icon, func() { u.window.do(a) })
	}
	p.act = do("", doApprove, theme.ConfirmIcon())
	p.act.tone = theme.ColorNamePrimary
	p.choose = do("", doMark, theme.CheckButtonIcon())
	p.revoke = do("Revoke", doDecline, theme.CancelIcon())
	p.buttons = container.NewPadded(container.New(&buttonRow{}, p.choose, p.act, p.revoke))
	head := container.NewBorder(nil, nil, container.NewPadded(p.icon), nil, p.name)
	p.page = container.NewBorder(container.NewVBox(head, p.mind.box), p.buttons, nil, nil, p.view.themed())
	p.root = container.New(narrowable{}, p.page)
	return p
}

// pageContent is what a page shows.
type pageContent struct {
	id, drawn string // the entry, and what of it is shown
	name      string
	icon      fyne.Resource
	tone      fyne.ThemeColorName
	mind      string // what has to be minded
	lines     []textLine
}

// show draws what is selected, if it is not drawn.
func (p *rulePage) show(c pageContent) {
	if p.id == c.id && p.drawn == c.drawn {
		return
	}
	if p.id != c.id {
		p.view.ScrollToOffset(0)
		p.shownNow()
	}
	p.id, p.drawn = c.id, c.drawn
	setText(p.name, c.name)
	setIcon(p.icon, c.icon, c.tone)
	if p.mind.text.Text != c.mind {
		p.mind.say(c.mind)
		layTwice(p.page)
	}
	p.view.setLines(c.lines, nil)
}

// layTwice lays out a container with words in it that have changed: only after the
// first time do they know their width, and with it their height.
func layTwice(c *fyne.Container) {
	c.Refresh()
	c.Refresh()
}

// shownNow restarts the reading time.
func (p *rulePage) shownNow() { p.since = p.u.Now() }

// ready reports whether a button can be pressed: what it is about has been before
// the operator's eyes for long enough.
func (p *rulePage) ready(b *button) bool {
	return !b.disabled && b.Visible() && p.u.watched.Load() && p.onScreen() && p.u.Now().Sub(p.since) >= readingTime
}

// showSelected shows what is selected beside the list.
func (r *rules) showSelected() {
	e, ok := r.entry()
	r.try.root.Hidden, r.page.root.Hidden = e.what != aTry, e.what == aTry
	if !ok || e.what == aTry {
		r.page.id, r.page.hash = "", ""
		r.try.root.Refresh()
		r.enable()
		return
	}
	r.page.show(r.content(e))
	r.enable()
}

// content is what the page of an entry says.
func (r *rules) content(e ruleEntry) pageContent {
	f, now := r.face(e), r.u.Now()
	c := pageContent{id: e.id, name: f.name, icon: f.icon, tone: f.tone}
	switch e.what {
	case aChange:
		p := r.known.state.Pending
		c.drawn = p.Hash + p.Diff
		if c.drawn != r.page.drawn {
			r.page.shownNow()
		}
		r.page.hash = p.Hash
		c.lines = append([]textLine{
			{Text: "Against what is in force. The file as it is now has the SHA-256 " + p.Hash + ".", Style: note},
			{Text: "A tool call could have made this change. Put it into force only if you know it.", Style: note},
		}, r.change...)
	case aBroken:
		c.drawn, c.lines = r.known.state.Broken, brokenLines(r.known.state)
	case aRule:
		info := r.known.inForce[e.n]
		count := r.known.count(info.Name)
		c.drawn = fmt.Sprint(r.known.state.Hash, count)
		c.lines = ruleLines(info, count, now)
		if info.RunsCode {
			c.mind = runsCodeWords
		}
	case aGrant:
		g := r.known.grants[e.n]
		c.name = "Granted to " + safetext.Clip(g.Session, 80)
		c.drawn, c.lines = fmt.Sprint(g), grantLines(g, now)
	case aShipped:
		s := r.known.shipped[e.n]
		c.drawn, c.mind, c.lines = fmt.Sprint(r.chosen[s.Name], s.Text), s.mind, s.lines()
	}
	return c
}

// enable lets through what can be done now.
func (r *rules) enable() {
	p, e := r.page, ruleEntry{}
	if !p.root.Hidden {
		e, _ = r.entry()
	}
	was := [3]bool{p.act.Hidden, p.choose.Hidden, p.revoke.Hidden}
	p.act.Hidden, p.choose.Hidden, p.revoke.Hidden = e.what != aChange && e.what != aShipped, e.what != aShipped, e.what != aGrant
	unread, before := false, p.act.label+p.choose.label
	switch e.what {
	case aChange:
		n := p.view.unseen()
		unread = n > 0
		label := "Put this into force"
		if unread {
			label += ": " + unseenWords(n)
		}
		p.act.set(label, !unread && !r.sending)
	case aShipped:
		r.enableChoice(r.known.shipped[e.n])
	case aGrant:
		p.revoke.set("Revoke", !r.sending)
	}
	r.unread.Store(unread)
	if was != [3]bool{p.act.Hidden, p.choose.Hidden, p.revoke.Hidden} || before != p.act.label+p.choose.label {
		p.buttons.Refresh()
		p.page.Refresh()
	}
}

func (r *rules) enableChoice(s shippedRule) {
	p, n := r.page, len(r.chosenNames())
	label, icon := "Choose", theme.CheckButtonIcon()
	if r.chosen[s.Name] {
		label, icon = "Chosen", theme.CheckButtonCheckedIcon()
	}
	p.choose.icon = icon
	p.choose.set(label, !r.sending)
	waits := r.known.state.Pending != nil || r.known.state.Broken != ""
	switch {
	case waits:
		p.act.set("Look at the change of the file first", false)
	case r.known.state.Mode == "":
		p.act.set("There is no connection yet", false)
	case n == 0:
		p.act.set("Switch on what is chosen", false)
	case n == 1:
		p.act.set("Switch on the rule that is chosen", !r.sending)
	default:
		p.act.set(fmt.Sprintf("Switch on the %d rules that are chosen", n), !r.sending)
	}
}
