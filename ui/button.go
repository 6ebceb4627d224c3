package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// button is pressed with the pointer or through the key dispatcher and cannot
// take the keyboard focus, so that no stray Space or Enter ever presses it:
// one of them is Approve.
type button struct {
	widget.BaseWidget
	label    string
	keys     string // the keys that do the same, in small beside the label
	icon     fyne.Resource
	tone     fyne.ThemeColorName // "" plain, else the fill
	flat     bool                // no fill unless hovered or chosen
	left     bool                // label at the left, not in the middle
	short    bool                // no room for the keys
	chosen   bool
	disabled bool
	tapped   func()
	hovered  bool
}

func newButton(label, keys string, icon fyne.Resource, tapped func()) *button {
	b := &button{label: label, keys: keys, icon: icon, tapped: tapped}
	b.ExtendBaseWidget(b)
	return b
}

// set changes what the button says and whether it can be pressed.
func (b *button) set(label string, enabled bool) {
	if b.label == label && b.disabled == !enabled {
		return
	}
	b.label, b.disabled = label, !enabled
	b.Refresh()
}

// choose marks the button as the chosen one of its group.
func (b *button) choose(on bool) {
	if b.chosen != on {
		b.chosen = on
		b.Refresh()
	}
}

func (b *button) Tapped(*fyne.PointEvent) {
	if !b.disabled {
		b.tapped()
	}
}

func (b *button) MouseIn(*desktop.MouseEvent)    { b.hovered = true; b.Refresh() }
func (b *button) MouseMoved(*desktop.MouseEvent) {}
func (b *button) MouseOut()                      { b.hovered = false; b.Refresh() }

func (b *button) CreateRenderer() fyne.WidgetRenderer {
	r := &buttonRenderer{
		b:     b,
		fill:  canvas.NewRectangle(color.Transparent),
		icon:  widget.NewIcon(nil),
		label: canvas.NewText("", color.Black),
		keys:  canvas.NewText("", color.Black),
	}
	r.fill.CornerRadius = 5
	r.Refresh()
	return r
}

type buttonRenderer struct {
	b           *button
	fill        *canvas.Rectangle
	icon        *widget.Icon
	label, keys *canvas.Text
}

const buttonGap = 7

func (r *buttonRenderer) width() float32 {
	w := r.label.MinSize().Width
	if r.b.icon != nil {
		w += 18 + buttonGap
	}
	if r.b.keys != "" && !r.b.short {
		w += r.keys.MinSize().Width + buttonGap + 2
	}
	return w
}

func (r *buttonRenderer) MinSize() fyne.Size {
	return fyne.NewSize(r.width()+22, r.label.MinSize().Height+14)
}

func (r *buttonRenderer) Layout(size fyne.Size) {
	r.fill.Resize(size)
	x := floor((size.Width - r.width()) / 2)
	if r.b.left {
		x = 11
	}
	if r.b.icon != nil {
		r.icon.Resize(fyne.NewSquareSize(18))
		r.icon.Move(fyne.NewPos(x, floor((size.Height-18)/2)))
		x += 18 + buttonGap
	}
	lm, km := r.label.MinSize(), r.keys.MinSize()
	r.label.Resize(lm)
	r.label.Move(fyne.NewPos(x, floor((size.Height-lm.Height)/2)))
	x += lm.Width + buttonGap + 2
	if r.b.left {
		x = max(x, size.Width-km.Width-11)
	}
	r.keys.Resize(km)
	r.keys.Move(fyne.NewPos(x, floor((size.Height-km.Height)/2)))
}

// floor keeps text on whole pixels, where it is sharp.
func floor(x float32) float32 { return float32(int(x)) }

func (r *buttonRenderer) Refresh() {
	b := r.b
	ink, fill := r.colours()
	r.fill.FillColor = colour(fill)
	if b.flat && !b.chosen && (!b.hovered || b.disabled) {
		r.fill.FillColor = color.Transparent
	}
	r.label.Text, r.label.Color, r.label.TextSize = b.label, colour(ink), theme.TextSize()
	r.label.TextStyle.Bold = b.tone != "" || b.chosen
	r.keys.Hidden = b.short
	r.keys.Text, r.keys.Color, r.keys.TextSize = b.keys, colour(ink), theme.CaptionTextSize()
	r.icon.Hidden = b.icon == nil
	if b.icon != nil {
		setIcon(r.icon, b.icon, ink)
	}
	r.Layout(b.Size())
	for _, o := range r.Objects() {
		canvas.Refresh(o)
	}
}

func (r *buttonRenderer) colours() (ink, fill fyne.ThemeColorName) {
	b := r.b
	switch {
	case b.disabled:
		return theme.ColorNameDisabled, theme.ColorNameDisabledButton
	case b.tone == theme.ColorNamePrimary:
		return theme.ColorNameForegroundOnPrimary, b.tone
	case b.tone == theme.ColorNameError:
		return theme.ColorNameForegroundOnError, b.tone
	case b.chosen:
		return theme.ColorNameForeground, theme.ColorNameSelection
	case b.hovered:
		return theme.ColorNameForeground, theme.ColorNameHover
	}
	return theme.ColorNameForeground, theme.ColorNameButton
}

func (r *buttonRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.fill, r.icon, r.label, r.keys}
}

func (r *buttonRenderer) Destroy() {}

// buttonRow lays buttons out beside each other, the last at the right end, and
// goes on in a second line where there is little room. Where two lines are not
// enough, the buttons leave out their keys before one is cut off.
type buttonRow struct{ width float32 }

func (r *buttonRow) MinSize(objects []fyne.CanvasObject) fyne.Size {
	if r.width == 0 || len(objects) == 0 {
		return fyne.NewSize(0, 0)
	}
	lines := r.lines(objects, r.width)
	return fyne.NewSize(0, float32(len(lines))*(r.height(objects)+theme.Padding())-theme.Padding())
}

func (r *buttonRow) height(objects []fyne.CanvasObject) float32 { return objects[0].MinSize().Height }

// lines divides the buttons that are to be seen into lines.
func (r *buttonRow) lines(objects []fyne.CanvasObject, width float32) [][]*button {
	lines := fillLines(objects, width, false)
	if len(lines) > 2 {
		lines = fillLines(objects, width, true)
	}
	return lines
}

// fillLines fills lines with buttons, with or without their keys.
func fillLines(objects []fyne.CanvasObject, width float32, short bool) (lines [][]*button) {
	x := width + 1
	for _, o := range objects {
		b, ok := o.(*button)
		if !ok || !b.Visible() {
			continue
		}
		if b.short != short {
			b.short = short
			b.Refresh()
		}
		w := b.MinSize().Width
		if x+w > width {
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], b)
		x += w + theme.Padding()
	}
	return lines
}

func (r *buttonRow) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	r.width = size.Width
	lines := r.lines(objects, size.Width)
	h, y := r.height(objects), float32(0)
	for n, line := range lines {
		x := float32(0)
		for i, b := range line {
			w := b.MinSize().Width
			if i == len(line)-1 && n == len(lines)-1 {
				x = max(x, size.Width-w)
			}
			b.Move(fyne.NewPos(x, y))
			b.Resize(fyne.NewSize(w, h))
			x += w + theme.Padding()
		}
		y += h + theme.Padding()
	}
}
