package ui

import (
	"fyne.io/fyne/v2"
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

func (p *panes) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(300, 240) }

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
