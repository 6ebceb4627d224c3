package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// panes lays out what is asked, what was printed and the steps above each other:
// each gets what it needs, and what is left goes to the one that is read now.
type panes struct {
	box              *fyne.Container
	doc, steps       *textView
	out              *output
	docFit, stepsFit float32 // as of the last layout
	printed          bool
}

const paneGap = 6

// layoutAgain lays out anew if what the panes need has changed.
func (p *panes) layoutAgain() {
	if p.doc.fit() != p.docFit || p.steps.fit() != p.stepsFit || p.out.root.Visible() != p.printed {
		p.box.Refresh()
	}
}

func (p *panes) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(300, 80) }

func (p *panes) Layout(o []fyne.CanvasObject, size fyne.Size) {
	// The width decides how many rows there are, so it comes first.
	for i := range o {
		o[i].Resize(fyne.NewSize(size.Width, o[i].Size().Height))
	}
	p.docFit, p.stepsFit, p.printed = p.doc.fit(), p.steps.fit(), p.out.root.Visible()
	rest := size.Height - paneGap
	steps := min(p.stepsFit+2, rest*0.28)
	rest -= steps
	doc := rest
	if p.printed {
		rest -= paneGap
		doc = min(p.docFit+2, rest*0.4)
	}
	place := func(o fyne.CanvasObject, y, h float32) {
		o.Move(fyne.NewPos(0, y))
		o.Resize(fyne.NewSize(size.Width, h))
	}
	place(o[0], 0, doc)
	y := doc + paneGap
	if p.printed {
		place(o[1], y, rest-doc)
		y += rest - doc + paneGap
	}
	place(o[2], y, steps)
}

// sheet lays out a detail: its title, the facts and how it ended at the top, the
// buttons at the bottom, and what is read in the room between. Where the window
// is low the facts are scrolled, so that the buttons are always there.
type sheet struct{ head, facts, outcome, panes, buttons fyne.CanvasObject }

func (s sheet) objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{s.head, s.facts, s.outcome, s.panes, s.buttons}
}

func (s sheet) MinSize([]fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(380, s.head.MinSize().Height+s.panes.MinSize().Height+2*s.buttons.MinSize().Height)
}

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
	place := func(o fyne.CanvasObject, most float32) {
		if !o.Visible() {
			return
		}
		h := most
		if c, ok := o.(*container.Scroll); ok {
			h = min(c.Content.MinSize().Height, most)
		}
		o.Move(fyne.NewPos(0, y))
		o.Resize(fyne.NewSize(size.Width, h))
		y += h
	}
	place(s.head, s.head.MinSize().Height)
	place(s.facts, size.Height*0.3)
	place(s.outcome, size.Height*0.2)
	place(s.panes, bottom-y)
}
