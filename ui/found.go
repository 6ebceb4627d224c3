package ui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fyne.io/fyne/v2/theme"

	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// found is what an item would meet on the disk, made ready to be shown.
type found struct {
	words []textLine // what is there, and what becomes of it
	diff  []textLine // the lines of a file that a write changes; nil where that is not told
}

// newFound makes the words of a preview and the lines of its difference. The time
// that it takes goes by the size of that.
func newFound(p execute.Preview, err error) found {
	if err != nil {
		return found{words: []textLine{{Text: "What is on the disk now could not be looked at: " + safetext.Line(err.Error()), Style: note}}}
	}
	f := found{}
	for i, words := range p.Words() {
		l := textLine{Text: safetext.Line(words), Style: note}
		if i == 0 && p.Fails != "" {
			l.Inks = []ink{{To: len(l.Text), Tone: theme.ColorNameWarning, Bold: true}}
		}
		f.words = append(f.words, l)
	}
	if p.Diff.Shape == execute.ShapeLines {
		f.diff = append(f.diff, textLine{Style: heading, Text: fmt.Sprintf("What changes: %s removed, %s added",
			countWords(p.Diff.Removed, "line", "lines"), countWords(p.Diff.Added, "line", "lines"))})
		for _, h := range p.Diff.Hunks {
			f.diff = append(f.diff, hunkLines(h)...)
		}
	}
	return f
}

// hunkLines draws a stretch of lines that change. Removed ones have the numbers
// that they had, the others those that they get.
func hunkLines(h execute.Hunk) []textLine {
	lines := make([]textLine, 0, len(h.Lines)+1)
	lines = append(lines, textLine{Style: note, Text: "From line " + strconv.Itoa(h.OldLine) + newLineWords(h)})
	raw := make([]string, len(h.Lines))
	for i, l := range h.Lines {
		raw[i] = l.Text
	}
	safe := strings.Split(safetext.Block(strings.Join(raw, "\n")), "\n")
	was, is := h.OldLine, h.NewLine
	for i, l := range h.Lines {
		t := textLine{Text: safe[i], Style: body, Number: is, Sign: " ", Inks: markInks(safe[i])}
		switch l.Op {
		case execute.Removed:
			t.Style, t.Sign, t.Number = removed, "−", was
			was++
		case execute.Added:
			t.Style, t.Sign = added, "+"
			is++
		default:
			was++
			is++
		}
		lines = append(lines, t)
		if l.Open {
			lines = append(lines, textLine{Text: "(that line is the last one and not ended by a line feed)", Style: aside})
		}
	}
	return lines
}

func newLineWords(h execute.Hunk) string {
	if h.NewLine == h.OldLine {
		return ""
	}
	return fmt.Sprintf(", which is line %d then", h.NewLine)
}

// lookUp asks what the item would meet on the disk, and shows it when it is
// there. Until then, and where that is all there is, the whole of what is asked
// is shown.
func (d *detail) lookUp() {
	d.endLook()
	d.looks++
	d.found, d.seenDiff, d.wholeShown = found{}, nil, false
	if !d.decides || !d.open() || d.reading.unfit != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.u.ctx)
	d.endLook = cancel
	look := d.looks
	id := d.view.ID
	d.u.start(func(context.Context) {
		defer cancel()
		p, err := d.u.Desk.Preview(ctx, id)
		if ctx.Err() != nil {
			return
		}
		f := newFound(p, err)
		d.u.OnUI(func() {
			if d.view.ID == id && d.looks == look {
				d.find(f)
			}
		})
	})
}

// find shows what is found. The operator has to read it like all else, so the
// reading time begins anew.
func (d *detail) find(f found) {
	d.found = f
	if len(f.words) == 0 && f.diff == nil {
		return
	}
	d.doc.setLines(d.docLines(), nil)
	d.shownNow()
	d.panes.layoutAgain()
	d.enable()
}

// docLines is the text of the item as it is shown now: with the difference that a
// write makes, or with the whole content.
func (d *detail) docLines() []textLine {
	main := d.reading.main
	if d.found.diff != nil && !d.wholeShown {
		main = d.found.diff
	}
	return slices.Concat(d.reading.head, d.found.words, main)
}

// toggleWhole shows the whole content in place of the difference, or the
// difference again. What was seen of that is remembered: it is what has to be
// seen.
func (d *detail) toggleWhole() {
	if d.found.diff == nil {
		return
	}
	if d.wholeShown = !d.wholeShown; d.wholeShown {
		d.doc.look()
		d.seenDiff = d.doc.seenLines()
		d.unseenDiff = d.doc.rowsOf(d.seenDiff)
		d.doc.setLines(d.docLines(), nil)
	} else {
		d.doc.setLines(d.docLines(), d.seenDiff)
	}
	d.doc.ScrollToOffset(0)
	d.shownNow()
	d.panes.layoutAgain()
	d.enable()
}

// unseen is how many rows of what is decided on have not been on screen: of the
// difference where there is one, however much of the whole content has.
func (d *detail) unseen() int {
	if d.wholeShown {
		return d.unseenDiff
	}
	return d.doc.unseen()
}
