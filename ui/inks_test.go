package ui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// commands that safetext shows otherwise than they are.
var strangeTexts = []string{
	"ls -l | grep 'x' > out # done", "A=1 go test \"$X\" $(cat list) && exit",
	hostile, "\tif true\t;\t\tthen\n  \techo   \t  x  \nfi\t", "echo a" + strings.Repeat(" ", 200) + "; rm b",
	"echo \u202e\u202e\u202eabc\u200b\u200b", "c\u0430t привет \u0430 -\u0430", "שלום ls עולם", "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301 b",
	"\xff\xff\xfels \xc3", "echo ‹ESC› ⇥ ›", "\u0301x", "a\u00a0b\u2003c", strings.Repeat("\x1b[31m", 50), "x\r\ny\r\n", "", "\n\n", " ", "é\u0301\u0301",
	"\u2028", "a\x00b", "𝐥𝐬 -l", "fullwidth ｌｓ", "\U000e0041tag", "a\u0430\u200b\u0430",
}

func TestWhatIsShownOfAColouredCommandIsExactlyTheSafeText(t *testing.T) {
	for _, text := range strangeTexts {
		lines := commandLines(text)
		var shown []string
		for _, l := range lines {
			at := 0
			for _, i := range l.Inks {
				if i.From < at || i.To <= i.From || i.To > len(l.Text) {
					t.Fatalf("%q: ink %+v after %d in %q", text, i, at, l.Text)
				}
				if !utf8.ValidString(l.Text[i.From:i.To]) {
					t.Errorf("%q: a character is cut by %+v", text, i)
				}
				at = i.To
			}
			shown = append(shown, l.Text)
		}
		if got := strings.Join(shown, "\n"); got != safetext.Block(text) {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestEverySafeLineIsAlignedWithItsText(t *testing.T) {
	for _, text := range strangeTexts {
		raw, shown := strings.Split(text, "\n"), strings.Split(safetext.Block(text), "\n")
		for i := range raw {
			if _, ok := align(raw[i], shown[i]); !ok {
				t.Errorf("%q: %q is not aligned with %q", text, raw[i], shown[i])
			}
		}
	}
}

func FuzzAlign(f *testing.F) {
	for _, text := range strangeTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, shown := strings.Split(text, "\n"), strings.Split(safetext.Block(text), "\n")
		for i := range raw {
			if _, ok := align(raw[i], shown[i]); !ok {
				t.Errorf("%q is not aligned with %q", raw[i], shown[i])
			}
		}
		commandLines(text)
	})
}

// words lists what is drawn in each ink, as kind:text.
func inkedWords(command string) []string {
	tones := map[fyne.ThemeColorName]string{theme.ColorNamePrimary: "program", colourOption: "option",
		theme.ColorNameSuccess: "string", theme.ColorNameError: "operator", theme.ColorNameWarning: "redirect",
		colourName: "assignment", colourExpansion: "expansion", theme.ColorNamePlaceHolder: "comment"}
	var words []string
	for _, l := range commandLines(command) {
		for _, i := range l.Inks {
			what := tones[i.Tone]
			if i == (ink{i.From, i.To, markInk.Tone, markInk.Bold, markInk.Under}) {
				what = "mark"
			}
			words = append(words, what+":"+l.Text[i.From:i.To])
		}
	}
	return words
}

func TestACommandIsDrawnInItsParts(t *testing.T) {
	got := strings.Join(inkedWords("A=1 grep -n 'b c' \"$X\" < in | cat # é\n\tls; echo '\u202ee'"), " ")
	for _, want := range []string{"assignment:A=1", "program:grep", "option:-n", "string:'b c'", "operator:|", "program:cat",
		"comment:# é", "program:ls", "operator:;", "mark:‹U+202E›", "expansion:$X"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestNoKindOfAStretchIsToldByColourAlone(t *testing.T) {
	plain := map[policy.Token]bool{ // which have signs of their own
		policy.TokenOption: true, policy.TokenString: true, policy.TokenComment: true}
	for _, kind := range []policy.Token{policy.TokenProgram, policy.TokenOption, policy.TokenString, policy.TokenOperator,
		policy.TokenRedirect, policy.TokenAssignment, policy.TokenExpansion, policy.TokenComment} {
		if i, ok := inkOf(kind); !ok || !plain[kind] && !i.Bold && !i.Under {
			t.Errorf("%s is drawn as %+v", kind, i)
		}
	}
}

func TestTheRowsOfAColouredCommandAreTheWholeOfIt(t *testing.T) {
	st := newStage(t)
	command := strings.Repeat("FOO=bar grep -n \"$X\" 'y z' < in\t| cat \u202e; ", 30)
	st.show(waitingItems(execItem(1, command)))
	doc := st.window.queue.detail.doc
	var drawn strings.Builder
	for _, r := range doc.rows {
		box := newTextRowBox(doc)
		box.set(doc.lines[r.line], r)
		if doc.lines[r.line].Number == 0 {
			continue
		}
		for _, p := range box.pieces[:box.used] {
			drawn.WriteString(p.text.Text)
		}
	}
	if got := drawn.String(); got != safetext.Block(command) {
		t.Errorf("drawn is\n%q\nwant\n%q", got, safetext.Block(command))
	}
	st.picture("coloured")
}
