package ui

import (
	"image/color"
	"strconv"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/policy"
)

const (
	gutter        = 58
	verdictGutter = 76 // has room for a verdict's picture and word
	textMargin    = 10
)

func textRowHeight() float32 {
	return fyne.MeasureText("0", theme.TextSize(), fyne.TextStyle{Monospace: true}).Height + 1
}

// textRowBox draws one row: what line it is in the gutter, its text beside, in
// as many pieces as there are ways in which it is drawn.
type textRowBox struct {
	widget.BaseWidget
	view   *textView
	mark   *canvas.Text
	icon   *widget.Icon
	pieces []piece
	used   int // pieces drawn
}

// piece is a stretch of a row. The fixed-width font has no bold letters, so bold
// is drawn as people did on typewriters: twice, a little apart.
type piece struct {
	text, again *canvas.Text
	under       *canvas.Rectangle
	x, width    float32 // from the beginning of the text
}

func newTextRowBox(t *textView) *textRowBox {
	b := &textRowBox{view: t, mark: canvas.NewText("", color.Black), icon: widget.NewIcon(nil)}
	b.icon.Hide()
	b.mark.TextStyle.Monospace = true
	b.mark.Alignment = fyne.TextAlignTrailing
	b.piece(0)
	b.ExtendBaseWidget(b)
	return b
}

// piece returns the piece of a number, made when it is first needed.
func (b *textRowBox) piece(n int) *piece {
	for len(b.pieces) <= n {
		p := piece{text: canvas.NewText("", color.Black), again: canvas.NewText("", color.Black),
			under: canvas.NewRectangle(color.Transparent)}
		b.pieces = append(b.pieces, p)
	}
	return &b.pieces[n]
}

// set draws a row of a line.
func (b *textRowBox) set(l textLine, r textRow) {
	goesOn := r.from > 0
	b.setMark(l, goesOn)
	tone := theme.ColorNameForeground
	switch l.Style {
	case stderr, removed:
		tone = theme.ColorNameError
	case added:
		tone = theme.ColorNameSuccess
	case heading:
		tone = theme.ColorNamePrimary
	case note, aside:
		tone = theme.ColorNamePlaceHolder
	}
	before := b.used
	b.used = 0
	x, from := float32(0), r.from
	draw := func(to int, i ink) {
		if from < to {
			x += b.setPiece(l, l.Text[from:to], x, i)
			from = to
		}
	}
	for _, i := range l.Inks {
		if i.To > from && i.From < r.to {
			draw(i.From, ink{Tone: tone})
			draw(min(i.To, r.to), i)
		}
	}
	draw(r.to, ink{Tone: tone})
	if b.used == 0 {
		b.setPiece(l, "", 0, ink{Tone: tone})
	}
	b.layoutPieces(l)
	if b.used != before {
		b.Refresh() // there are other objects to draw
	}
}

// setPiece draws a stretch of a row and returns how wide it is.
func (b *textRowBox) setPiece(l textLine, text string, x float32, i ink) float32 {
	p := b.piece(b.used)
	b.used++
	p.x = x
	for _, t := range []*canvas.Text{p.text, p.again} {
		t.Text, t.TextSize, t.Color, t.TextStyle = text, theme.TextSize(), colour(i.Tone), styleOf(l.Style)
	}
	p.width = b.view.width(text, p.text.TextStyle)
	p.again.Hidden, p.under.Hidden = !i.Bold, !i.Under
	p.under.FillColor = colour(i.Tone)
	canvas.Refresh(p.text)
	if i.Bold {
		canvas.Refresh(p.again)
	}
	return p.width
}

// width is how much room a text takes. A measure is of whole pixels, which would
// add up where a row has many pieces.
func (t *textView) width(text string, style fyne.TextStyle) float32 {
	if style.Monospace {
		plain := true
		for i := 0; i < len(text) && plain; i++ {
			plain = text[i] >= ' ' && text[i] < 0x7f
		}
		if plain {
			return float32(len(text)) * t.cell
		}
	}
	return fyne.MeasureText(text, theme.TextSize(), style).Width
}

