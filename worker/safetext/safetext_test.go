package safetext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var cases = []struct{ name, in, line, block string }{
	{"plain text stays", "go test ./...", "go test ./...", "go test ./..."},
	{"empty", "", "", ""},
	{"letters of many scripts stay", "naïve Ελλάδα Привет 日本語 한국어 ไทย हिन्दी €½→🙂", "naïve Ελλάδα Привет 日本語 한국어 ไทย हिन्दी €½→🙂", "naïve Ελλάδα Привет 日本語 한국어 ไทย हिन्दी €½→🙂"},
	{"line feed", "a\nb", "a‹LF›b", "a\nb"},
	{"tab and carriage return", "a\tb\rc", "a‹TAB›b‹CR›c", "a‹TAB›b‹CR›c"},
	{"ANSI escape", "\x1b[31mred\x1b[0m", "‹ESC›[31mred‹ESC›[0m", "‹ESC›[31mred‹ESC›[0m"},
	{"C0, DEL and C1", "\x00\a\b\v\x7f\u009b", "‹NUL›‹BEL›‹BS›‹U+000B›‹DEL›‹U+009B›", "‹NUL›‹BEL›‹BS›‹U+000B›‹DEL›‹U+009B›"},
	{"bidirectional overrides and isolates", "a\u202eb\u2066c\u061c", "a‹U+202E›b‹U+2066›c‹U+061C›", "a‹U+202E›b‹U+2066›c‹U+061C›"},
	{"zero width", "a\u200bb\u200dc\u2060d\ufeff", "a‹U+200B›b‹U+200D›c‹U+2060›d‹U+FEFF›", "a‹U+200B›b‹U+200D›c‹U+2060›d‹U+FEFF›"},
	{"separators and next line", "a\u2028b\u2029c\u0085", "a‹U+2028›b‹U+2029›c‹U+0085›", "a‹U+2028›b‹U+2029›c‹U+0085›"},
	{"soft hyphen and unusual spaces", "a\u00adb\u00a0c\u3000d\u2003", "a‹U+00AD›b‹NBSP›c‹U+3000›d‹U+2003›", "a‹U+00AD›b‹NBSP›c‹U+3000›d‹U+2003›"},
	{"letters that are blank", "a\u3164b\u115f\u2800", "a‹U+3164›b‹U+115F›‹U+2800›", "a‹U+3164›b‹U+115F›‹U+2800›"},
	{"variation selectors", "❤\ufe0fx\U000e0100", "❤‹U+FE0F›x‹U+E0100›", "❤‹U+FE0F›x‹U+E0100›"},
	{"tag characters", "a\U000e0061\U000e007f", "a‹U+E0061›‹U+E007F›", "a‹U+E0061›‹U+E007F›"},
	{"private use and unassigned", "\ue000\U000e0fff\U0010ffff", "‹U+E000›‹U+E0FFF›‹U+10FFFF›", "‹U+E000›‹U+E0FFF›‹U+10FFFF›"},
	{"invalid UTF-8", "a\xffb\xe2\x82", "a‹0xff›b‹0xe2›‹0x82›", "a‹0xff›b‹0xe2›‹0x82›"},
	{"an encoded surrogate", "\xed\xa0\x80", "‹0xed›‹0xa0›‹0x80›", "‹0xed›‹0xa0›‹0x80›"},
	{"the replacement character is itself", "\ufffd", "\ufffd", "\ufffd"},
	{"marks cannot be forged", "‹ESC›", "‹U+2039›ESC‹U+203A›", "‹U+2039›ESC‹U+203A›"},
	{"a backslash is only a backslash", `\x1b\n`, `\x1b\n`, `\x1b\n`},
	{"an accent on a letter", "e\u0301", "e\u0301", "e\u0301"},
	{"an accent on nothing", "\u0301a\x1b\u0338 \u0301", "‹U+0301›a‹ESC›‹U+0338› ‹U+0301›", "‹U+0301›a‹ESC›‹U+0338› ‹U+0301›"},
	{"an accent at the beginning of a line", "a\n\u0301", "a‹LF›‹U+0301›", "a\n‹U+0301›"},
	{"a flood of accents", "e" + strings.Repeat("\u0301", 6), "e\u0301\u0301\u0301\u0301‹U+0301›‹U+0301›", "e\u0301\u0301\u0301\u0301‹U+0301›‹U+0301›"},
	{"right to left words end visibly", "rm שלום 1 > 2 עולם", "rm שלום‹RTL› 1 > 2 עולם‹RTL›", "rm שלום‹RTL› 1 > 2 עולם‹RTL›"},
	{"right to left, then a line feed", "אב\nג", "אב‹RTL›‹LF›ג‹RTL›", "אב‹RTL›\nג‹RTL›"},
	{"right to left with points", "שָׁ1", "שָׁ‹RTL›1", "שָׁ‹RTL›1"},
	{"Arabic digits", "١+٢", "١‹RTL›+٢‹RTL›", "١‹RTL›+٢‹RTL›"},
}

