package ui

import (
	"slices"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/policy"
)

// lineStyle says what a line of a textView is.
type lineStyle uint8

const (
	body    lineStyle = iota // somebody else's text, numbered
	heading                  // our own words about what follows, not numbered
	note                     // our own words, not numbered
	stderr                   // somebody else's text, from the error stream
	added                    // somebody else's text, new in a file
	removed                  // text of a file that goes away
	aside                    // our own words about the line before, beside the verdicts
)

// textLine is one line to draw. Text must be safe already (safetext) and hold
// no newline.
type textLine struct {
	Text    string
	Style   lineStyle
	Number  int            // from 1; 0 for none
	Verdict policy.Verdict // drawn beside the line where there is one
	Sign    string         // of a difference, drawn beside the line: + or −
	Indent  int            // in characters
	Inks    []ink          // stretches that are drawn in other ways, in order
}

// ink is how a stretch of a line is drawn, beside its style.
type ink struct {
	From, To int // bytes of the line's text
	Tone     fyne.ThemeColorName
	Bold     bool
	Under    bool // underlined
}

// textRow is what one row on screen draws: a piece of a line.
type textRow struct {
	line     int
	from, to int // bytes of the line's text
}

// textView draws any amount of text in a fixed-width font, whole: long lines
// go on in further rows, marked, and only rows on screen are drawn (a Label
// would take minutes for a megabyte). It remembers which rows have been on screen:
// one line can be as long as a hundred others.
type textView struct {
	rowList
	lines []textLine
	rows  []textRow
	seen  []bool  // by row
	cols  int     // that fixed-width rows were cut for
	cell  float32 // width of a character
	side  float32 // width of the gutter
	wide  map[letter]float32

	onScreen func() bool      // nil where nobody asks what was seen
	now      func() time.Time // nil where that is not told
	changed  time.Time        // when other rows came, or another height
}

// settling is how long rows have to be on screen to have been there for an eye:
// while the window is laid out, some are for no time at all.
const settling = 100 * time.Millisecond

func newTextView() *textView {
	t := &textView{wide: map[letter]float32{}, side: gutter}
	t.Length = func() int { return len(t.rows) }
	t.CreateItem = func() fyne.CanvasObject { return newTextRowBox(t) }
	t.UpdateItem = func(id widget.ListItemID, o fyne.CanvasObject) { t.draw(id, o.(*textRowBox)) }
	t.OnSelected = func(widget.ListItemID) { t.UnselectAll() }
	t.HideSeparators = true
	t.ExtendBaseWidget(t)
	t.cell = fyne.MeasureText("0000000000", theme.TextSize(), fyne.TextStyle{Monospace: true}).Width / 10
	return t
}

// themed puts the view on its paper, with no space between rows.
func (t *textView) themed() fyne.CanvasObject {
	paper := newFill(colourPaper)
	list := container.NewThemeOverride(t, dense{NewTheme(), 1, 4, true})
	return container.NewStack(paper, list)
}

// setLines replaces the text. seen tells which of its lines have been on screen;
// nil means none.
func (t *textView) setLines(lines []textLine, seen []bool) {
	t.lines = lines
	t.wrap(seen)
	t.stamp()
	t.Refresh()
}

func (t *textView) stamp() {
	if t.now != nil {
		t.changed = t.now()
	}
}

// Resize wraps anew when the width changed.
func (t *textView) Resize(s fyne.Size) {
	if s == t.Size() {
		return
	}
	t.look() // at what was there until now
	t.stamp()
	cols := t.columns(s.Width)
	if cols == t.cols {
		t.List.Resize(s)
		return
	}
	t.cols = cols
	t.wrapAgain()
	t.List.Resize(s)
	t.Refresh() // the rows on screen hold other pieces now
}

// styleOf is how a line's text is drawn: somebody else's in a fixed width.
func styleOf(s lineStyle) fyne.TextStyle {
	ours := s == heading || s == note || s == aside
	return fyne.TextStyle{Monospace: !ours, Bold: s == heading}
}

func (t *textView) columns(width float32) int {
	return max(int((width-t.side-2*textMargin)/t.cell), 20)
}

