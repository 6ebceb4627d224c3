// Package safetext makes untrusted text safe to draw and to print. Commands,
// paths, output and messages of a harness pass through it on their way to a
// window or a terminal, and nowhere else: what runs, what is stored and what is
// reported stays as it was.
//
// What could hide, move or imitate other text becomes a visible mark between
// ‹ and ›, and those two characters become marks themselves, so that text
// cannot forge one. Nothing else about the text changes: two different texts
// never look the same.
//
//	‹ESC› ‹TAB› ‹LF› ‹CR› ‹NUL› ‹BEL› ‹BS› ‹DEL›   controls with a common name
//	‹NBSP›                                         a space that is not one
//	‹U+202E›                                       any other character that is not drawn:
//	                                               controls, format characters, separators,
//	                                               unusual spaces, fillers, variation
//	                                               selectors, tags, private and unassigned
//	                                               characters, and combining marks with
//	                                               nothing to stand on or piled too high
//	‹0xff›                                         a byte that is not UTF-8
//	‹RTL›                                          ends a word written right to left
//
// Letters of right-to-left scripts stay readable. A word of them is followed by
// ‹RTL›, whose Latin letters keep a terminal that reorders text (Unicode
// UAX #9) from moving anything but the letters inside that word.
//
// The cost is linear in the length of the text.
package safetext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCombining is how many combining marks one character may carry. Written
// languages need up to four; floods of them paint over neighbouring lines.
const maxCombining = 4

// Line returns s safe to draw on one line. The result has no line break.
func Line(s string) string {
	if isPlain(s, false) {
		return s
	}
	return escape(s, false)
}

// Block returns s safe to draw on several lines: as Line, but line feeds stay.
func Block(s string) string {
	if isPlain(s, true) {
		return s
	}
	return escape(s, true)
}

// Clip returns the beginning of Line(s), at most max characters with the "…"
// that tells that something is missing. Marks are never cut in two. It is for
// rows of lists: what is decided on is shown whole, by Line or Block.
func Clip(s string, max int) string {
	if max <= 0 {
		return ""
	}
	var (
		w     writer
		runes int // characters written
		fits  int // length in bytes of what still leaves room for "…"
	)
	for s != "" {
		before := w.Len()
		s = s[w.next(s, false):]
		if s == "" {
			w.endRightToLeft()
		}
		runes += utf8.RuneCountInString(w.String()[before:])
		if runes > max {
			return w.String()[:fits] + "…"
		}
		if runes < max {
			fits = w.Len()
		}
	}
	return w.String()
}

// isPlain reports whether nothing in s needs a mark: the common case, in which
// s is returned as it is.
func isPlain(s string, newlines bool) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < ' ' || c > '~') && (c != '\n' || !newlines) {
			return false
		}
	}
	return true
}

func escape(s string, newlines bool) string {
	var w writer
	w.Grow(len(s) + len(s)/8)
	for s != "" {
		s = s[w.next(s, newlines):]
	}
	w.endRightToLeft()
	return w.String()
}

// writer is the safe text so far, and what the next character depends on.
type writer struct {
	strings.Builder
	combining   int  // marks that a combining mark may still join; 0 without a base
	rightToLeft bool // inside a word written right to left
}

// next writes the first character of s, or its mark, and returns its length.
func (w *writer) next(s string, newlines bool) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r > ' ' && r < 0x7f: // most text
		w.endRightToLeft()
		w.WriteByte(s[0])
		w.combining = maxCombining
	case r == utf8.RuneError && size == 1:
		w.mark(fmt.Sprintf("0x%02x", s[0]))
	case r == '\n' && newlines:
		w.endRightToLeft()
		w.WriteByte('\n')
		w.combining = 0
	case r == ' ':
		w.endRightToLeft()
		w.WriteByte(' ')
		w.combining = 0
	case !isDrawn(r):
		w.mark(name(r))
	case joins(r):
		if w.combining == 0 {
			w.mark(name(r))
			break
		}
		w.combining--
		w.WriteString(s[:size])
	default:
		if !isRightToLeft(r) {
			w.endRightToLeft()
		} else {
			w.rightToLeft = true
		}
		w.WriteString(s[:size])
		w.combining = maxCombining
	}
	return size
}

func (w *writer) mark(text string) {
	w.endRightToLeft()
	w.WriteString("‹" + text + "›")
	w.combining = 0
}

func (w *writer) endRightToLeft() {
	if w.rightToLeft {
		w.rightToLeft = false
		w.WriteString("‹RTL›")
		w.combining = 0
	}
}

// isDrawn reports whether fonts draw r as something to see. Unicode counts a
// few characters as letters or symbols that are blank or not meant to be seen.
func isDrawn(r rune) bool {
	switch r {
	case '‹', '›': // ours
		return false
	case '\u034f', // combining grapheme joiner
		'\u115f', '\u1160', '\u3164', '\uffa0', // Hangul fillers
		'\u17b4', '\u17b5', // Khmer inherent vowels
		'\u2800',                   // braille blank
		'\ufffc',                   // object replacement
		'\U0001d159',               // musical null notehead
		'\U00013441', '\U00013442': // Egyptian blanks
		return false
	}
	if unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

// joins reports whether r is drawn into the character before it: combining
// marks, and the vowels and final consonants of decomposed Hangul.
func joins(r rune) bool {
	return unicode.Is(unicode.M, r) || r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff
}

// isRightToLeft reports whether r lies in a block of a right-to-left script:
// its bidirectional class may be R, AL or AN.
func isRightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff ||
		r >= 0xfb1d && r <= 0xfdff ||
		r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff ||
		r >= 0x1e800 && r <= 0x1efff
}

func name(r rune) string {
	switch r {
	case 0:
		return "NUL"
	case '\a':
		return "BEL"
	case '\b':
		return "BS"
	case '\t':
		return "TAB"
	case '\n':
		return "LF"
	case '\r':
		return "CR"
	case 0x1b:
		return "ESC"
	case 0x7f:
		return "DEL"
	case 0xa0:
		return "NBSP"
	}
	return fmt.Sprintf("U+%04X", r)
}
