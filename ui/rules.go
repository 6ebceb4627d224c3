package ui

import (
	"context"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// rules is the place where it is seen what needs no asking and why: the rules in
// force, what was granted, what a change of the rule file would bring, what the
// rules would say of an item, and the rules that can be switched on. Files are read
// away from the UI thread; what was read is drawn here.
type rules struct {
	u     *UI
	root  *fyne.Container
	about *widget.Label
	list  *rowList
	page  *rulePage
	try   *tester

	known    rulesKnown
	change   []textLine // the change that waits, safe to draw
	entries  []ruleEntry
	rows     map[*ruleRow]string // id of what each row of the list was last given
	selected string              // id of an entry
	pointed  string              // the one that the list was last told of
	offered  bool                // nobody chose it
	chosen   map[string]bool     // shipped rules that are to be switched on, by name
	settling bool                // the list is being told of a selection
	sending  bool                // a change or a choice is on its way into force
	notNow   bool                // the offer of the starter rules was declined

	reading, again bool      // State is being read, and was to be read anew meanwhile
	readAt         time.Time // when that began
	endFollow      context.CancelFunc
	unread         atomic.Bool // a part of the change in view has not been on screen
}

// rulesKnown is what was read last.
type rulesKnown struct {
	state   policy.RulesState
	inForce []policy.RuleInfo
	grants  []policy.Grant
	shipped []shippedRule
	read    bool
}

// followRules has the window told of what happens to the rules.
func (u *UI) followRules() {
	if u.Rulebook == nil {
		return
	}
	u.Rulebook.Follow(func() { u.OnUI(u.window.rules.renew) })
	u.window.rules.renew()
}

// How often what is on screen is read anew, and how often it is looked how much of
// a change has been on screen.
const (
	rulesPause = 3 * time.Second
	seenPause  = 250 * time.Millisecond
)

func newRules(u *UI, k *keys) *rules {
	r := &rules{u: u, rows: map[*ruleRow]string{}, chosen: map[string]bool{}}
	r.about = caption("The rules are being read.")
	r.about.Wrapping = fyne.TextWrapBreak
	r.list = &rowList{keys: k}
	r.list.Length = func() int { return len(r.entries) }
	r.list.CreateItem = func() fyne.CanvasObject { return newRuleRow(r.tapped) }
	r.list.UpdateItem = func(i int, o fyne.CanvasObject) {
		e := r.entries[i]
		r.rows[o.(*ruleRow)] = e.id
		o.(*ruleRow).set(r.face(e))
	}
	r.list.OnSelected = r.picked
	r.list.HideSeparators = true
	r.list.ExtendBaseWidget(r.list)
	r.page = newRulePage(u, k, r.onScreen)
	r.try = newTester(u, k)
	r.try.root.Hide()
	split := container.NewHSplit(container.NewThemeOverride(r.list, dense{NewTheme(), 3, 3, false}),
		container.NewStack(r.page.root, r.try.root))
	split.SetOffset(0.42)
	r.root = container.NewBorder(container.NewVBox(r.about, widget.NewSeparator()), nil, nil, nil, split)
	r.root.Hide()
	return r
}

func (r *rules) onScreen() bool { return r.u.visible.Load() && r.root.Visible() }

// enter is called when the place is gone to. It leads to what waits.
func (r *rules) enter() {
	if len(r.entries) > 1 && waits(r.entries[1].what) {
		r.selectEntry(r.entries[1].id)
	}
	r.page.shownNow()
	r.draw()
}

// draw is called with each snapshot while the place is on screen.
func (r *rules) draw() {
	r.follow()
	if r.u.Now().Sub(r.readAt) >= time.Second {
		r.renew()
	}
	r.try.connections(r.u.snap.Connections)
}

// follow keeps what is on screen new, for as long as it is.
func (r *rules) follow() {
	if r.endFollow != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.u.ctx)
	r.endFollow = cancel
	r.u.start(func(context.Context) {
		defer cancel()
		for more := true; more; {
			pause := rulesPause
			if r.unread.Load() {
				pause = seenPause
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			on := make(chan bool, 1)
			r.u.OnUI(func() { on <- ctx.Err() == nil && r.stillOn() })
			select {
			case <-ctx.Done():
				return
			case more = <-on:
			}
		}
	})
}

// leave is called when another place is gone to.
func (r *rules) leave() {
	if r.endFollow != nil {
		r.endFollow()
		r.endFollow = nil
	}
}

// stillOn looks at what has been on screen meanwhile; false ends following.
func (r *rules) stillOn() bool {
	if !r.onScreen() {
		r.leave()
		return false
	}
	r.enable()
	if r.u.Now().Sub(r.readAt) >= rulesPause {
		r.renew()
	}
	return true
}

// renew reads what is in force, away from the UI thread, and shows it.
func (r *rules) renew() {
	if r.reading {
		r.again = true
		return
	}
	r.reading, r.again, r.readAt = true, false, r.u.Now()
	was, change := r.known, r.change
	r.u.start(func(context.Context) {
		now := readRules(r.u, was)
		if p := now.state.Pending; p != nil && (was.state.Pending == nil || *p != *was.state.Pending) {
			change = changeLines(p.Diff)
		}
		r.u.OnUI(func() {
			r.reading = false
			r.change = change
			r.take(now)
			if r.again {
				r.renew()
			}
		})
	})
}

// readRules reads what there is to show. What has not changed is taken over.
func readRules(u *UI, was rulesKnown) rulesKnown {
	now := rulesKnown{state: u.Rulebook.State(), grants: u.Desk.Grants(), shipped: was.shipped, read: true}
	if now.shipped == nil {
		now.shipped = shippedRules()
	}
	if now.state.Hash == was.state.Hash && was.read {
		now.inForce = was.inForce
	} else {
		now.inForce, _ = policy.RulesIn([]byte(now.state.Text)) // it is in force, so it can be read
	}
	return now
}

// take shows what was read.
func (r *rules) take(now rulesKnown) {
	was := r.known
	r.known = now
	if wordsOfTrouble(now.state) != wordsOfTrouble(was.state) || now.state.Broken != was.state.Broken {
		r.notify()
	}
	if was.read && was.state.Hash != now.state.Hash {
		r.try.ask(0)
	}
	if words := aboutRules(now.state, r.u.snap, r.u.Now()); r.about.Text != words {
		r.about.SetText(words)
		layTwice(r.root)
	}
	r.forgetChosen()
	r.restructure()
	r.mark()
	r.offer()
	r.showSelected()
}

// mark shows in the rail that something waits here.
func (r *rules) mark() {
	b, label, icon := r.u.window.railRules, "Rules", theme.DocumentIcon()
	if r.known.state.Pending != nil || r.known.state.Broken != "" {
		label, icon = "Rules (1)", theme.WarningIcon()
	}
	if b.label != label {
		b.icon = icon
		b.set(label, true)
	}
}

// offer says across the window what waits here, or that there is something to
// switch on.
func (r *rules) offer() {
	w := r.u.window
	if w == nil {
		return // it is being made
	}
	words := wordsOfTrouble(r.known.state)
	fresh := words == "" && r.known.state.Fresh && r.known.state.Mode == policy.ModeRules && !r.notNow && !r.root.Visible()
	if fresh {
		words = "Everything is asked for. Starter rules can be switched on in Rules (" + keysOf(doRules) + ")."
	}
	if w.notNow.Hidden == fresh || w.toRules.Hidden != r.root.Visible() {
		w.notNow.Hidden, w.toRules.Hidden = !fresh, r.root.Visible()
		w.ruled.box.Refresh()
	}
	w.relayout(w.ruled.say(words))
}

// notify tells somebody who does not look at the window. The words hold nothing
// of the file's.
func (r *rules) notify() {
	words := wordsOfTrouble(r.known.state)
	if words == "" || r.u.Notifier == nil || r.u.watched.Load() {
		return
	}
	r.u.start(func(context.Context) {
		_ = r.u.Notifier.Notify("Rules were changed", words) // the window says it too
	})
}

// do acts on what is selected.
func (r *rules) do(a action) {
	switch a {
	case doNext:
		r.move(1)
	case doPrevious:
		r.move(-1)
	case doApprove:
		r.act()
	case doDecline:
		r.revoke()
	case doMark:
		if e, ok := r.entry(); ok && e.what == aTry {
			r.try.nextKind()
		} else {
			r.toggle()
		}
	case doWhole:
		if e, ok := r.entry(); ok && e.what == aTry {
			r.try.nextConnection()
		}
	case doEdit:
		r.selectEntry(tryEntry)
		r.u.window.win.Canvas().Focus(r.try.text)
	case doTest:
		r.try.ask(0)
	default:
		r.view().scroll(a)
	}
	r.enable()
}

// view is the text beside the list.
func (r *rules) view() *textView {
	if r.try.root.Visible() {
		return r.try.view
	}
	return r.page.view
}

// scroll moves through a text.
func (t *textView) scroll(a action) {
	switch a {
	case doPageDown:
		t.page(1)
	case doPageUp:
		t.page(-1)
	case doTop:
		t.page(-1 << 20)
	case doEnd:
		t.page(1 << 20)
	}
}

// act puts the change in view into force, or what was chosen.
func (r *rules) act() {
	e, ok := r.entry()
	if !ok || r.sending || !r.page.ready(r.page.act) {
		return
	}
	switch e.what {
	case aChange:
		hash := r.page.hash // of what is in view
		r.send(func() error { return r.u.Rulebook.Accept(hash) }, nil)
	case aShipped:
		r.switchOn()
	}
}

// switchOn puts the chosen rules into force.
func (r *rules) switchOn() {
	names, before := r.chosenNames(), r.known.state.Text
	r.send(func() error {
		text, err := policy.Choose(shippedText(), names, before)
		if err != nil {
			return err
		}
		return r.u.Rulebook.AddRules(text)
	}, func() {
		clear(r.chosen)
		r.selected, r.offered = "rule/"+names[0], false
	})
}

// send changes what is in force, and shows what is then.
func (r *rules) send(change func() error, done func()) {
	r.sending = true
	r.enable()
	r.u.ask(change, func(err error) {
		r.sending = false
		if err != nil {
			r.u.window.say(sentence(safetext.Clip(err.Error(), 1000)))
		} else if done != nil {
			done()
		}
		r.renew()
		r.enable()
	})
}

// revoke ends the grant in view.
func (r *rules) revoke() {
	e, ok := r.entry()
	if !ok || e.what != aGrant || !r.page.ready(r.page.revoke) {
		return
	}
	id := r.known.grants[e.n].ID
	r.send(func() error { return r.u.Desk.Revoke(id) }, nil)
}
