// Package safetext makes untrusted text safe to draw and to print. Commands,
// paths, output and messages of a harness pass through it on their way to a
// window or a terminal, and nowhere else: what runs, what is stored and what is
// reported stays as it was.
//
// What could hide, move or imitate other text becomes a visible mark between
// ‹ and ›, and those two characters become marks themselves, so that text
// cannot forge one. Nothing else about the text changes: two different texts
// never look the same, but for the combining marks of a flood, which are only
// counted.
//
//	‹ESC› ‹TAB› ‹LF› ‹CR› ‹NUL› ‹BEL› ‹BS› ‹DEL›   controls with a common name
//	‹NBSP›                                         a space that is not one
//	‹U+202E›                                       any other character that is not drawn:
//	                                               controls, format characters, separators,
//	                                               unusual spaces, fillers, variation
//	                                               selectors, tags, private and unassigned
//	                                               characters, combining marks with nothing
//	                                               to stand on; and signs that look like
//	                                               one of ASCII
//	‹0xff›                                         a byte that is not UTF-8
//	‹12×U+200B›                                    the same one, so many times
//	‹SP› ‹9×SP›                                    blanks at the end, and long gaps
//	‹96 combining›                                 combining marks piled too high
//	‹Latin+Cyrillic›                               after a word with letters of several scripts
//	‹Cyrillic›                                     after a word that looks like a Latin one
//	‹RTL›                                          ends a word written right to left
//
// A gap is long from 8 blanks on in a Line and from 24 columns on in a Block,
// whose lines may be indented by up to 40. A Block draws a tab that stands
// before something as ⇥ and blanks up to the next stop, which makes indented
// text readable and still tells tabs from spaces: a ⇥ in the text is a mark.
//
// Letters of right-to-left scripts stay readable. A word of them is followed by
// ‹RTL›, whose Latin letters keep a terminal that reorders text (Unicode
// UAX #9) from moving anything but the letters inside that word.
//
// The cost is linear in the length of the text, and so is the length of what
// comes out: at most 16 bytes for each that went in.
package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// LongestMark is a length in bytes that no mark exceeds, for those who divide
// what this package returns.
const LongestMark = 96

const (
	// maxCombining is how many combining marks one character may carry. Written
	// languages need up to four; floods of them paint over neighbouring lines.
	maxCombining = 4

	// fewMarks is how many combining marks too many are named one by one.
	fewMarks = 3

	// maxBlanks is how many blanks in a row a Line may have before they are
	// counted.
	maxBlanks = 7

	// maxGap and maxIndent are the same for a Block, in columns: inside a line,
	// for tables and comments that are aligned, and before it begins.
	maxGap    = 23
	maxIndent = 40

	indentStop = 4 // columns from one tab to the next in an indentation
	gapStop    = 8 // and after it, as in terminals
)

// Line returns s safe to draw on one line. The result has no line break.
func Line(s string) string { return render(s, false) }

// Block returns s safe to draw on several lines: as Line, but line feeds stay,
// and blanks may be those of indented and aligned text.
func Block(s string) string { return render(s, true) }

func render(s string, block bool) string {
	if isPlain(s, block) {
		return s
	}
	w := writer{block: block, afterBlank: true}
	w.Grow(len(s) + len(s)/8)
	w.all(s)
	return w.String()
}

