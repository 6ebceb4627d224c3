package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const (
	// maxCompared is how large a file may be to be compared, in bytes, and
	// maxLines how many lines it may have.
	maxCompared = 16 << 20
	maxLines    = 500_000

	// aroundHunk is how many lines that stay are shown around those that do not.
	aroundHunk = 3
)

// Shape says what a write does to what is there.
type Shape string

// What a write can do.
const (
	ShapeNew    Shape = "a new file"
	ShapeSame   Shape = "no change"
	ShapeLines  Shape = "lines change"   // Hunks tells which
	ShapeWhole  Shape = "replaced whole" // not told line by line: Why
	ShapeBinary Shape = "binary"         // what is there, or what is written
)

// Diff is what a write changes. The new content as a whole is the task's.
type Diff struct {
	Shape   Shape  // "" if the write cannot be done
	Why     string // ShapeWhole only
	Hunks   []Hunk // ShapeLines only
	Removed int    // lines in Hunks
	Added   int
}

// Hunk is a stretch of lines that change, with a few around it that stay.
type Hunk struct {
	OldLine, NewLine int // where it begins, from 1 on
	Lines            []DiffLine
}

// DiffLine is one line of a Hunk: text for safetext.
type DiffLine struct {
	Op   Op
	Text string // without its line feed; a carriage return before that is part of it
	Open bool   // it is the last one and not ended by a line feed
}

// Op says what becomes of a line, as a unified diff spells it.
type Op byte

// What becomes of a line.
const (
	Stays   Op = ' '
	Removed Op = '-'
	Added   Op = '+'
)

// inspect notes what a content is.
func (f *File) inspect(content string) {
	sum := sha256.Sum256([]byte(content))
	f.SHA256 = hex.EncodeToString(sum[:])
	f.Binary = strings.IndexByte(content, 0) >= 0 || !utf8.ValidString(content)
	if f.Binary || content == "" {
		return
	}
	f.Lines, f.CRLF = strings.Count(content, "\n"), strings.Count(content, "\r\n")
	if f.Open = !strings.HasSuffix(content, "\n"); f.Open {
		f.Lines++
	}
}

var tooLarge = fmt.Sprintf("it is too large to be compared: more than %d MB", maxCompared>>20)

// compare tells what a write changes. before and after are the contents.
func compare(ctx context.Context, was, will *File, before, after string) Diff {
	switch {
	case before == after:
		return Diff{Shape: ShapeSame}
	case was.Binary || will.Binary:
		return Diff{Shape: ShapeBinary}
	case max(len(before), len(after)) > maxCompared:
		return Diff{Shape: ShapeWhole, Why: tooLarge}
	case max(was.Lines, will.Lines) > maxLines:
		return Diff{Shape: ShapeWhole, Why: fmt.Sprintf("it has too many lines to be compared: more than %d", maxLines)}
	}
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	edits, err := lineEdits(ctx, trimEmpty(a), trimEmpty(b))
	if err != nil {
		return Diff{Shape: ShapeWhole, Why: err.Error()}
	}
	d := Diff{Shape: ShapeLines}
	d.fill(trimEmpty(a), trimEmpty(b), edits)
	return d
}

// trimEmpty leaves out what SplitAfter finds after the last line feed.
func trimEmpty(lines []string) []string {
	if last := len(lines) - 1; lines[last] == "" {
		return lines[:last]
	}
	return lines
}

// lineEdits returns the stretches of lines in which a and b differ, in order.
//
// The library gives up on stretches with more than some 100 changes and calls
// them replaced. So lines that are in each text once, and in the same order in
// both, hold the texts together, and it sees only what lies between them. Its
// time for that is at most proportional to the number of lines.
func lineEdits(ctx context.Context, a, b []string) (edits []lcs.Diff, err error) {
	defer func() {
		if p := recover(); p != nil {
			edits, err = nil, fmt.Errorf("it could not be compared: %v", p)
		}
	}()
	start, end := alike(a, b)
	x, y, kinds := numbered(a[start:len(a)-end], b[start:len(b)-end])
	atX, atY := 0, 0
	for i, p := range append(anchors(x, y, kinds), pair{len(x), len(y)}) {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("the comparison was stopped: %s", cause(ctx))
		}
		for _, d := range between(x[atX:p.x], y[atY:p.y]) {
			dx, dy := start+atX, start+atY
			edits = append(edits, lcs.Diff{Start: dx + d.Start, End: dx + d.End, ReplStart: dy + d.ReplStart, ReplEnd: dy + d.ReplEnd})
		}
		atX, atY = p.x+1, p.y+1
	}
	return edits, nil
}

