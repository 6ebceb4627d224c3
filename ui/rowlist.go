package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// rowList is a list that leaves the keyboard to the dispatcher. A plain List
// takes the focus when clicked and then moves a cursor of its own.
type rowList struct {
	widget.List
	keys *keys
}

var _ desktop.Keyable = (*rowList)(nil)

// FocusGained draws nothing: the focus has no meaning here.
func (l *rowList) FocusGained() {}

// FocusLost draws nothing.
func (l *rowList) FocusLost() {}

// TypedRune does nothing; keys come through TypedKey.
func (l *rowList) TypedRune(rune) {}

// TypedKey hands the key to the dispatcher.
func (l *rowList) TypedKey(e *fyne.KeyEvent) {
	if l.keys != nil {
		l.keys.typed(e)
	}
}

// KeyDown tells the dispatcher of a fresh press.
func (l *rowList) KeyDown(e *fyne.KeyEvent) {
	if l.keys != nil {
		l.keys.down(e)
	}
}

// KeyUp tells the dispatcher that a key was let go.
func (l *rowList) KeyUp(e *fyne.KeyEvent) {
	if l.keys != nil {
		l.keys.up(e)
	}
}

// fill is a rectangle in a theme colour that follows the theme.
type fill struct {
	widget.BaseWidget
	name fyne.ThemeColorName
}

func newFill(name fyne.ThemeColorName) *fill {
	f := &fill{name: name}
	f.ExtendBaseWidget(f)
	return f
}

func (f *fill) CreateRenderer() fyne.WidgetRenderer {
	r := &fillRenderer{f, canvas.NewRectangle(color.Transparent)}
	r.Refresh()
	return r
}

type fillRenderer struct {
	f    *fill
	rect *canvas.Rectangle
}

func (r *fillRenderer) MinSize() fyne.Size { return fyne.Size{} }
func (r *fillRenderer) Layout(s fyne.Size) { r.rect.Resize(s) }
func (r *fillRenderer) Refresh() {
	r.rect.FillColor = colour(r.f.name)
	canvas.Refresh(r.rect)
}
func (r *fillRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.rect} }
func (r *fillRenderer) Destroy()                     {}

// setIcon changes a picture, if it is another one.
func setIcon(i *widget.Icon, icon fyne.Resource, tone fyne.ThemeColorName) {
	r := theme.NewColoredResource(icon, tone)
	if i.Resource == nil || i.Resource.Name() != r.Name() {
		i.SetResource(r)
	}
}

// setText changes a label, if it says something else.
func setText(l *widget.Label, text string) {
	if l.Text != text {
		l.SetText(text)
	}
}

// caption is a small line of our own words.
func caption(text string) *widget.Label {
	l := widget.NewLabel(text)
	l.SizeName = theme.SizeNameCaptionText
	l.Importance = widget.LowImportance
	return l
}
