package ui

import (
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
)

// panes lays out the reasons, what is asked, what was printed and the steps above
// each other: each gets what it needs, and what is left goes to the one that is
// read now. However much there is of the others, what is asked is there.
type panes struct {
	box                      *fyne.Container
	why, doc, steps          *textView
	out                      *output
	whyFit, docFit, stepsFit float32 // as of the last layout
	outFit                   float32
	printed                  bool
}

const paneGap = 6

// layoutAgain lays out anew if what the panes need has changed.
func (p *panes) layoutAgain() {
	if p.why.fit() != p.whyFit || p.doc.fit() != p.docFit || p.steps.fit() != p.stepsFit ||
		p.out.root.Visible() != p.printed || p.out.fit() != p.outFit {
		p.box.Refresh()
	}
}

func (p *panes) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(300, 80) }

func (p *panes) Layout(o []fyne.CanvasObject, size fyne.Size) {
	newest := p.steps.atEnd()
	// The width decides how many rows there are, so it comes first.
	for i := range o {
		o[i].Resize(fyne.NewSize(size.Width, o[i].Size().Height))
	}
	p.whyFit, p.docFit, p.stepsFit, p.printed = p.why.fit(), p.doc.fit(), p.steps.fit(), p.out.root.Visible()
	p.outFit = p.out.fit()
	why, doc, out, steps := p.share(size.Height)
	y := float32(0)
	place := func(o fyne.CanvasObject, h float32) {
		o.Move(fyne.NewPos(0, y))
		o.Resize(fyne.NewSize(size.Width, h))
		if h > 0 {
			y += h + paneGap
		}
	}
	place(o[0], why)
	place(o[1], doc)
	if p.printed {
		place(o[2], out)
	}
	place(o[3], steps)
	if newest {
		p.steps.toEnd()
	}
}

// share divides a height. What does not fit whole gets whole rows, so that none
// is cut through.
func (p *panes) share(height float32) (why, doc, out, steps float32) {
	rest := height - paneGap
	if p.printed {
		return p.shareWithOutput(rest - paneGap)
	}
	steps = p.rows(p.stepsFit, rest*0.24)
	rest -= steps
	if p.whyFit > 0 {
		most := rest * 0.42
		if room := rest - paneGap - p.docFit - 2; room > most {
			most = room // the command leaves it
		}
		why = p.rows(p.whyFit, most)
		rest -= why + paneGap
	}
	doc = rest
	if p.docFit+2 > rest {
		doc = p.rows(p.docFit, rest)
	}
	return why, doc, 0, steps
}

// shareWithOutput divides a height where something was printed: that is what is
// read now, so it gets the most, and what it leaves goes to the others.
func (p *panes) shareWithOutput(height float32) (why, doc, out, steps float32) {
	if p.whyFit > 0 {
		height -= paneGap
		why = p.rows(p.whyFit, max(height*0.12, p.least(2)))
	}
	steps = p.rows(p.stepsFit, max(height*0.14, p.least(2)))
	doc = p.rows(p.docFit, max(height*0.2, p.least(2)))
	most := height - steps - doc - why
	head := p.out.headHeight()
	spare := most - head - p.outFit - 2
	for _, o := range []struct {
		has *float32
		fit float32
	}{{&doc, p.docFit}, {&why, p.whyFit}, {&steps, p.stepsFit}} {
		if spare > 0 && o.fit > 0 {
			more := p.rows(o.fit, *o.has+spare) - *o.has
			*o.has, spare, most = *o.has+more, spare-more, most-more
		}
	}
	return why, doc, p.rows(most, most-head) + head, steps
}

// least is the height of a number of rows.
func (p *panes) least(rows int) float32 { return float32(rows) * p.doc.rowHeight() }

// rows is what is given to a pane that needs fit and can have most: all, or whole
// rows.
func (p *panes) rows(fit, most float32) float32 {
	if fit+2 <= most {
		return fit + 2
	}
	return p.least(int(most / p.doc.rowHeight()))
}

// need is how much height there is use for.
func (p *panes) need() float32 {
	if p.out.root.Visible() {
		return math.MaxFloat32
	}
	return p.why.fit() + p.doc.fit() + p.steps.fit() + 2*paneGap + 6
}

