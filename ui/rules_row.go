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

// face says how an entry looks in the list.
func (r *rules) face(e ruleEntry) ruleFace {
	switch e.what {
	case aChange:
		return ruleFace{icon: theme.WarningIcon(), tone: theme.ColorNameWarning, name: "A change of the rule file",
			rest: "made outside Countersign; not in force until you have seen it"}
	case aBroken:
		return ruleFace{icon: theme.ErrorIcon(), tone: theme.ColorNameError, name: "The rule file cannot be used",
			rest: "what was in force before still is"}
	case aTry:
		return ruleFace{icon: theme.QuestionIcon(), tone: theme.ColorNamePrimary, name: "What would happen to…",
			rest: "what the rules say of a command, a read, a write or a list"}
	case aRule:
		return r.ruleFace(r.known.inForce[e.n])
	case aGrant:
		g := r.known.grants[e.n]
		return ruleFace{icon: theme.HistoryIcon(), tone: theme.ColorNamePlaceHolder, name: safetext.Clip(g.Text, 160), fixed: true,
			right: usedWords(g.Matched), rest: safetext.Clip(g.Session, 40) + " · " + untilWords(g, r.u.Now())}
	case aShipped:
		s := r.known.shipped[e.n]
		f := ruleFace{icon: theme.CheckButtonIcon(), tone: theme.ColorNameForeground, name: s.Name, right: "off", rest: s.does}
		if s.RunsCode {
			f.right = "off · runs code"
		}
		if r.chosen[s.Name] {
			f.icon, f.tone, f.right = theme.CheckButtonCheckedIcon(), theme.ColorNamePrimary, "chosen"
		}
		return f
	}
	return ruleFace{title: e.id}
}

func (r *rules) ruleFace(info policy.RuleInfo) ruleFace {
	f := ruleFace{icon: kindIcon(firstOf(info.Kinds)), tone: theme.ColorNamePlaceHolder, name: safetext.Clip(info.Name, 120), rest: ruleLine(info)}
	c := r.known.count(info.Name)
	if f.right = usedWords(c.Matched); c.Matched == 0 {
		f.right = "no use since loaded" // what was before is not counted here
	}
	if !c.Last.IsZero() {
		f.right += " · " + when(c.Last, r.u.Now())
	}
	return f
}

func (k rulesKnown) count(rule string) policy.Count {
	for _, c := range k.state.Counts {
		if c.Rule == rule {
			return c
		}
	}
	return policy.Count{}
}

// ruleFace is all that a row draws.
type ruleFace struct {
	title string // of a section; the rest is empty then

	icon        fyne.Resource
	tone        fyne.ThemeColorName
	name        string
	fixed       bool // the name is somebody else's text
	right, rest string
}

// ruleRow is one line of the list of rules.
type ruleRow struct {
	widget.BaseWidget
	shown ruleFace
	drawn bool

	icon                     *switchIcon
	title, name, right, rest *canvas.Text
}

func newRuleRow(tapped func(*ruleRow)) *ruleRow {
	text := func(bold bool) *canvas.Text {
		t := canvas.NewText("", color.Black)
		t.TextStyle.Bold = bold
		return t
	}
	r := &ruleRow{title: text(true), name: text(true), right: text(false), rest: text(false)}
	r.icon = newSwitchIcon(func() { tapped(r) })
	r.ExtendBaseWidget(r)
	return r
}

func (r *ruleRow) set(f ruleFace) {
	if r.drawn && r.shown == f {
		return
	}
	r.shown, r.drawn = f, true
	item := f.title == ""
	r.title.Hidden = item
	r.icon.Hidden, r.name.Hidden, r.right.Hidden, r.rest.Hidden = !item, !item, !item, !item
	if item {
		setIcon(r.icon.icon, f.icon, f.tone)
	}
	small, quiet := theme.CaptionTextSize(), colour(theme.ColorNamePlaceHolder)
	r.title.TextSize, r.title.Color = small, quiet
	r.name.TextSize, r.name.Color = theme.TextSize(), colour(theme.ColorNameForeground)
	r.name.TextStyle = fyne.TextStyle{Bold: !f.fixed, Monospace: f.fixed}
	r.rest.TextSize, r.rest.Color = small, quiet
	r.right.TextSize, r.right.Color = small, quiet
	r.arrange(r.Size())
	canvas.Refresh(r)
}

func (r *ruleRow) arrange(size fyne.Size) {
	f := r.shown
	if f.title != "" {
		put(r.title, f.title, rowSide, size.Width-rowSide, size.Height-18)
		return
	}
	left, end := float32(rowSide+rowIcon+rowGap), size.Width-rowSide
	top, bottom := float32(6), size.Height-7-r.rest.MinSize().Height
	r.icon.Move(fyne.NewPos(rowSide-4, top-3))
	r.icon.Resize(fyne.NewSquareSize(rowIcon + 8))
	w := fyne.MeasureText(f.right, r.right.TextSize, r.right.TextStyle).Width
	put(r.right, f.right, end-w, end+1, top+2)
	put(r.name, f.name, left, end-w-rowGap, top)
	put(r.rest, f.rest, left, end, bottom)
}

// Refresh draws in the theme's colours of now.
func (r *ruleRow) Refresh() {
	r.drawn = false
	r.set(r.shown)
}

func (r *ruleRow) CreateRenderer() fyne.WidgetRenderer { return &ruleRowRenderer{r} }

type ruleRowRenderer struct{ r *ruleRow }

func (rr *ruleRowRenderer) MinSize() fyne.Size { return fyne.NewSize(140, rowHeight()) }
func (rr *ruleRowRenderer) Layout(s fyne.Size) { rr.r.arrange(s) }
func (rr *ruleRowRenderer) Refresh()           {}
func (rr *ruleRowRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{rr.r.title, rr.r.icon, rr.r.name, rr.r.right, rr.r.rest}
}
func (rr *ruleRowRenderer) Destroy() {}

// switchIcon is the picture of a row, which can be clicked for itself.
type switchIcon struct {
	widget.BaseWidget
	icon *widget.Icon
	tap  func()
}

func newSwitchIcon(tap func()) *switchIcon {
	s := &switchIcon{icon: widget.NewIcon(nil), tap: tap}
	s.ExtendBaseWidget(s)
	return s
}

func (s *switchIcon) Tapped(*fyne.PointEvent) { s.tap() }

func (s *switchIcon) CreateRenderer() fyne.WidgetRenderer { return &switchRenderer{s} }

type switchRenderer struct{ s *switchIcon }

func (r *switchRenderer) MinSize() fyne.Size { return fyne.NewSquareSize(rowIcon + 8) }
func (r *switchRenderer) Layout(fyne.Size) {
	r.s.icon.Move(fyne.NewPos(4, 4))
	r.s.icon.Resize(fyne.NewSquareSize(rowIcon))
}
func (r *switchRenderer) Refresh()                     { canvas.Refresh(r.s.icon) }
func (r *switchRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.s.icon} }
func (r *switchRenderer) Destroy()                     {}
