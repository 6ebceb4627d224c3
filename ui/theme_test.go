package ui

import (
	"image/color"
	"math"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestEveryTextColourIsReadableOnEveryBackgroundItIsDrawnOn(t *testing.T) {
	text := []fyne.ThemeColorName{
		theme.ColorNameForeground, theme.ColorNameDisabled, theme.ColorNamePlaceHolder,
		theme.ColorNamePrimary, theme.ColorNameSuccess, theme.ColorNameWarning, theme.ColorNameError,
		colourOption, colourName, colourExpansion,
	}
	ground := []fyne.ThemeColorName{
		theme.ColorNameBackground, theme.ColorNameOverlayBackground, theme.ColorNameSelection,
		theme.ColorNameHover, theme.ColorNameButton, theme.ColorNameDisabledButton,
		theme.ColorNameInputBackground, colourRail, colourPaper, colourNote,
	}
	th := NewTheme()
	for name, v := range map[string]fyne.ThemeVariant{"light": theme.VariantLight, "dark": theme.VariantDark} {
		for _, fg := range text {
			for _, bg := range ground {
				if r := contrast(th.Color(fg, v), th.Color(bg, v)); r < 4.5 {
					t.Errorf("%s: %s on %s has %.2f:1, want 4.5:1", name, fg, bg, r)
				}
			}
		}
		on := map[fyne.ThemeColorName]fyne.ThemeColorName{
			theme.ColorNameForegroundOnPrimary: theme.ColorNamePrimary,
			theme.ColorNameForegroundOnSuccess: theme.ColorNameSuccess,
			theme.ColorNameForegroundOnWarning: theme.ColorNameWarning,
			theme.ColorNameForegroundOnError:   theme.ColorNameError,
		}
		for fg, bg := range on {
			if r := contrast(th.Color(fg, v), th.Color(bg, v)); r < 4.5 {
				t.Errorf("%s: %s has %.2f:1, want 4.5:1", name, fg, r)
			}
		}
	}
}
