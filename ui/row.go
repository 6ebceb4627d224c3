package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
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
}

// row is one line of the queue or the history.
type row struct {
	widget.BaseWidget
	face  face
	drawn bool

	title             *widget.Label
	kind, mark        *widget.Icon
	summary, rest     *widget.Label
	word              *canvas.Text
	right             *canvas.Text
	lease             *leaseBar
	item, item1, root *fyne.Container
}

func newRow() *row {
	r := &row{
		title: widget.NewLabel(""), kind: widget.NewIcon(nil), mark: widget.NewIcon(nil),
		summary: widget.NewLabel(" "), rest: caption(" "), word: canvas.NewText(" ", color.Black),
		right: canvas.NewText("", color.Black), lease: newLeaseBar(),
	}
	r.title.TextStyle.Bold = true
	r.title.SizeName = theme.SizeNameCaptionText
	r.title.Importance = widget.LowImportance
	r.summary.TextStyle.Monospace = true
	r.summary.Truncation, r.rest.Truncation = fyne.TextTruncateEllipsis, fyne.TextTruncateEllipsis
	r.word.TextStyle.Bold = true
	top := container.NewBorder(nil, nil, r.kind, r.right, r.summary)
	bottom := container.NewBorder(nil, nil, container.NewHBox(r.mark, r.word), container.NewCenter(r.lease), r.rest)
	r.item = container.New(sides{10}, container.NewVBox(top, bottom))
	r.root = container.NewStack(container.NewBorder(nil, r.title, nil, nil), r.item)
	r.ExtendBaseWidget(r)
	return r
}

func (r *row) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(r.root) }

// MinSize is that of an item; section titles get a height of their own.
func (r *row) MinSize() fyne.Size { return fyne.NewSize(140, rowHeight()) }

// rowHeight is two lines of text and the space around them.
func rowHeight() float32 {
	first := fyne.MeasureText("0", theme.TextSize(), fyne.TextStyle{Monospace: true})
	second := fyne.MeasureText("0", theme.CaptionTextSize(), fyne.TextStyle{})
	return first.Height + second.Height + 18
}

func (r *row) set(f face) {
	if r.drawn && r.face == f {
		return
	}
	r.face, r.drawn = f, true
	r.title.Hidden, r.item.Hidden = f.title == "", f.title != ""
	if f.title != "" {
		r.title.SetText(f.title)
		r.root.Refresh()
		return
	}
	setIcon(r.kind, kindIcon(f.kind), theme.ColorNamePlaceHolder)
	r.summary.SetText(f.summary)
	r.right.Text, r.right.Color, r.right.TextSize = f.right, colour(theme.ColorNamePlaceHolder), theme.CaptionTextSize()
	r.right.TextStyle.Bold = f.urgent
	if f.urgent {
		r.right.Color = colour(theme.ColorNameError)
	}
	icon, tone := statusIcon(f.word)
	setIcon(r.mark, icon, tone)
	r.word.Text, r.word.Color, r.word.TextSize = f.word, colour(tone), theme.CaptionTextSize()
	r.rest.SetText(f.rest)
	r.lease.set(f)
	r.root.Refresh()
}

// Refresh draws in the theme's colours of now.
func (r *row) Refresh() {
	r.drawn = false
	r.set(r.face)
	r.BaseWidget.Refresh()
}

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

func (r *leaseRenderer) MinSize() fyne.Size { return fyne.NewSize(54, 6) }
func (r *leaseRenderer) Layout(s fyne.Size) { r.b.layout(s) }
func (r *leaseRenderer) Refresh()           { canvas.Refresh(r.b) }
func (r *leaseRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.b.track, r.b.rest}
}
func (r *leaseRenderer) Destroy() {}

// sides keeps space at the left and right of one object.
type sides struct{ by float32 }

func (s sides) MinSize(o []fyne.CanvasObject) fyne.Size {
	return o[0].MinSize().Add(fyne.NewSize(2*s.by, 0))
}

func (s sides) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.NewPos(s.by, 0))
	o[0].Resize(size.Subtract(fyne.NewSize(2*s.by, 0)))
}