// wrap cuts the lines into rows; a line counted as seen stays seen.
func (t *textView) wrap(seen []bool) {
	t.rows, t.seen = t.rows[:0], t.seen[:0]
	if t.cols == 0 {
		t.cols = 80
	}
	for i, l := range t.lines {
		was := i < len(seen) && seen[i]
		for from := 0; ; {
			to := t.cut(l, from)
			t.rows, t.seen = append(t.rows, textRow{i, from, to}), append(t.seen, was)
			if from = to; from >= len(l.Text) {
				break
			}
		}
	}
}

// wrapAgain cuts the same lines into rows of another width. Of those, each is seen
// that holds nothing that was not.
func (t *textView) wrapAgain() {
	was, seen := slices.Clone(t.rows), slices.Clone(t.seen)
	t.wrap(nil)
	first := 0
	for n, r := range t.rows {
		end := len(t.lines[r.line].Text)
		for first < len(was) && (was[first].line < r.line || was[first].to <= r.from && was[first].to < end) {
			first++
		}
		all := first < len(was)
		for i := first; i < len(was) && was[i].line == r.line && (was[i].from < r.to || i == first); i++ {
			all = all && seen[i]
		}
		t.seen[n] = all
	}
}

// cut returns where the row of a line that begins at from ends.
func (t *textView) cut(l textLine, from int) int {
	cols := max(t.cols-l.Indent, 10)
	if style := styleOf(l.Style); !style.Monospace {
		width := float32(cols) * t.cell
		if t.start(l) == textMargin {
			width += t.side
		}
		return cutWords(l.Text, from, width, t.advances(style))
	}
	return cut(l.Text, from, cols)
}

// start is where the text of a line begins, from the left.
func (t *textView) start(l textLine) float32 {
	x := t.side
	if (l.Style == heading || l.Style == note) && l.Verdict == "" {
		x = textMargin // nothing stands beside it
	}
	return x + float32(l.Indent)*t.cell
}

// look notes the rows that are wholly on screen now as seen.
func (t *textView) look() {
	if t.now != nil && t.now().Sub(t.changed) < settling {
		return
	}
	for first, end := t.inView(); first < end; first++ {
		t.seen[first] = true
	}
}

// inView is the rows that are wholly on screen now: from one up to another.
func (t *textView) inView() (first, end int) {
	if t.onScreen == nil || !t.onScreen() || t.Size().Height == 0 {
		return 0, 0
	}
	h := t.rowHeight()
	top, bottom := t.GetScrollOffset(), t.GetScrollOffset()+t.Size().Height
	return max(int(top/h), 0), min(int((bottom+3)/h), len(t.seen))
}

// fit is the height at which no row is hidden.
func (t *textView) fit() float32 { return float32(len(t.rows)) * t.rowHeight() }

func (t *textView) rowHeight() float32 { return textRowHeight() + 1 }

// unseen counts the rows that are not on screen and have not been.
func (t *textView) unseen() int {
	t.look()
	n := 0
	first, end := t.inView()
	for i, seen := range t.seen {
		if !seen && (i < first || i >= end) {
			n++
		}
	}
	return n
}

// rowsOf counts the rows of the lines that are not in seen.
func (t *textView) rowsOf(seen []bool) int {
	n := 0
	for _, r := range t.rows {
		if !seen[r.line] {
			n++
		}
	}
	return n
}

// seenLines tells of which lines all rows have been on screen.
func (t *textView) seenLines() []bool {
	seen := make([]bool, len(t.lines))
	for i := range seen {
		seen[i] = true
	}
	for i, r := range t.rows {
		if !t.seen[i] && r.line < len(seen) {
			seen[r.line] = false
		}
	}
	return seen
}

// page scrolls by whole screens; a large number reaches an end.
func (t *textView) page(screens int) {
	step := max(t.Size().Height-2*t.rowHeight(), t.rowHeight())
	limit := max(t.fit()-t.Size().Height, 0)
	t.look() // before it goes out of sight
	t.ScrollToOffset(min(max(t.GetScrollOffset()+float32(screens)*step, 0), limit))
	t.look()
}

func (t *textView) atEnd() bool {
	return t.GetScrollOffset()+t.Size().Height >= t.fit()-t.rowHeight()
}

func (t *textView) toEnd() {
	t.ScrollToOffset(max(t.fit()-t.Size().Height, 0))
}

func (t *textView) draw(id int, box *textRowBox) {
	if id >= len(t.rows) {
		return
	}
	r := t.rows[id]
	l := t.lines[r.line]
	box.set(l, r)
	t.look()
}
