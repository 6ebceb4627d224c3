package ui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker/execute"
	"countersign/worker/safetext"
)

const (
	outputLines = 1000                   // how many lines are in memory
	outputPoll  = 200 * time.Millisecond // how often a running command's file is read
)

// output shows what a command printed: a stretch of lines of its transcript,
// read in the background. While the end is on screen it follows a command that
// runs; scrolled up, it stands still.
type output struct {
	u    *UI
	root *fyne.Container
	head *fyne.Container
	text *widget.Label // what part is shown
	view *textView

	cameOrWent     func() // told when there is output to show, other output, or none any more
	earlier, later *button
	path           string
	reader         *outputReader
	from, count    int // the stretch that is shown begins here, of so many lines
}

func newOutput(u *UI, k *keys) *output {
	o := &output{u: u, view: newTextView()}
	o.view.keys = k
	o.text = caption("")
	o.earlier = newButton("Earlier", "", nil, func() { o.turn(-1) })
	o.later = newButton("Later", "", nil, func() { o.turn(1) })
	o.earlier.flat, o.later.flat = true, true
	o.earlier.Hide()
	o.later.Hide()
	o.head = container.NewBorder(nil, nil, nil, container.NewHBox(o.earlier, o.later),
		container.NewThemeOverride(o.text, dense{NewTheme(), 2, 4, false}))
	o.root = container.NewBorder(o.head, nil, nil, nil, o.view.themed())
	o.root.Hide()
	return o
}

// fit is the height of all lines; without an end as long as there may be more, so
// that nothing moves about with each.
func (o *output) fit() float32 {
	if o.reader != nil && o.reader.live.Load() {
		return math.MaxFloat32
	}
	return o.view.fit()
}

// headHeight is the height of what stands above the lines.
func (o *output) headHeight() float32 { return o.head.MinSize().Height + theme.Padding() }

// open shows the transcript at path, which grows while live. "" shows none; nor does
// a file that is not there, if it may lack. To open what is open already only tells
// whether it still grows.
func (o *output) open(path string, live, mayLack bool) {
	if path == o.path {
		if o.reader != nil && o.reader.live.Swap(live) != live {
			o.reader.wake()
		}
		return
	}
	o.close(path)
	if path == "" {
		return
	}
	r := &outputReader{u: o.u, path: path, mayLack: mayLack, poke: make(chan struct{}, 1)}
	r.live.Store(live)
	r.from.Store(followEnd)
	r.show = func(s stretch) {
		if o.reader == r {
			o.show(s)
		}
	}
	o.reader = r
	o.u.start(r.run)
}

// still shows a text that is all there is, under a title. To show what is shown
// already does nothing.
func (o *output) still(name, title, text string) {
	if name == o.path {
		return
	}
	o.close(name)
	o.view.setLines(numbered(text, body), nil)
	setText(o.text, title)
	o.root.Show()
	o.cameOrWent()
}

// close lets go of what was shown, for something else.
func (o *output) close(next string) {
	if o.reader != nil {
		o.reader.stop()
		o.reader = nil
	}
	o.path, o.from, o.count = next, 0, 0
	o.earlier.Hide()
	o.later.Hide()
	o.view.ScrollToOffset(0)
	o.view.setLines(nil, nil)
	o.root.Hide()
}

// show draws a stretch that was read. UI thread only.
func (o *output) show(s stretch) {
	follow := o.reader.from.Load() == followEnd
	if follow && s.from != o.from && len(o.view.lines) > 0 && !o.view.atEnd() {
		o.settle() // scrolled up meanwhile: nothing moves under the eyes
		o.reader.wake()
		return
	}
	follow = follow && (o.view.atEnd() || len(o.view.lines) == 0)
	o.from, o.count = s.from, s.count
	if s.err != nil {
		s.lines = []textLine{{Text: "The output cannot be read: " + safetext.Line(s.err.Error()), Style: note}}
	}
	words := "Output: " + countWords(s.count, "line", "lines")
	if s.count == 0 {
		words = "Output"
	}
	if len(s.lines) < s.count {
		words += fmt.Sprintf(", from %s on shown", grouped(s.from+1))
	}
	setText(o.text, words)
	o.earlier.Hidden, o.later.Hidden = s.from == 0, s.from+len(s.lines) >= s.count
	o.view.setLines(s.lines, nil)
	o.root.Hidden = len(s.lines) == 0
	o.cameOrWent()
	if follow {
		o.view.toEnd()
	}
	o.settle()
	o.head.Refresh()
}

