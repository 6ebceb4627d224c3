package safetext

import (
	"fmt"
	"unicode"
)

// isDrawn reports whether fonts draw r as something to see, and as itself.
// Unicode counts a few characters as letters or symbols that are blank or not
// meant to be seen.
func isDrawn(r rune) bool {
	switch r {
	case '‹', '›', '⇥': // ours
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
	if looksASCII(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

// looksASCII reports whether r is a sign that is drawn like one that shells and
// paths give a meaning. The wide ones of East Asian text are wide.
func looksASCII(r rune) bool {
	switch r {
	case '\u2024', '\ua4f8', // .
		'\u2044', '\u2215', '\u29f8', // /
		'\u2216', '\u29f5', '\u29f9', // \
		'\u037e',                               // ;
		'\u2236', '\ua789', '\u02d0', '\u05c3', // :
		'\u01c0', '\u2223', '\u2758', // |
		'\u01c3',           // !
		'\u1fef', '\u02cb', // `
		'\u2010', '\u2011', '\u02d7': // -
		return true
	}
	return r >= 0xfe50 && r <= 0xfe6b // small forms
}

// joins reports whether r is drawn into the character before it: combining
// marks, and the vowels and final consonants of decomposed Hangul.
func joins(r rune) bool {
	return unicode.Is(unicode.M, r) || r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff
}

func isLetter(r rune) bool { return unicode.In(r, unicode.L, unicode.Nl) }

func isDigit(r rune) bool { return unicode.Is(unicode.Nd, r) }

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

// kindOf says why a character that is not drawn is a mark, if that is counted.
func (w *writer) kindOf(r rune) Kind {
	switch {
	case w.found == nil:
		return 0
	case r == '‹' || r == '›' || r == '⇥':
		return Own
	case r == '\r':
		return Return
	case r == '\n', r == '\v', r == '\f', r == 0x85, unicode.In(r, unicode.Zl, unicode.Zp):
		return Separator
	case unicode.Is(unicode.Bidi_Control, r):
		return Direction
	case unicode.Is(unicode.Cc, r):
		return Control
	case unicode.Is(unicode.Zs, r):
		return Blank
	case looksASCII(r):
		return Imitation
	case unicode.Is(unicode.Co, r), !unicode.In(r, unicode.C, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return Undefined
	}
	return Invisible
}