// between compares what lies between two lines that hold the texts together.
// Most often little does, and the library's tables cost more than to look.
func between(x, y []rune) []lcs.Diff {
	start, end := alike(x, y)
	x, y = x[start:len(x)-end], y[start:len(y)-end]
	switch {
	case len(x) == 0 && len(y) == 0:
		return nil
	case len(x) == 0 || len(y) == 0 || len(x) == 1 && len(y) == 1:
		return []lcs.Diff{{Start: start, End: start + len(x), ReplStart: start, ReplEnd: start + len(y)}}
	}
	diffs := lcs.DiffRunes(x, y)
	for i := range diffs {
		d := &diffs[i]
		d.Start, d.End, d.ReplStart, d.ReplEnd = d.Start+start, d.End+start, d.ReplStart+start, d.ReplEnd+start
	}
	return diffs
}

// alike returns how many elements a and b begin with, and then end with, alike.
func alike[T comparable](a, b []T) (start, end int) {
	n := min(len(a), len(b))
	for start < n && a[start] == b[start] {
		start++
	}
	for end < n-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return start, end
}

// numbered gives equal lines equal numbers, from 0 to kinds-1.
func numbered(a, b []string) (x, y []rune, kinds int) {
	numbers := make(map[string]rune, len(a))
	number := func(lines []string) []rune {
		of := make([]rune, len(lines))
		for i, line := range lines {
			n, ok := numbers[line]
			if !ok {
				n = rune(len(numbers))
				numbers[line] = n
			}
			of[i] = n
		}
		return of
	}
	x, y = number(a), number(b)
	return x, y, len(numbers)
}

// pair is a line that is in both texts, by its places.
type pair struct{ x, y int }

// anchors returns the most lines that are in each text once and that come in the
// same order in both.
func anchors(x, y []rune, kinds int) []pair {
	inX, inY, placeY := make([]uint8, kinds), make([]uint8, kinds), make([]int32, kinds)
	for _, n := range x {
		inX[n] = min(inX[n]+1, 2)
	}
	for i, n := range y {
		inY[n] = min(inY[n]+1, 2)
		placeY[n] = int32(i)
	}
	var once []pair
	for i, n := range x {
		if inX[n] == 1 && inY[n] == 1 {
			once = append(once, pair{i, int(placeY[n])})
		}
	}
	return longestRising(once)
}

// longestRising returns a longest subsequence in which y rises, as x does.
func longestRising(all []pair) []pair {
	var tails []int // of the rising sequences of each length, the last place of the one that ends lowest
	before := make([]int, len(all))
	for i, p := range all {
		lo, hi := 0, len(tails)
		for lo < hi {
			if mid := (lo + hi) / 2; all[tails[mid]].y < p.y {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		before[i] = -1
		if lo > 0 {
			before[i] = tails[lo-1]
		}
		if lo == len(tails) {
			tails = append(tails, i)
		} else {
			tails[lo] = i
		}
	}
	rising := make([]pair, len(tails))
	if len(tails) > 0 {
		for n, i := len(tails)-1, tails[len(tails)-1]; n >= 0; n, i = n-1, before[i] {
			rising[n] = all[i]
		}
	}
	return rising
}

// fill makes hunks of edits.
func (d *Diff) fill(a, b []string, edits []lcs.Diff) {
	var h *Hunk
	at := 0 // lines of a that are told
	for _, e := range edits {
		if h == nil || e.Start-at > 2*aroundHunk {
			if h != nil {
				h.add(Stays, a[at:at+aroundHunk])
			}
			from := max(e.Start-aroundHunk, 0)
			d.Hunks = append(d.Hunks, Hunk{OldLine: from + 1, NewLine: e.ReplStart - (e.Start - from) + 1})
			h, at = &d.Hunks[len(d.Hunks)-1], from
		}
		h.add(Stays, a[at:e.Start])
		h.add(Removed, a[e.Start:e.End])
		h.add(Added, b[e.ReplStart:e.ReplEnd])
		d.Removed += e.End - e.Start
		d.Added += e.ReplEnd - e.ReplStart
		at = e.End
	}
	if h != nil {
		h.add(Stays, a[at:min(at+aroundHunk, len(a))])
	}
}

func (h *Hunk) add(op Op, lines []string) {
	h.Lines = slices.Grow(h.Lines, len(lines))
	for _, line := range lines {
		text, ended := strings.CutSuffix(line, "\n")
		h.Lines = append(h.Lines, DiffLine{Op: op, Text: text, Open: !ended})
	}
}