// Clip returns the beginning of Line(s), at most max characters with the "…"
// that tells that something is missing. Marks are never cut in two. It is for
// rows of lists: what is decided on is shown whole, by Line or Block.
func Clip(s string, max int) string {
	if max <= 0 {
		return ""
	}
	var (
		w     = writer{afterBlank: true}
		runes int // characters written
		fits  int // length in bytes of what still leaves room for "…"
	)
	for s != "" {
		before := w.Len()
		s = s[w.next(s):]
		if s == "" {
			w.end()
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
func isPlain(s string, block bool) bool {
	blanks := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ':
			if blanks++; blanks > maxBlanks {
				return false // perhaps
			}
		case c > ' ' && c <= '~':
			blanks = 0
		case c == '\n' && block && blanks == 0:
		default:
			return false
		}
	}
	return blanks == 0
}

// writer is the safe text so far, and what the next character depends on.
type writer struct {
	strings.Builder
	block       bool
	column      int  // characters of this line so far
	afterBlank  bool // or at the beginning of a line
	base        bool // a combining mark has something to stand on
	rightToLeft bool // inside a word written right to left
	word        word
	found       *finds // nil: nobody asked
}

func (w *writer) all(s string) {
	for s != "" {
		s = s[w.next(s):]
	}
	w.end()
}

// next writes the first character of s, or its mark, with those like it that
// follow, and returns the length of what it wrote of s.
func (w *writer) next(s string) int {
	switch c := s[0]; {
	case c > ' ' && c < 0x7f: // most text
		w.ascii(c)
		return 1
	case c == '\n' && w.block:
		w.end()
		w.WriteByte('\n')
		w.column, w.afterBlank, w.base = 0, true, false
		return 1
	case c == ' ' || c == '\t':
		return w.blanks(s)
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return w.repeated(s, fmt.Sprintf("0x%02x", s[0]), Invalid)
	case !isDrawn(r):
		return w.repeated(s, name(r), w.kindOf(r))
	case joins(r):
		return w.joining(s)
	}
	w.other(r, s[:size])
	return size
}

// put writes what is drawn as it is, n characters.
func (w *writer) put(s string, n int) {
	w.WriteString(s)
	w.column += n
}

func (w *writer) ascii(c byte) {
	w.endRightToLeft()
	switch {
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		w.word.add(latin(), false, w.afterBlank)
	case c >= '0' && c <= '9' || c == '_':
	default:
		w.endWord()
	}
	w.WriteByte(c)
	w.column++
	w.base, w.afterBlank = true, false
}

// other writes a character that is not of ASCII and that is drawn.
func (w *writer) other(r rune, s string) {
	if !isRightToLeft(r) {
		w.endRightToLeft()
	}
	if isLetter(r) {
		script, imitates := scriptOf(r)
		w.word.add(script, imitates, w.afterBlank)
	} else if !isDigit(r) {
		w.endWord()
	}
	w.rightToLeft = isRightToLeft(r)
	w.put(s, 1)
	w.base, w.afterBlank = true, false
}

// joining writes combining marks: those that one character may carry as they
// are, and the others as marks, only counted when they are many.
func (w *writer) joining(s string) int {
	n, marks, carried := 0, 0, 0
	if w.base {
		carried = maxCombining
	}
	var extra []rune
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !joins(r) || !isDrawn(r) {
			break
		}
		if marks < carried {
			w.WriteString(s[n : n+size])
		} else if len(extra) < fewMarks {
			extra = append(extra, r)
		}
		n += size
		marks++
	}
	switch more := marks - carried; {
	case more > fewMarks:
		w.find(Combining, more)
		w.mark(strconv.Itoa(more) + " combining")
	case more > 0:
		w.find(Combining, more)
		for _, r := range extra {
			w.mark(name(r))
		}
	}
	return n
}

// repeated writes one mark for what s begins with and for all that follow and
// are the same.
func (w *writer) repeated(s, name string, kind Kind) int {
	first, size := utf8.DecodeRuneInString(s)
	n, count := size, 1
	for n < len(s) {
		r, next := utf8.DecodeRuneInString(s[n:])
		if r != first || next != size || s[n] != s[0] {
			break
		}
		n += size
		count++
	}
	w.find(kind, count)
	w.mark(times(count, name))
	return n
}

func times(n int, name string) string {
	if n == 1 {
		return name
	}
	return strconv.Itoa(n) + "×" + name
}

// blanks writes the spaces and tabs that s begins with.
func (w *writer) blanks(s string) int {
	n := len(s) - len(strings.TrimLeft(s, " \t"))
	run := s[:n]
	w.end()
	switch {
	case n == len(s), w.block && s[n] == '\n':
		w.find(Trailing, 1)
		w.countBlanks(run, 0)
	case !w.block:
		w.countBlanks(run, maxBlanks)
	case w.isGap(run):
		w.find(Gap, 1)
		w.countBlanks(run, 0)
	default:
		w.drawBlanks(run)
	}
	w.base, w.afterBlank = false, true
	return n
}

// countBlanks writes blanks as marks, but for at most few spaces in a row.
func (w *writer) countBlanks(run string, few int) {
	for run != "" {
		n := len(run) - len(strings.TrimLeft(run, run[:1]))
		switch {
		case run[0] == '\t':
			w.mark(times(n, "TAB"))
		case n <= few:
			w.put(run[:n], n)
		default:
			w.mark(times(n, "SP"))
		}
		run = run[n:]
	}
}

// isGap reports whether blanks are more than text is indented or aligned by.
func (w *writer) isGap(run string) bool {
	most := maxGap
	if w.column == 0 {
		most = maxIndent
	}
	at := w.column
	for i := 0; i < len(run) && at-w.column <= most; i++ {
		at = after(run[i], w.column, at)
	}
	return at-w.column > most
}

// after returns the column that follows a blank at a column, in a run of them that began
// at start.
func after(blank byte, start, at int) int {
	switch {
	case blank == ' ':
		return at + 1
	case start == 0:
		return at + indentStop - at%indentStop
	}
	return at + gapStop - at%gapStop
}

func (w *writer) drawBlanks(run string) {
	at := w.column
	for i := range len(run) {
		to := after(run[i], w.column, at)
		if run[i] == '\t' {
			w.WriteString("⇥" + strings.Repeat(" ", to-at-1))
		} else {
			w.WriteByte(' ')
		}
		at = to
	}
	w.column = at
}

func (w *writer) mark(text string) {
	w.end()
	w.put("‹"+text+"›", utf8.RuneCountInString(text)+2)
	w.base, w.afterBlank = false, false
}

// end ends the word that is being written.
func (w *writer) end() {
	w.endWord()
	w.endRightToLeft()
}

func (w *writer) endRightToLeft() {
	if w.rightToLeft {
		w.rightToLeft = false
		w.find(RightToLeft, 1)
		w.put("‹RTL›", 5)
		w.base = false
	}
}