func TestWhatCannotBeSeenIsMarked(t *testing.T) {
	for _, c := range cases {
		if got := Line(c.in); got != c.line {
			t.Errorf("%s: Line(%q) = %q, want %q", c.name, c.in, got, c.line)
		}
		if got := Block(c.in); got != c.block {
			t.Errorf("%s: Block(%q) = %q, want %q", c.name, c.in, got, c.block)
		}
	}
}

func TestDifferentTextsNeverLookTheSame(t *testing.T) {
	texts := []string{"\\x1b", "\x1b", "^[", "‹ESC›", "ESC", "‹U+001B›", "\ufffd", "\xff", "0xff", "‹0xff›",
		"a b", "a\u00a0b", "a\u2003b", "a\tb", "a  b", "א", "א‹RTL›", "אRTL", "e\u0301", "é", "\u0301", "", " "}
	for _, c := range cases {
		texts = append(texts, c.in)
	}
	for r := rune(0); r <= 0x3000; r++ {
		texts = append(texts, string(r)+"x")
	}
	seenLine, seenBlock := map[string]string{}, map[string]string{}
	input := map[string]bool{}
	for _, s := range texts {
		if input[s] {
			continue
		}
		input[s] = true
		if other, ok := seenLine[Line(s)]; ok {
			t.Errorf("Line draws %q and %q the same", s, other)
		}
		if other, ok := seenBlock[Block(s)]; ok {
			t.Errorf("Block draws %q and %q the same", s, other)
		}
		seenLine[Line(s)], seenBlock[Block(s)] = s, s
	}
}

func TestEveryCharacterIsDrawnOrMarked(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		checkSafe(t, Line(string(r)))
	}
}

func TestClipCutsAtACharacterAndNeverInsideAMark(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"日本語テスト", 4, "日本語…"},
		{"ab\x1bcd", 6, "ab…"},
		{"ab\x1bcd", 8, "ab‹ESC›…"},
		{"ab\x1b", 7, "ab‹ESC›"},
		{"\x1b", 3, "…"},
		{"אב", 7, "אב‹RTL›"},
		{"x", 0, ""},
		{strings.Repeat("a", 1<<20), 3, "aa…"},
	} {
		got := Clip(c.in, c.max)
		if got != c.want {
			t.Errorf("Clip(%.20q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
		if n := utf8.RuneCountInString(got); n > c.max {
			t.Errorf("Clip(%.20q, %d) has %d characters", c.in, c.max, n)
		}
	}
}

// checkSafe fails for output that hides, moves or breaks anything.
func checkSafe(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if r != ' ' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Z, r)) ||
			unicode.In(r, unicode.C, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			t.Fatalf("%q has %U in it", s, r)
		}
	}
}

func FuzzOutputIsSafe(f *testing.F) {
	for _, c := range cases {
		f.Add(c.in, c.block)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		checkSafe(t, Line(a))
		checkSafe(t, strings.ReplaceAll(Block(a), "\n", ""))
		if strings.Count(Block(a), "\n") != strings.Count(a, "\n") {
			t.Fatalf("Block(%q) has other line breaks", a)
		}
		if a != b && (Line(a) == Line(b) || Block(a) == Block(b)) {
			t.Fatalf("%q and %q look the same", a, b)
		}
		if c := Clip(a, 10); utf8.RuneCountInString(c) > 10 {
			t.Fatalf("Clip(%q) is too long: %q", a, c)
		} else {
			checkSafe(t, c)
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	for name, s := range map[string]string{
		"plain":   strings.Repeat("go test ./... && echo done\n", 4000),
		"hostile": strings.Repeat("\x1b\u202eא\xff", 15000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Block(s)
			}
		})
	}
}
