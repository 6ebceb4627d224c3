package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// badges is a line of short words that catch the eye: the risks of an item, and
// what is hidden in its text. It goes on in further lines where it has to. No
// badge holds anything but our own words.
type badges struct {
	widget.BaseWidget
	words  []string
	drawn  []badge
	height float32 // as of the last layout
}

type badge struct {
	fill *canvas.Rectangle
	icon *widget.Icon
	text *canvas.Text
}

func newBadges() *badges {
	b := &badges{}
	b.Hide()
	b.ExtendBaseWidget(b)
	return b
}

// badgeWords names the marks of an item, the gravest of its text last.
func badgeWords(risks []policy.Risk, marks []safetext.Mark) []string {
	var words []string
	for _, r := range risks {
		words = append(words, string(r.Mark))
	}
	for _, m := range marks {
		words = append(words, m.String())
	}
	return words
}

// set shows badges; none hides the line.
func (b *badges) set(words []string) {
	b.words = words
	b.Hidden = len(words) == 0
	for len(b.drawn) < len(words) {
		d := badge{canvas.NewRectangle(color.Transparent), widget.NewIcon(nil), canvas.NewText("", color.Black)}
		d.fill.CornerRadius, d.fill.StrokeWidth = 4, 1
		d.text.TextStyle.Bold = true
		b.drawn = append(b.drawn, d)
	}
	b.arrange(b.Size().Width)
	b.Refresh()
}

const (
	badgeHeight = 22
	badgeGap    = 5
	badgeSide   = 10
)

// arrange places the badges from left to right and goes on below.
func (b *badges) arrange(width float32) {
	x, y := float32(badgeSide), float32(0)
	for i, words := range b.words {
		d := b.drawn[i]
		d.text.Text, d.text.TextSize = words, theme.CaptionTextSize()
		m := d.text.MinSize()
		w := m.Width + 30
		if x > badgeSide && x+w > width-badgeSide {
			x, y = badgeSide, y+badgeHeight+badgeGap
		}
		d.fill.Move(fyne.NewPos(x, y))
		d.fill.Resize(fyne.NewSize(w, badgeHeight))
		d.icon.Move(fyne.NewPos(x+6, y+4))
		d.icon.Resize(fyne.NewSquareSize(14))
		d.text.Move(fyne.NewPos(x+24, floor(y+(badgeHeight-m.Height)/2)+1))
		d.text.Resize(m)
		x += w + badgeGap
	}
	b.height = y + badgeHeight + badgeGap
}

func (b *badges) CreateRenderer() fyne.WidgetRenderer {
	r := &badgesRenderer{b}
	r.Refresh()
	return r
}

type badgesRenderer struct{ b *badges }

func (r *badgesRenderer) MinSize() fyne.Size { return fyne.NewSize(60, r.b.height) }
func (r *badgesRenderer) Layout(s fyne.Size) { r.b.arrange(s.Width) }
func (r *badgesRenderer) Refresh() {
	for _, d := range r.b.drawn[:len(r.b.words)] {
		d.fill.FillColor, d.fill.StrokeColor = colour(colourNote), colour(theme.ColorNameWarning)
		d.text.Color = colour(theme.ColorNameWarning)
		setIcon(d.icon, theme.WarningIcon(), theme.ColorNameWarning)
	}
	r.b.arrange(r.b.Size().Width)
	canvas.Refresh(r.b)
}
func (r *badgesRenderer) Objects() []fyne.CanvasObject {
	var o []fyne.CanvasObject
	for _, d := range r.b.drawn[:len(r.b.words)] {
		o = append(o, d.fill, d.icon, d.text)
	}
	return o
}
func (r *badgesRenderer) Destroy() {}
