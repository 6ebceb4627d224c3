package ui

import (
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"countersign/worker/safetext"
)

// unit returns the length of what stands at the beginning of s and is never
// divided: a mark of safetext, or a character.
func unit(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	if strings.HasPrefix(s, "‹") {
		if end := strings.Index(s[:min(len(s), safetext.LongestMark)], "›"); end > 0 {
			return end + len("›")
		}
	}
	return n
}

// wholeMarks leaves out a mark that s ends in the middle of.
func wholeMarks(s string) string {
	if open := strings.LastIndex(s, "‹"); open > strings.LastIndex(s, "›") {
		return s[:open]
	}
	return s
}

// cut returns where the row that begins at from ends: at most cols cells on.
// What is not Latin may be twice as wide as a cell, so it counts twice: a row
// may come out short, never cut off.
func cut(s string, from, cols int) int {
	i, cells := from, 0
	for i < len(s) {
		n, w := 1, 1
		if s[i] >= utf8.RuneSelf {
			n = unit(s[i:])
			w = cellsOf(s[i : i+n])
		}
		if cells += w; cells > cols && i > from {
			return i
		}
		i += n
	}
	return i
}

func cellsOf(s string) int {
	n := 0
	for _, r := range s {
		if n++; r >= 0x250 {
			n++
		}
	}
	return n
}

// cutWords returns where the row that begins at from ends: as many words as have
// room, or as much of one word.
func cutWords(s string, from int, width float32, advance func(rune) float32) int {
	end, x := 0, float32(0)
	for i := from; i < len(s); {
		n := unit(s[i:])
		for _, r := range s[i : i+n] {
			x += advance(r)
		}
		space := s[i] == ' '
		if x > width && i > from && !space {
			if end > from {
				return end
			}
			return i
		}
		if i += n; space {
			end = i
		}
	}
	return len(s)
}

// letter is a character in a style.
type letter struct {
	r    rune
	bold bool
}

// advances returns how wide characters are in a style that is not of a fixed
// width, rounded up. Their sum is what a text takes, or a little more.
func (t *textView) advances(style fyne.TextStyle) func(rune) float32 {
	return func(r rune) float32 {
		at := letter{r, style.Bold}
		w, ok := t.wide[at]
		if !ok {
			// Ten of them, since a measure is of whole pixels.
			w = fyne.MeasureText(strings.Repeat(string(r), 10), theme.TextSize(), style).Width / 10
			t.wide[at] = w
		}
		return w
	}
}
