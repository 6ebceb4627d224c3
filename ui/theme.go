package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// colours is the default theme with the colours that are too weak to read
// replaced: its disabled text has a contrast of 1.5:1, its light warnings 2:1.
// Every colour here that words are drawn in has 4.5:1 at least on every
// background they are drawn on; a test holds it to that.
type colours struct{ fyne.Theme }

// NewTheme returns the application's theme, light or dark as the system asks.
func NewTheme() fyne.Theme { return colours{theme.DefaultTheme()} }

// Backgrounds of our own.
const (
	colourRail  fyne.ThemeColorName = "countersignRail"
	colourPaper fyne.ThemeColorName = "countersignPaper" // behind commands and output
	colourNote  fyne.ThemeColorName = "countersignNote"  // behind strips that say something
)

// Colours of our own for what is what in a command.
const (
	colourOption    fyne.ThemeColorName = "countersignOption"
	colourName      fyne.ThemeColorName = "countersignName" // of a variable that is set
	colourExpansion fyne.ThemeColorName = "countersignExpansion"
)

type pair struct{ light, dark color.NRGBA }

func grey(v uint8) color.NRGBA { return color.NRGBA{v, v, v, 0xff} }

func (c colours) Color(name fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	p, ok := c.own(name)
	switch {
	case !ok:
		return c.Theme.Color(name, v)
	case v == theme.VariantDark:
		return p.dark
	}
	return p.light
}

func (colours) own(name fyne.ThemeColorName) (pair, bool) {
	switch name {
	case theme.ColorNameBackground:
		return pair{grey(0xff), color.NRGBA{0x1b, 0x1c, 0x20, 0xff}}, true
	case theme.ColorNameOverlayBackground, theme.ColorNameMenuBackground:
		return pair{grey(0xff), color.NRGBA{0x26, 0x28, 0x2e, 0xff}}, true
	case colourRail:
		return pair{color.NRGBA{0xee, 0xf1, 0xf5, 0xff}, color.NRGBA{0x14, 0x15, 0x18, 0xff}}, true
	case colourPaper:
		return pair{color.NRGBA{0xf6, 0xf7, 0xf9, 0xff}, color.NRGBA{0x12, 0x13, 0x16, 0xff}}, true
	case theme.ColorNameInputBackground:
		return pair{color.NRGBA{0xf6, 0xf7, 0xf9, 0xff}, color.NRGBA{0x12, 0x13, 0x16, 0xff}}, true
	case theme.ColorNameInputBorder:
		return pair{color.NRGBA{0x8a, 0x92, 0x9e, 0xff}, color.NRGBA{0x6c, 0x74, 0x80, 0xff}}, true
	case colourNote:
		return pair{color.NRGBA{0xff, 0xf4, 0xd6, 0xff}, color.NRGBA{0x3a, 0x2f, 0x12, 0xff}}, true
	case colourOption:
		return pair{color.NRGBA{0x6a, 0x3f, 0xa0, 0xff}, color.NRGBA{0xc8, 0xa6, 0xff, 0xff}}, true
	case colourName:
		return pair{color.NRGBA{0x00, 0x63, 0x6b, 0xff}, color.NRGBA{0x5f, 0xd3, 0xdc, 0xff}}, true
	case colourExpansion:
		return pair{color.NRGBA{0xa0, 0x1f, 0x7a, 0xff}, color.NRGBA{0xff, 0x9a, 0xdd, 0xff}}, true
	case theme.ColorNameForeground:
		return pair{color.NRGBA{0x1c, 0x1f, 0x24, 0xff}, color.NRGBA{0xee, 0xef, 0xf1, 0xff}}, true
	case theme.ColorNameDisabled:
		return pair{color.NRGBA{0x5a, 0x61, 0x6b, 0xff}, color.NRGBA{0xa2, 0xa8, 0xb2, 0xff}}, true
	case theme.ColorNamePlaceHolder:
		return pair{color.NRGBA{0x56, 0x5d, 0x67, 0xff}, color.NRGBA{0xaa, 0xb0, 0xba, 0xff}}, true
	case theme.ColorNamePrimary, theme.ColorNameHyperlink:
		return pair{color.NRGBA{0x1a, 0x56, 0xb0, 0xff}, color.NRGBA{0x7f, 0xb2, 0xff, 0xff}}, true
	case theme.ColorNameSuccess:
		return pair{color.NRGBA{0x17, 0x6b, 0x2f, 0xff}, color.NRGBA{0x6c, 0xd0, 0x86, 0xff}}, true
	case theme.ColorNameWarning:
		return pair{color.NRGBA{0x8a, 0x4b, 0x00, 0xff}, color.NRGBA{0xff, 0xb8, 0x4d, 0xff}}, true
	case theme.ColorNameError:
		return pair{color.NRGBA{0xb3, 0x1d, 0x28, 0xff}, color.NRGBA{0xff, 0x93, 0x8c, 0xff}}, true
	case theme.ColorNameForegroundOnPrimary, theme.ColorNameForegroundOnSuccess,
		theme.ColorNameForegroundOnWarning, theme.ColorNameForegroundOnError:
		return pair{grey(0xff), color.NRGBA{0x10, 0x11, 0x14, 0xff}}, true
	case theme.ColorNameButton, theme.ColorNameDisabledButton:
		return pair{color.NRGBA{0xe6, 0xe9, 0xee, 0xff}, color.NRGBA{0x2e, 0x31, 0x38, 0xff}}, true
	case theme.ColorNameSelection:
		return pair{color.NRGBA{0xd3, 0xe3, 0xfa, 0xff}, color.NRGBA{0x23, 0x3a, 0x5c, 0xff}}, true
	case theme.ColorNameHover:
		return pair{color.NRGBA{0xe4, 0xeb, 0xf5, 0xff}, color.NRGBA{0x2a, 0x2d, 0x34, 0xff}}, true
	case theme.ColorNameSeparator:
		return pair{color.NRGBA{0xd5, 0xd9, 0xe0, 0xff}, color.NRGBA{0x33, 0x36, 0x3d, 0xff}}, true
	}
	return pair{}, false
}

// dense is the theme inside lists: little space around what is read in rows.
type dense struct {
	fyne.Theme
	padding, inner float32
	quiet          bool // rows are text: neither hovered nor selected
}

func (d dense) Size(name fyne.ThemeSizeName) float32 {
	switch name {
	case theme.SizeNamePadding:
		return d.padding
	case theme.SizeNameInnerPadding:
		return d.inner
	}
	return d.Theme.Size(name)
}

func (d dense) Color(name fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if d.quiet && (name == theme.ColorNameHover || name == theme.ColorNameSelection) {
		return color.Transparent
	}
	return d.Theme.Color(name, v)
}

// colour is a theme colour now. UI thread only.
func colour(name fyne.ThemeColorName) color.Color {
	app := fyne.CurrentApp().Settings()
	return app.Theme().Color(name, app.ThemeVariant())
}
