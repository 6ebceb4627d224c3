package ui

import (
	"image/color"
	"sort"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// face is all that a row draws. Rows are drawn anew only when it changed.
type face struct {
	title string // of a section; the rest is empty then

	kind    string
	summary string
	right   string // countdown, or a time
	urgent  bool   // the countdown is nearly over
	word    string // accept status
	rest    string // session, age
	lease   float32
	leased  bool
	risk    bool
	marked  bool // to be approved together with others
}

// row is one line of the queue or the history. It places its words itself and
// shortens them to the room there is: a list draws hundreds of rows a second.
type row struct {
	widget.BaseWidget
	face  face
	drawn bool

	kind, mark                        *widget.Icon
	title, summary, word, rest, right *canvas.Text
	leaseName                         *canvas.Text
	lease                             *leaseBar
}

func newRow() *row {
	text := func(style fyne.TextStyle) *canvas.Text {
		t := canvas.NewText("", color.Black)
		t.TextStyle = style
		return t
	}
	bold := fyne.TextStyle{Bold: true}
	r := &row{
		kind: widget.NewIcon(nil), mark: widget.NewIcon(nil), lease: newLeaseBar(),
		title: text(bold), summary: text(fyne.TextStyle{Monospace: true}), word: text(bold),
		rest: text(fyne.TextStyle{}), right: text(fyne.TextStyle{}), leaseName: text(fyne.TextStyle{}),
	}
	r.ExtendBaseWidget(r)
	return r
}

// leaseName stands beside the bar, which is not that of the decision's time, where
// the row has so much room.
const (
	leaseName  = "lease"
	namedLease = 190
)

const (
	rowSide = 10 // space at the left and right
	rowGap  = 6
	rowIcon = 16
)

// rowHeight is two lines of text and the space around them.
func rowHeight() float32 {
	first := fyne.MeasureText("0", theme.TextSize(), fyne.TextStyle{Monospace: true})
	second := fyne.MeasureText("0", theme.CaptionTextSize(), fyne.TextStyle{})
	return floor(first.Height+second.Height) + 16
}

func (r *row) set(f face) {
	if r.drawn && r.face == f {
		return
	}
	r.face, r.drawn = f, true
	item := f.title == ""
	r.title.Hidden = item
	for _, o := range []fyne.CanvasObject{r.kind, r.mark, r.summary, r.word, r.rest, r.right} {
		if item {
			o.Show()
		} else {
			o.Hide()
		}
	}
	r.lease.set(f)
	if item {
		if f.marked {
			setIcon(r.kind, theme.CheckButtonCheckedIcon(), theme.ColorNamePrimary)
		} else {
			setIcon(r.kind, kindIcon(f.kind), theme.ColorNamePlaceHolder)
		}
		icon, tone := statusIcon(f.word)
		setIcon(r.mark, icon, tone)
		r.word.Color = colour(tone)
	}
	r.paint()
	r.arrange(r.Size())
	canvas.Refresh(r)
}

// paint sets colours and sizes of the theme of now.
func (r *row) paint() {
	small := theme.CaptionTextSize()
	quiet := colour(theme.ColorNamePlaceHolder)
	r.title.TextSize, r.title.Color = small, quiet
	r.summary.TextSize, r.summary.Color = theme.TextSize(), colour(theme.ColorNameForeground)
	r.word.TextSize = small
	r.rest.TextSize, r.rest.Color = small, quiet
	r.leaseName.TextSize, r.leaseName.Color = small, quiet
	r.right.TextSize, r.right.Color = small, quiet
	r.right.TextStyle.Bold = r.face.urgent
	if r.face.urgent {
		r.right.Color = colour(theme.ColorNameError)
	}
}

// arrange places the words and shortens those that have too little room.
func (r *row) arrange(size fyne.Size) {
	f := r.face
	if f.title != "" {
		r.leaseName.Hide()
		put(r.title, f.title, rowSide, size.Width-rowSide, size.Height-18)
		return
	}
	left, end := float32(rowSide+rowIcon+rowGap), size.Width-rowSide
	top, bottom := float32(6), size.Height-7-r.word.MinSize().Height
	at := func(o fyne.CanvasObject, y float32) {
		o.Move(fyne.NewPos(rowSide, y))
		o.Resize(fyne.NewSquareSize(rowIcon))
	}
	at(r.kind, top+1)
	at(r.mark, bottom)

	w := fyne.MeasureText(f.right, r.right.TextSize, r.right.TextStyle).Width
	put(r.right, f.right, end-w, end+1, top+2)
	put(r.summary, f.summary, left, end-w-rowGap, top)

	leaseEnd := end
	if f.leased {
		leaseEnd -= leaseWidth + rowGap
		r.lease.Move(fyne.NewPos(end-leaseWidth, bottom+5))
		r.lease.Resize(fyne.NewSize(leaseWidth, 6))
	}
	named := fyne.MeasureText(leaseName, r.leaseName.TextSize, r.leaseName.TextStyle).Width
	if r.leaseName.Hidden = !f.leased || leaseEnd-left < namedLease; !r.leaseName.Hidden {
		put(r.leaseName, leaseName, leaseEnd-named, leaseEnd+1, bottom)
		leaseEnd -= named + rowGap
	}
	x := put(r.word, f.word, left, leaseEnd, bottom) + rowGap
	put(r.rest, f.rest, x, leaseEnd, bottom)
}

// put places a text between two edges, shortened if it must be, and returns where
// it ends.
func put(t *canvas.Text, text string, from, to, y float32) float32 {
	t.Text = elide(text, to-from, t.TextSize, t.TextStyle)
	m := t.MinSize()
	t.Move(fyne.NewPos(floor(from), floor(y)))
	t.Resize(m)
	return from + m.Width
}

// elide shortens a text to a width. For rows, never for what is decided on.
func elide(text string, width, size float32, style fyne.TextStyle) string {
	if width <= 0 {
		return ""
	}
	fits := func(s string) bool { return fyne.MeasureText(s, size, style).Width <= width }
	if fits(text) {
		return text
	}
	runes := []rune(text)
	n := sort.Search(len(runes), func(n int) bool { return !fits(string(runes[:n]) + "…") })
	if n <= 1 {
		return ""
	}
	return wholeMarks(string(runes[:n-1])) + "…"
}

// Refresh draws in the theme's colours of now.
func (r *row) Refresh() {
	r.drawn = false
	r.set(r.face)
}

func (r *row) CreateRenderer() fyne.WidgetRenderer { return &rowRenderer{r} }

type rowRenderer struct{ r *row }

// MinSize is that of an item; section titles get a height of their own.
func (rr *rowRenderer) MinSize() fyne.Size { return fyne.NewSize(140, rowHeight()) }
func (rr *rowRenderer) Layout(s fyne.Size) { rr.r.arrange(s) }
func (rr *rowRenderer) Refresh()           {}
func (rr *rowRenderer) Objects() []fyne.CanvasObject {
	r := rr.r
	return []fyne.CanvasObject{r.title, r.kind, r.mark, r.summary, r.word, r.rest, r.right, r.leaseName, r.lease}
}
func (rr *rowRenderer) Destroy() {}

const leaseWidth = 54

// leaseBar shrinks as the lease runs out, and grows again with each renewal.
type leaseBar struct {
	widget.BaseWidget
	track, rest *canvas.Rectangle
	part        float32
}

func newLeaseBar() *leaseBar {
	b := &leaseBar{track: canvas.NewRectangle(color.Transparent), rest: canvas.NewRectangle(color.Transparent)}
	b.track.CornerRadius, b.rest.CornerRadius = 3, 3
	b.ExtendBaseWidget(b)
	return b
}

func (b *leaseBar) set(f face) {
	b.Hidden = !f.leased
	b.part = min(max(f.lease, 0), 1)
	b.track.FillColor = colour(theme.ColorNameSeparator)
	tone := theme.ColorNamePrimary
	if f.risk || b.part < 0.2 {
		tone = theme.ColorNameError
	}
	b.rest.FillColor = colour(tone)
	b.layout(b.Size())
	canvas.Refresh(b)
}

func (b *leaseBar) layout(s fyne.Size) {
	b.track.Resize(s)
	b.rest.Resize(fyne.NewSize(s.Width*b.part, s.Height))
}

func (b *leaseBar) CreateRenderer() fyne.WidgetRenderer { return &leaseRenderer{b} }

type leaseRenderer struct{ b *leaseBar }

func (r *leaseRenderer) MinSize() fyne.Size { return fyne.NewSize(leaseWidth, 6) }
func (r *leaseRenderer) Layout(s fyne.Size) { r.b.layout(s) }
func (r *leaseRenderer) Refresh()           { canvas.Refresh(r.b) }
func (r *leaseRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.b.track, r.b.rest}
}
func (r *leaseRenderer) Destroy() {}
