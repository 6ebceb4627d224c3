package ui

import (
	"context"
	"fmt"
	"image/color"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// readingTime is how long an item must have been before the operator's eyes
// until a decision on it counts. It keeps a key meant for another window, or for
// the item before, from deciding.
const readingTime = 500 * time.Millisecond

// earlyShown is for how long it is said that a decision came too early.
const earlyShown = 2 * time.Second

// detail shows one item whole: what is asked, with all that belongs to it, what
// has happened, and what it printed. The queue's has buttons, the history's not.
type detail struct {
	u        *UI
	root     *fyne.Container
	onScreen func() bool // whether its place is the one in the window

	name, left      *widget.Label
	kind, mark      *widget.Icon
	word            *canvas.Text
	changed         *strip // that it changed since it was shown
	facts           *factGrid
	badges          *badges
	why, doc, steps *textView
	out             *output
	outcome         *widget.Label
	ended           *container.Scroll // around the outcome
	sheet           *sheet
	panes           *panes
	*answerRow
	early      *fyne.Container // says that a decision came too early
	earlyUntil time.Time
	decides    bool // something can be decided here
	marks      func() (all int, thisToo bool)
	page       *fyne.Container // all of it

	view      worker.View // what is shown
	section   section
	reading   reading
	ready     bool      // it is read
	since     time.Time // when it came before the operator's eyes
	stepCount int

	found      found  // on the disk
	endLook    func() // ends the newest look at the disk
	looks      int    // so many were begun
	wholeShown bool   // the whole content, though there is a difference
	seenDiff   []bool // by line, while the whole content is shown
	unseenDiff int    // rows of it then
}

// newDetail makes a detail; do is nil where nothing can be done.
func newDetail(u *UI, k *keys, onScreen func() bool, do func(action)) *detail {
	d := &detail{u: u, endLook: func() {}, onScreen: onScreen, why: newTextView(), doc: newTextView(), steps: newTextView()}
	d.doc.onScreen, d.doc.now = onScreen, u.Now
	d.why.side = verdictGutter
	d.why.keys, d.doc.keys, d.steps.keys = k, k, k
	d.changed, d.badges = newStrip(theme.WarningIcon()), newBadges()
	d.out = newOutput(u, k)
	d.name = widget.NewLabel("")
	d.name.TextStyle.Bold = true
	d.name.SizeName = theme.SizeNameSubHeadingText
	d.kind, d.mark = widget.NewIcon(nil), widget.NewIcon(nil)
	d.word = canvas.NewText("", color.Black)
	d.word.TextStyle.Bold = true
	d.left = widget.NewLabel("")
	d.facts = newFactGrid()
	d.outcome = widget.NewLabel("")
	d.outcome.Wrapping = fyne.TextWrapWord
	head := container.New(&headRow{}, container.NewHBox(d.kind, d.name, d.mark, container.NewCenter(d.word)), d.left)
	d.panes = &panes{why: d.why, doc: d.doc, steps: d.steps, out: d.out}
	d.out.cameOrWent = d.panes.layoutAgain
	d.panes.box = container.New(d.panes, d.why.themed(), d.doc.themed(), d.out.root, d.steps.themed())
	d.decides = do != nil
	d.answerRow = newAnswerRow(func(a action) { d.u.window.do(a) }, u.Rulebook != nil)
	d.ended = container.NewVScroll(container.New(layout.NewCustomPaddedLayout(0, 0, 2, barRoom),
		container.NewThemeOverride(d.outcome, dense{NewTheme(), 2, 6, false})))
	d.ended.Hide()
	d.early = container.NewStack(newFill(colourNote), widget.NewLabel("A moment: read it first"))
	d.early.Hide()
	d.sheet = &sheet{head: container.NewPadded(head), panes: d.panes, buttons: d.box,
		early: d.early,
		about: []fyne.CanvasObject{container.NewVScroll(d.changed.box), container.NewVScroll(d.facts.box),
			container.NewVScroll(d.badges), d.ended}}
	d.page = container.New(d.sheet, d.sheet.objects()...)
	d.page.Hide()
	d.root = container.New(narrowable{}, d.page)
	return d
}

// clear shows nothing.
func (d *detail) clear() {
	d.view = worker.View{}
	d.endLook()
	d.out.open("", false, false)
	d.page.Hide()
}

// show draws an item. Only what changed is drawn anew; what the operator decides
// on changes only together with its digest.
func (d *detail) show(v worker.View, s section) {
	other := v.ID != d.view.ID || v.Digest != d.view.Digest || (v.Edited == nil) != (d.view.Edited == nil)
	another := v.Decision != d.view.Decision || !sameWhy(v.Shown.Explanation, d.view.Shown.Explanation)
	d.view, d.section = v, s
	if other || !d.u.Now().Before(d.earlyUntil) || v.Decision != worker.Undecided {
		d.early.Hide()
	}
	if other {
		d.stepCount = -1
		d.read()
	} else if another && d.ready {
		d.drawWhy()
	}
	d.drawChanged(v)
	d.page.Show()
	d.drawHead(v, s)
	d.facts.set(v, d.reading.task, d.u.Now())
	d.drawOutcome(v)
	if len(v.Steps) != d.stepCount {
		d.stepCount = len(v.Steps)
		d.steps.setLines(stepLines(v.Steps, d.u.Now()), nil)
		d.steps.toEnd()
	}
	if read := reported(v.Hold); read != "" {
		d.out.still(fmt.Sprintf("hold %d", v.ID), "Reported, as far as the history keeps it", read)
	} else {
		d.out.open(outputOf(v.Hold), s == running, isLost(v.Hold))
	}
	d.panes.layoutAgain()
	d.enable()
	if d.sheet.outgrown() {
		layTwice(d.page)
	}
}

// read reads the item, if need be away from the UI thread, and shows it.
func (d *detail) read() {
	d.endLook()
	d.doc.ScrollToOffset(0)
	h := d.view.Hold
	if len(h.Item.Payload)+len(h.Edited) <= readAtOnce {
		d.take(newReading(h))
		return
	}
	d.looks++
	d.ready, d.reading, d.found, d.wholeShown = false, reading{}, found{}, false
	d.badges.set(nil)
	d.why.setLines(nil, nil)
	d.doc.setLines([]textLine{{Text: "Reading " + bytesWords(int64(len(h.Item.Payload))) + "…", Style: note}}, nil)
	d.u.start(func(context.Context) {
		r := newReading(h)
		d.u.OnUI(func() {
			if d.view.ID == h.ID && d.view.Digest == h.Digest && !d.ready {
				d.take(r)
				d.facts.set(d.view, r.task, d.u.Now())
				d.panes.layoutAgain()
				d.enable()
			}
		})
	})
}

// take shows what was read of the item.
func (d *detail) take(r reading) {
	d.reading, d.ready = r, true
	d.doc.setLines(r.lines(), nil)
	d.drawWhy()
	d.shownNow()
	d.lookUp()
}

// reported is the beginning of what was reported of a file that was read or a
// directory that was listed.
func reported(h worker.Hold) string {
	if h.Outcome == nil || h.Item.Kind == wire.KindExec {
		return ""
	}
	return h.Outcome.Head
}

// outputOf is the file of what a command printed; "" while nothing can have been
// printed, where nothing was, and for files read and written, which print nothing.
func outputOf(h worker.Hold) string {
	if h.Execution == worker.NotStarted || h.Item.Kind != wire.KindExec {
		return ""
	}
	if o := h.Outcome; o != nil && o.StdoutBytes+o.StderrBytes == 0 && !isLost(h) {
		return ""
	}
	return h.OutputPath
}

// isLost reports whether nobody saw the end of what ran, and so nobody counted what
// it printed either.
func isLost(h worker.Hold) bool { return h.Outcome != nil && h.Outcome.How == execute.Lost }

func (d *detail) drawHead(v worker.View, s section) {
	setText(d.name, itemName(v.Hold))
	setIcon(d.kind, kindIcon(v.Item.Kind), theme.ColorNameForeground)
	word := v.Hold.WithFailure(v.Word)
	icon, tone := statusIcon(word)
	setIcon(d.mark, icon, tone)
	if ink := colour(tone); d.word.Text != word || d.word.Color != ink || d.word.TextSize != theme.TextSize() {
		d.word.Text, d.word.Color, d.word.TextSize = word, ink, theme.TextSize()
		canvas.Refresh(d.word)
	}
	left := ""
	if v.Decision == worker.Undecided && s == waiting && v.DecisionLeft > 0 {
		left = "expires in " + countdown(v.DecisionLeft)
	}
	importance := widget.MediumImportance
	switch n := undecided(d.u.snap); {
	case left != "" && v.DecisionLeft < time.Minute:
		importance = widget.DangerImportance
	case left == "" && d.decides && n > 0 && v.Decision != worker.Undecided:
		left, importance = fmt.Sprintf("%d waiting – press %s", n, keysOf(doNextWaiting)), widget.HighImportance
	}
	if d.left.Importance != importance || d.left.Text != left {
		d.left.Importance = importance
		d.left.SetText(left)
	}
}

func (d *detail) drawOutcome(v worker.View) {
	words := endWords(v.Hold)
	if d.section == inLine {
		words = lineWords(v, d.u.snap)
	}
	if v.Words != "" {
		if words != "" {
			words += "\n"
		}
		words += wordsTitle(v.Hold) + safetext.Clip(v.Words, 1000)
	}
	if words == d.outcome.Text {
		return
	}
	d.outcome.SetText(words)
	if words == "" {
		d.ended.Hide()
	} else {
		d.ended.Show()
	}
	d.page.Refresh()
}

func wordsTitle(h worker.Hold) string {
	if h.Decision == worker.Declined && h.DecidedBy == byOperator {
		return "Your words: "
	}
	return "Why: "
}

// drawWhy shows the reasons and the marks of an item.
func (d *detail) drawWhy() {
	r := d.reading
	d.why.ScrollToOffset(0)
	d.why.setLines(whyLines(d.view.Hold, r.task, r.risks), nil)
	d.badges.set(badgeWords(r.risks, r.marks))
	d.page.Refresh()
}

// drawChanged says that an approved item came back, and over what.
func (d *detail) drawChanged(v worker.View) {
	words := ""
	if v.Changed {
		words = "Approved, but not run: what it names changed meanwhile. Look at it again."
		for _, e := range v.Steps {
			if e.Step == worker.StepChanged {
				words = "Approved, but not run: " + safetext.Clip(e.Reason, 1000) + ". Look at it again."
			}
		}
	}
	if d.changed.say(words) {
		d.page.Refresh()
	}
}

// open reports whether the item waits for a decision, and can be read.
func (d *detail) open() bool {
	return d.ready && d.section == waiting && d.view.Decision == worker.Undecided
}

// enable lets through what can be done with the item now.
func (d *detail) enable() {
	a := answerable{view: d.view, section: d.section, open: d.open()}
	if d.whole.Hidden = d.found.diff == nil; d.wholeShown {
		d.whole.set("What changes", true)
	} else {
		d.whole.set("Whole content", true)
	}
	if !d.decides {
		a.section = finished
	}
	if d.open() {
		a.reads = readsUnder(d.reading.task.Kind, d.reading.task.Path)
		if d.marks != nil {
			a.marked, a.isIn = d.marks()
		}
	}
	for range 3 { // longer words on the buttons leave less room to read
		if a.open {
			a.unseen = d.unseen()
		}
		if !d.answerRow.enable(a) {
			return
		}
		d.page.Refresh()
	}
}

// shownNow restarts the reading time.
func (d *detail) shownNow() { d.since = d.u.Now() }

// lookedAt reports whether the item has been before the operator's eyes for long
// enough: in an open window that has the input focus.
func (d *detail) lookedAt() bool {
	return d.u.watched.Load() && d.onScreen() && d.u.Now().Sub(d.since) >= readingTime
}

// tooEarly says that a decision came before what it is about can have been read.
func (d *detail) tooEarly() {
	d.earlyUntil = d.u.Now().Add(earlyShown)
	if !d.early.Visible() {
		d.early.Show()
		d.page.Refresh()
	}
}

// scroll moves through what is asked, then through the reasons, then through the
// output.
func (d *detail) scroll(a action) {
	switch a {
	case doPageDown:
		switch {
		case !d.doc.atEnd():
			d.doc.page(1)
		case !d.why.atEnd():
			d.why.page(1)
		default:
			d.out.page(1)
		}
	case doPageUp:
		switch {
		case d.out.page(-1):
		case d.why.GetScrollOffset() > 0:
			d.why.page(-1)
		default:
			d.doc.page(-1)
		}
	case doTop:
		d.doc.page(-1 << 20)
		d.why.page(-1 << 20)
		d.out.page(-1 << 20)
	case doEnd:
		d.doc.page(1 << 20)
		d.out.page(1 << 20)
	case doWhole:
		d.toggleWhole()
	case doCopy:
		d.copy()
	}
	d.enable()
}

// copy puts what is asked on the clipboard, byte for byte.
func (d *detail) copy() {
	if d.view.ID == 0 {
		return
	}
	text, task := string(d.view.Item.Payload), d.reading.task
	switch {
	case !d.ready || d.reading.unfit != nil:
	case task.Kind == wire.KindExec:
		text = task.Command
	case task.Kind == wire.KindWrite:
		text = task.Content
	default:
		text = task.Path
	}
	d.u.App.Clipboard().SetContent(text)
}
