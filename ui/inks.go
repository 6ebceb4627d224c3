package ui

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2/theme"

	"countersign/worker/policy"
)

// markInk is how safetext's marks are drawn, which stand for what cannot be.
var markInk = ink{Tone: theme.ColorNameWarning, Bold: true}

// inkOf is how a stretch of a command is drawn. Nothing is told by a colour
// alone: what runs and what joins is bold, what writes or is replaced underlined,
// and quotes and signs are there to be seen.
func inkOf(kind policy.Token) (ink, bool) {
	switch kind {
	case policy.TokenProgram:
		return ink{Tone: theme.ColorNamePrimary, Bold: true}, true
	case policy.TokenOption:
		return ink{Tone: colourOption}, true
	case policy.TokenString:
		return ink{Tone: theme.ColorNameSuccess}, true
	case policy.TokenOperator:
		return ink{Tone: theme.ColorNameError, Bold: true}, true
	case policy.TokenRedirect:
		return ink{Tone: theme.ColorNameWarning, Under: true}, true
	case policy.TokenAssignment:
		return ink{Tone: colourName, Under: true}, true
	case policy.TokenExpansion:
		return ink{Tone: colourExpansion, Bold: true, Under: true}, true
	case policy.TokenComment:
		return ink{Tone: theme.ColorNamePlaceHolder}, true
	}
	return ink{}, false
}

// inked gives the lines of a text the inks of its spans. The lines are those of
// safetext.Block: one for each line of the text, with other characters in it
// where the text cannot be drawn as it is.
func inked(lines []textLine, text string, spans []policy.Span) {
	start, next := 0, 0
	for n := range lines {
		raw, _, _ := strings.Cut(text[start:], "\n")
		runs, ok := align(raw, lines[n].Text)
		for next < len(spans) && spans[next].End <= start {
			next++
		}
		if ok {
			lines[n].Inks = lineInks(runs, start, spans[next:])
		}
		start += len(raw) + 1
		if start > len(text) {
			return
		}
	}
}

// run is a stretch of a line, and what is shown of it. It is drawn as it is,
// character by character, or stands for it as a whole.
type run struct {
	raw, shown int // where it begins
	rawLen     int
	shownLen   int
	mark       bool
	blank      bool // spaces and tabs
}

// lineInks makes inks of the spans of a line that begins at start, and of the
// marks in it.
func lineInks(runs []run, start int, spans []policy.Span) (inks []ink) {
	add := func(from, to int, i ink) {
		if from < to {
			i.From, i.To = from, to
			inks = append(inks, i)
		}
	}
	for _, r := range runs {
		if r.mark {
			add(r.shown, r.shown+r.shownLen, markInk)
			continue
		}
		from, to := start+r.raw, start+r.raw+r.rawLen
		for len(spans) > 0 && spans[0].End <= from {
			spans = spans[1:]
		}
		for _, s := range spans {
			if s.Start >= to {
				break
			}
			i, ok := inkOf(s.Kind)
			switch {
			case !ok:
			case r.blank:
				if s.Start <= from && s.End >= to {
					add(r.shown, r.shown+r.shownLen, i)
				}
			default:
				add(r.shown+max(s.Start-from, 0), r.shown+min(s.End-from, r.rawLen), i)
			}
		}
	}
	return inks
}

// align finds which part of a safe line stands for which part of the line. It
// reports false where it cannot tell, and then nothing is coloured: the text is
// shown in any case.
func align(raw, shown string) (runs []run, ok bool) {
	if raw == shown {
		return []run{{rawLen: len(raw), shownLen: len(shown)}}, true
	}
	i, j := 0, 0
	for j < len(shown) {
		r := run{raw: i, shown: j}
		switch {
		case strings.HasPrefix(shown[j:], "‹"):
			end := strings.Index(shown[j:], "›")
			if end < 0 {
				return nil, false
			}
			r.mark, r.shownLen = true, end+len("›")
			if r.rawLen, ok = behind(shown[j+len("‹"):j+end], raw[i:]); !ok {
				return nil, false
			}
		case shown[j] == ' ' || strings.HasPrefix(shown[j:], "⇥"):
			r.blank = true
			r.shownLen = len(shown[j:]) - len(strings.TrimLeft(shown[j:], " ⇥"))
			r.rawLen = len(raw[i:]) - len(strings.TrimLeft(raw[i:], " \t"))
		default:
			n := plainLength(shown[j:])
			if n == 0 || !strings.HasPrefix(raw[i:], shown[j:j+n]) {
				return nil, false
			}
			r.rawLen, r.shownLen = n, n
		}
		runs = append(runs, r)
		i, j = i+r.rawLen, j+r.shownLen
	}
	return runs, i == len(raw)
}

// plainLength is how much of a safe text comes before a mark or blanks.
func plainLength(s string) int {
	n := strings.IndexAny(s, " ‹⇥")
	if n < 0 {
		return len(s)
	}
	return n
}

// behind is the length of what a mark stands for at the beginning of raw: nothing
// for those that say something of the word before.
func behind(name, raw string) (n int, ok bool) {
	count, what := 1, name
	if number, rest, found := strings.Cut(name, "×"); found {
		count, _ = strconv.Atoi(number)
		what = rest
	}
	if number, found := strings.CutSuffix(name, " combining"); found {
		count, _ = strconv.Atoi(number)
		what = "U+"
	}
	switch {
	case strings.HasPrefix(what, "0x"):
		return count, count > 0 && count <= len(raw)
	case strings.HasPrefix(what, "U+"), controls[what]:
		for range count {
			_, size := utf8.DecodeRuneInString(raw[n:])
			if size == 0 {
				return 0, false
			}
			n += size
		}
		return n, count > 0
	}
	return 0, true
}

// controls are the names of characters among the marks.
var controls = map[string]bool{"ESC": true, "TAB": true, "LF": true, "CR": true, "NUL": true, "BEL": true, "BS": true,
	"DEL": true, "NBSP": true, "SP": true}

// markInks finds the marks in a safe line.
func markInks(shown string) (inks []ink) {
	for at := 0; ; {
		open := strings.Index(shown[at:], "‹")
		if open < 0 {
			return inks
		}
		end := strings.Index(shown[at+open:], "›")
		if end < 0 {
			return inks
		}
		i := markInk
		i.From, i.To = at+open, at+open+end+len("›")
		inks = append(inks, i)
		at = i.To
	}
}