// page scrolls by whole screens, and reports whether there was anything to
// scroll. Whoever scrolls up stops following; the end follows again.
func (o *output) page(screens int) bool {
	if !o.root.Visible() {
		return false
	}
	before := o.view.GetScrollOffset()
	o.view.page(screens)
	moved := o.view.GetScrollOffset() != before
	switch {
	case screens < 0 && !moved && o.from > 0:
		o.turn(-1)
		return true
	case screens > 0 && !moved && !o.later.Hidden:
		o.turn(1)
		return true
	}
	o.settle()
	return moved
}

// settle follows the end if it is on screen, and stands still otherwise.
func (o *output) settle() {
	if o.reader == nil || o.view.Size().Height == 0 {
		return
	}
	if o.view.atEnd() && o.later.Hidden {
		o.reader.from.Store(followEnd)
	} else {
		o.reader.from.Store(int64(o.from))
	}
}

// turn shows the stretch before or after.
func (o *output) turn(by int) {
	if o.reader == nil {
		return
	}
	from := max(o.from+by*outputLines*9/10, 0)
	if from+outputLines >= o.count {
		from = max(o.count-outputLines, 0)
	}
	o.reader.from.Store(int64(from))
	o.reader.wake()
	o.view.ScrollToOffset(0)
}

// followEnd is where a reader begins that is to show the newest lines.
const followEnd = -1

// stretch is a piece of a transcript, ready to be drawn.
type stretch struct {
	from, count int
	lines       []textLine
	err         error
}

// outputReader reads one transcript in the background.
type outputReader struct {
	u       *UI
	path    string
	mayLack bool // that there is no file is no trouble
	live    atomic.Bool
	from    atomic.Int64
	done    atomic.Bool
	poke    chan struct{}
	show    func(stretch)

	shown mark // what was shown last
}

// mark tells whether there is something new to show.
type mark struct {
	from, count int
	tail        int64 // length of the last line, which may still grow
	failed      bool
}

func (r *outputReader) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (r *outputReader) stop() {
	r.done.Store(true)
	r.wake()
}

func (r *outputReader) run(ctx context.Context) {
	var t Transcript
	defer func() {
		if t != nil {
			t.Close()
		}
	}()
	r.shown.from = followEnd - 1 // nothing yet
	for !r.done.Load() {
		var err error
		if t == nil {
			t, err = r.u.OpenTranscript(r.path)
			if err != nil {
				t = nil
			}
		}
		if err == nil {
			err = r.read(t)
		}
		if err != nil && !((r.live.Load() || r.mayLack) && errors.Is(err, fs.ErrNotExist)) {
			r.deliver(stretch{err: err}, mark{failed: true})
		}
		var poll <-chan time.Time
		if r.live.Load() {
			poll = time.After(outputPoll)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.poke:
		case <-poll:
		}
	}
}

// read shows the stretch that is wanted, if it is not shown already.
func (r *outputReader) read(t Transcript) error {
	n, err := t.Count()
	if err != nil {
		return err
	}
	from := int(r.from.Load())
	if from == followEnd {
		from = max(n-outputLines, 0)
	}
	from = min(from, n)
	size := min(outputLines, n-from)
	now := mark{from: from, count: n}
	if size > 0 {
		last, err := t.Lines(from+size-1, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			now.tail = int64(len(last[0].Text)) + last[0].Clipped
		}
	}
	if now == r.shown {
		return nil
	}
	lines, err := t.Lines(from, size)
	if err != nil {
		return err
	}
	r.deliver(stretch{from: from, count: n, lines: outputText(lines, from)}, now)
	return nil
}

func (r *outputReader) deliver(s stretch, m mark) {
	if m == r.shown {
		return
	}
	r.shown = m
	r.u.OnUI(func() { r.show(s) })
}

// outputText makes lines of a transcript safe to draw.
func outputText(lines []execute.Line, from int) []textLine {
	text := make([]textLine, 0, len(lines))
	for i, l := range lines {
		t := textLine{Text: safetext.Block(string(l.Text)), Style: body, Number: from + i + 1}
		switch {
		case l.Note:
			t.Style, t.Number = note, 0
		case l.Stderr:
			t.Style = stderr
		}
		text = append(text, t)
		if l.Clipped > 0 {
			text = append(text, textLine{
				Text: "      " + bytesWords(l.Clipped) + " of this line are in the file only", Style: note})
		}
	}
	return text
}