// sheet lays out a detail: its title and what is known about the item at the
// top, the buttons at the bottom, and what is read in the room between. Where the
// window is low, what is about the item is scrolled, so that there is always room
// to read and the buttons are there.
type sheet struct {
	head    fyne.CanvasObject
	about   []fyne.CanvasObject // each a *container.Scroll
	panes   *panes
	buttons fyne.CanvasObject
	early   fyne.CanvasObject // lies above the buttons for a moment
	needed  float32           // by what is about the item, as of the last layout

	headNeeded float32
}

func (s *sheet) objects() []fyne.CanvasObject {
	return append(append([]fyne.CanvasObject{s.head}, s.about...), s.panes.box, s.buttons, s.early)
}

func (s *sheet) MinSize([]fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(380, s.head.MinSize().Height+s.panes.box.MinSize().Height+2*leastButtons)
}

// leastButtons is the height of one line of buttons with what is around it.
const leastButtons = 42

func (s *sheet) Layout(_ []fyne.CanvasObject, size fyne.Size) {
	// The width decides how high the words are, so it comes first.
	for _, o := range s.objects() {
		o.Resize(fyne.NewSize(size.Width, o.Size().Height))
	}
	y, bottom := float32(0), size.Height
	if s.buttons.Visible() {
		bottom -= s.buttons.MinSize().Height
		s.buttons.Move(fyne.NewPos(0, bottom))
		s.buttons.Resize(fyne.NewSize(size.Width, size.Height-bottom))
	}
	place := func(o fyne.CanvasObject, h float32) {
		o.Move(fyne.NewPos(0, y))
		o.Resize(fyne.NewSize(size.Width, h))
		y += h
	}
	s.headNeeded = s.head.MinSize().Height
	place(s.head, s.headNeeded)
	s.needed = s.need()
	room := max((bottom-y)*0.5, bottom-y-s.panes.need())
	part := float32(1)
	if s.needed > room {
		part = 0.6 // so that there is something of each
	}
	for _, o := range s.about {
		h := min(aboutHeight(o), room*part)
		place(o, h)
		room -= h
	}
	place(s.panes.box, max(bottom-y, 0))
	m := s.early.MinSize()
	s.early.Resize(m)
	s.early.Move(fyne.NewPos(theme.Padding()*2, bottom-m.Height))
}

// need is the height of what is about the item.
func (s *sheet) need() (all float32) {
	for _, o := range s.about {
		all += aboutHeight(o)
	}
	return all
}

// outgrown reports whether what is about the item needs another height than it
// was laid out for: a scroll does not tell what it is in of that.
func (s *sheet) outgrown() bool {
	return s.need() != s.needed || s.head.MinSize().Height != s.headNeeded
}

func aboutHeight(o fyne.CanvasObject) float32 {
	c := o.(*container.Scroll)
	if !c.Visible() || !c.Content.Visible() {
		return 0
	}
	return c.Content.MinSize().Height
}

// headRow lays out what an item is at the left and what is left of its time at the
// right, or below it where there is no room beside.
type headRow struct{ width float32 }

func (r *headRow) below(o []fyne.CanvasObject) bool {
	return r.width > 0 && o[0].MinSize().Width+o[1].MinSize().Width > r.width
}

func (r *headRow) MinSize(o []fyne.CanvasObject) fyne.Size {
	first, second := o[0].MinSize(), o[1].MinSize()
	if r.below(o) {
		return fyne.NewSize(first.Width, first.Height+second.Height-theme.Padding())
	}
	return fyne.NewSize(first.Width, max(first.Height, second.Height))
}

func (r *headRow) Layout(o []fyne.CanvasObject, size fyne.Size) {
	r.width = size.Width
	first, second := o[0].MinSize(), o[1].MinSize()
	o[0].Move(fyne.Position{})
	o[0].Resize(fyne.NewSize(size.Width, first.Height))
	o[1].Resize(second)
	if r.below(o) {
		o[1].Move(fyne.NewPos(0, first.Height-theme.Padding()))
	} else {
		o[1].Move(fyne.NewPos(size.Width-second.Width, floor((first.Height-second.Height)/2)))
	}
}
