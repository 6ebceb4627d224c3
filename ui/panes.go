package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// panes lays out the reasons, what is asked, what was printed and the steps above
// each other: each gets what it needs, and what is left goes to the one that is
// read now. However much there is of the others, what is asked is there.
type panes struct {
	box                      *fyne.Container
	why, doc, steps          *textView
	out                      *output
	whyFit, docFit, stepsFit float32 // as of the last layout
	printed                  bool
}

const paneGap = 6

// layoutAgain lays out anew if what the panes need has changed.
func (p *panes) layoutAgain() {
	if p.why.fit() != p.whyFit || p.doc.fit() != p.docFit || p.steps.fit() != p.stepsFit || p.out.root.Visible() != p.printed {
		p.box.Refresh()
	}
}

func (p *panes) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(300, 80) }

func (p *panes) Layout(o []fyne.CanvasObject, size fyne.Size) {
	// The width decides how many rows there are, so it comes first.
	for i := range o {
		o[i].Resize(fyne.NewSize(size.Width, o[i].Size().Height))
	}
	p.whyFit, p.docFit, p.stepsFit, p.printed = p.why.fit(), p.doc.fit(), p.steps.fit(), p.out.root.Visible()
	rest := size.Height - paneGap
	steps := min(p.stepsFit+2, rest*0.24)
	rest -= steps
	why := float32(0)
	if p.whyFit > 0 {
		most := rest * 0.42
		if p.printed {
			most = rest * 0.25
		}
		if room := rest - paneGap - p.docFit - 2; !p.printed && room > most {
			most = room // the command leaves it
		}
		why = min(p.whyFit+2, most)
		rest -= why + paneGap
	}
	doc := rest
	if p.printed {
		rest -= paneGap
		doc = min(p.docFit+2, rest*0.4)
	}
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
		place(o[2], rest-doc)
	}
	place(o[3], steps)
}

// sheet lays out a detail: its title and what is known about the item at the
// top, the buttons at the bottom, and what is read in the room between. Where the
// window is low, what is about the item is scrolled, so that there is always room
// to read and the buttons are there.
type sheet struct {
	head           fyne.CanvasObject
	about          []fyne.CanvasObject // each a *container.Scroll
	panes, buttons fyne.CanvasObject
}

func (s sheet) objects() []fyne.CanvasObject {
	return append(append([]fyne.CanvasObject{s.head}, s.about...), s.panes, s.buttons)
}

func (s sheet) MinSize([]fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(380, s.head.MinSize().Height+s.panes.MinSize().Height+2*leastButtons)
}

// leastButtons is the height of one line of buttons with what is around it.
const leastButtons = 42

func (s sheet) Layout(_ []fyne.CanvasObject, size fyne.Size) {
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
	place(s.head, s.head.MinSize().Height)
	room := (bottom - y) * 0.5
	for _, o := range s.about {
		c := o.(*container.Scroll)
		if !c.Visible() || !c.Content.Visible() {
			place(c, 0)
			continue
		}
		h := min(c.Content.MinSize().Height, room*0.6)
		place(c, h)
		room -= h
	}
	place(s.panes, max(bottom-y, 0))
}