// setMark draws what stands in the gutter.
func (b *textRowBox) setMark(l textLine, goesOn bool) {
	mark, tone := "", theme.ColorNamePlaceHolder
	switch {
	case goesOn && l.Style != note && l.Style != heading && l.Style != aside:
		mark = "↪"
	case goesOn:
	case l.Number > 0:
		mark = strconv.Itoa(l.Number)
	}
	switch {
	case l.Style == stderr && !goesOn:
		mark = "err " + mark
	case l.Sign != "":
		mark += " " + l.Sign
		if l.Style == added {
			tone = theme.ColorNameSuccess
		} else if l.Style == removed {
			tone = theme.ColorNameError
		}
	}
	b.icon.Hidden = l.Verdict == "" || goesOn
	if !b.icon.Hidden {
		var icon fyne.Resource
		mark, icon, tone = verdictFace(l.Verdict)
		setIcon(b.icon, icon, tone)
	}
	b.mark.Alignment, b.mark.TextStyle.Monospace, b.mark.TextStyle.Bold = fyne.TextAlignTrailing, true, false
	size := theme.CaptionTextSize() - 1
	if !b.icon.Hidden {
		b.mark.Alignment, b.mark.TextStyle.Monospace, b.mark.TextStyle.Bold = fyne.TextAlignLeading, false, true
		size++
	}
	b.mark.Text, b.mark.TextSize, b.mark.Color = mark, size, colour(tone)
	b.layout(b.Size())
	canvas.Refresh(b.mark)
}

// verdictFace is how a verdict is drawn: never by colour alone.
func verdictFace(v policy.Verdict) (word string, icon fyne.Resource, tone fyne.ThemeColorName) {
	switch v {
	case policy.Allow:
		return "allow", theme.ConfirmIcon(), theme.ColorNameSuccess
	case policy.Deny:
		return "deny", theme.CancelIcon(), theme.ColorNameError
	}
	return "ask", theme.QuestionIcon(), theme.ColorNameWarning
}

func (b *textRowBox) layoutPieces(l textLine) {
	start := b.view.start(l)
	for n := range b.pieces[:b.used] {
		p := &b.pieces[n]
		h, x := textRowHeight(), floor(start+p.x) // on whole pixels, where it is sharp
		p.text.Move(fyne.NewPos(x, 0))
		p.text.Resize(fyne.NewSize(p.width, h))
		p.again.Move(fyne.NewPos(x+1, 0))
		p.again.Resize(fyne.NewSize(p.width, h))
		p.under.Move(fyne.NewPos(x, h-1))
		p.under.Resize(fyne.NewSize(p.width, 1))
	}
}

func (b *textRowBox) layout(size fyne.Size) {
	from := float32(0)
	if !b.icon.Hidden {
		from = 29
	}
	b.mark.Move(fyne.NewPos(from, 0))
	b.mark.Resize(fyne.NewSize(b.view.side-8-from, size.Height))
	b.icon.Move(fyne.NewPos(8, floor((size.Height-15)/2)))
	b.icon.Resize(fyne.NewSquareSize(15))
}

func (b *textRowBox) CreateRenderer() fyne.WidgetRenderer { return &textRowRenderer{b} }

type textRowRenderer struct{ b *textRowBox }

func (r *textRowRenderer) MinSize() fyne.Size { return fyne.NewSize(80, textRowHeight()) }
func (r *textRowRenderer) Layout(s fyne.Size) { r.b.layout(s) }
func (r *textRowRenderer) Refresh()           { canvas.Refresh(r.b) }
func (r *textRowRenderer) Objects() []fyne.CanvasObject {
	o := []fyne.CanvasObject{r.b.mark, r.b.icon}
	for _, p := range r.b.pieces[:r.b.used] {
		o = append(o, p.under, p.text, p.again)
	}
	return o
}
func (r *textRowRenderer) Destroy() {}
