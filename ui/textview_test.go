package ui

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"countersign/worker/safetext"
)

func newTestView(t *testing.T) *textView {
	t.Helper()
	testApp()
	v := newTextView()
	w := test.NewTempWindow(t, v.themed())
	w.Resize(fyne.NewSize(600, 300))
	v.onScreen = func() bool { return true }
	return v
}

func TestWrappingLosesNothingAndCutsNoCharacter(t *testing.T) {
	v := newTestView(t)
	for _, text := range []string{
		"", "short", strings.Repeat("0123456789", 1000), strings.Repeat("héllo wörld ", 300),
		strings.Repeat("漢字", 500), strings.Repeat("👩‍💻", 300), "a" + strings.Repeat(" ", 500) + "b",
	} {
		v.setLines(numbered(text, body), nil)
		var all strings.Builder
		for _, r := range v.rows {
			piece := v.lines[r.line].Text[r.from:r.to]
			if !utf8.ValidString(piece) {
				t.Errorf("%.20q…: a character is cut in %q", text, piece)
			}
			if len(piece) > 4096 {
				t.Errorf("%.20q…: a row of %d bytes", text, len(piece))
			}
			all.WriteString(piece)
		}
		var want strings.Builder
		for _, l := range v.lines {
			want.WriteString(l.Text)
		}
		if all.String() != want.String() {
			t.Errorf("%.20q…: the rows together are not the text", text)
		}
	}
}

func TestRowsFitTheWidth(t *testing.T) {
	v := newTestView(t)
	for _, text := range []string{strings.Repeat("m", 1000), strings.Repeat("漢", 500), strings.Repeat("ж", 500)} {
		v.setLines(numbered(text, body), nil)
		for _, r := range v.rows {
			piece := v.lines[r.line].Text[r.from:r.to]
			w := fyne.MeasureText(piece, 14, fyne.TextStyle{Monospace: true}).Width
			if w > v.Size().Width-gutter {
				t.Fatalf("%.10q…: a row is %.0f wide, there is room for %.0f", text, w, v.Size().Width-gutter)
			}
		}
	}
}

func TestLinesStaySeenWhenTheWindowIsResized(t *testing.T) {
	v := newTestView(t)
	v.setLines(numbered(strings.Repeat(strings.Repeat("word ", 40)+"\n", 50)+"end", body), nil)
	for range 100 {
		v.page(1)
	}
	if n := v.unseen(); n != 0 {
		t.Fatalf("%d rows unseen after paging to the end", n)
	}
	v.Resize(fyne.NewSize(300, 200))
	if n := v.unseen(); n != 0 {
		t.Errorf("%d rows unseen after a resize", n)
	}
}

func TestJumpingToTheEndDoesNotSeeTheMiddle(t *testing.T) {
	v := newTestView(t)
	v.setLines(numbered(strings.Repeat("x\n", 1000), body), nil)
	v.look()
	v.page(1 << 20)
	if n := v.unseen(); n < 900 {
		t.Errorf("%d rows unseen after a jump over a thousand", n)
	}
}

func TestTwoMegabytesAreShownWithoutAStutter(t *testing.T) {
	v := newTestView(t)
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000) + strings.Repeat("y", 1_000_000)
	start := time.Now()
	v.setLines(numbered(text, body), nil)
	t.Logf("2 MB wrapped and shown in %v", time.Since(start))
	if len(v.rows) < 20_000 {
		t.Errorf("%d rows", len(v.rows))
	}
}

func BenchmarkTwoMegabyteCommand(b *testing.B) {
	testApp()
	v := newTextView()
	v.Resize(fyne.NewSize(700, 500))
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 20_000)
	h := execItem(1, text).Hold
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v.setLines(newReading(h).lines(), nil)
	}
}

func TestWrappingDividesNoMark(t *testing.T) {
	v := newTestView(t)
	for _, style := range []lineStyle{body, stderr, note} {
		for shift := range 30 {
			text := safetext.Line(strings.Repeat("x", shift) + strings.Repeat("ab\u202e\x1b\u00a0", 60))
			v.setLines([]textLine{{Text: text, Style: style, Number: 1}}, nil)
			for _, r := range v.rows {
				piece := text[r.from:r.to]
				if wholeMarks(piece) != piece || strings.Count(piece, "‹") != strings.Count(piece, "›") {
					t.Fatalf("style %d: a mark is divided in %q", style, piece)
				}
			}
		}
	}
}

func TestOurOwnWordsUseTheWidthAndBreakBetweenWords(t *testing.T) {
	v := newTestView(t)
	text := strings.TrimSpace(strings.Repeat("the renewal of the lease was not confirmed ", 12))
	v.setLines([]textLine{{Text: text, Style: note}}, nil)
	if len(v.rows) < 2 {
		t.Fatalf("%d rows", len(v.rows))
	}
	room := v.Size().Width - 2*textMargin
	for i, r := range v.rows {
		piece := text[r.from:r.to]
		w := fyne.MeasureText(strings.TrimSpace(piece), 14, fyne.TextStyle{}).Width
		if w > room {
			t.Errorf("%q is %.0f wide, there is room for %.0f", piece, w, room)
		}
		if last := i == len(v.rows)-1; !last && (w < room*0.8 || !strings.HasSuffix(piece, " ")) {
			t.Errorf("%q takes %.0f of %.0f, or ends within a word", piece, w, room)
		}
	}
}

func TestAShortenedRowDividesNoMark(t *testing.T) {
	newTestView(t)
	text := safetext.Line(strings.Repeat("\u202e", 40))
	for width := float32(10); width < 500; width += 3 {
		got := elide(text, width, 14, fyne.TextStyle{})
		if strings.Count(got, "‹") != strings.Count(got, "›") {
			t.Fatalf("in %.0f: %q", width, got)
		}
	}
}

func TestAWiderWindowShowsEveryLine(t *testing.T) {
	v := newTestView(t)
	v.Resize(fyne.NewSize(300, 300))
	v.setLines(numbered(strings.Repeat("x", 40)+"\nsecond\nthird", body), nil)
	v.Resize(fyne.NewSize(600, 300))
	var drawn []string
	walk(v, func(o fyne.CanvasObject) {
		if text, ok := o.(*canvas.Text); ok && text.TextStyle.Monospace {
			drawn = append(drawn, text.Text)
		}
	})
	for _, want := range []string{strings.Repeat("x", 40), "second", "third"} {
		if !slices.Contains(drawn, want) {
			t.Errorf("%q is not drawn: %q", want, drawn)
		}
	}
}
