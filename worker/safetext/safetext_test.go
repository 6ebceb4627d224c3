package safetext

import (
	"slices"
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
	{"tab and carriage return", "a\tb\rc", "a‹TAB›b‹CR›c", "a⇥      b‹CR›c"},
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
	{"marks cannot be forged", "‹ESC› ⇥", "‹U+2039›ESC‹U+203A› ‹U+21E5›", "‹U+2039›ESC‹U+203A› ‹U+21E5›"},
	{"a backslash is only a backslash", `\x1b\n`, `\x1b\n`, `\x1b\n`},
	{"an accent on a letter", "e\u0301", "e\u0301", "e\u0301"},
	{"an accent on nothing", "\u0301a\x1b\u0338 \u0301", "‹U+0301›a‹ESC›‹U+0338› ‹U+0301›", "‹U+0301›a‹ESC›‹U+0338› ‹U+0301›"},
	{"an accent at the beginning of a line", "a\n\u0301", "a‹LF›‹U+0301›", "a\n‹U+0301›"},
	{"a few accents too many", "e" + accents(6), "e" + accents(4) + "‹U+0301›‹U+0301›", "e" + accents(4) + "‹U+0301›‹U+0301›"},
	{"a flood of accents", "e" + accents(1000) + "x", "e" + accents(4) + "‹996 combining›x", "e" + accents(4) + "‹996 combining›x"},
	{"a flood of different ones on nothing", "\u0301\u0302\u0303\u0304\u0305", "‹5 combining›", "‹5 combining›"},
	{"the same again and again is counted", "a" + strings.Repeat("\u200b", 5000) + "\x00\x00\xff\xff\xff", "a‹5000×U+200B›‹2×NUL›‹3×0xff›", "a‹5000×U+200B›‹2×NUL›‹3×0xff›"},
	{"a broken beginning before a whole character", "\xe2\xe2\x82\xac", "‹0xe2›€", "‹0xe2›€"},

	{"blanks at the end", "ls ", "ls‹SP›", "ls‹SP›"},
	{"blanks at the end of lines", "a \n\t\nb\t \t\t", "a ‹LF›‹TAB›‹LF›b‹TAB›‹SP›‹2×TAB›", "a‹SP›\n‹TAB›\nb‹TAB›‹SP›‹2×TAB›"},
	{"a name that ends in a blank", "'ls ' x", "'ls ' x", "'ls ' x"},
	{"nothing but blanks", "   ", "‹3×SP›", "‹3×SP›"},
	{"a gap of a table", "a" + spaces(7) + "b" + spaces(8) + "c", "a" + spaces(7) + "b‹8×SP›c", "a" + spaces(7) + "b" + spaces(8) + "c"},
	{"a gap that pushes away", "ls" + spaces(24) + "; id", "ls‹24×SP›; id", "ls‹24×SP›; id"},
	{"a gap of spaces and tabs", "ls  \t\t  \t; id", "ls  ‹2×TAB›  ‹TAB›; id", "ls  ⇥   ⇥         ⇥     ; id"},
	{"a longer one", "ls  \t\t\t  ; id", "ls  ‹3×TAB›  ; id", "ls‹2×SP›‹3×TAB›‹2×SP›; id"},
	{"indentation", "if x {\n\tif y {\n\t\tz\n    \tw\n", "if x {‹LF›‹TAB›if y {‹LF›‹2×TAB›z‹LF›    ‹TAB›w‹LF›", "if x {\n⇥   if y {\n⇥   ⇥   z\n    ⇥   w\n"},
	{"indentation that pushes away", "a\n" + spaces(40) + "b\n" + spaces(41) + "c", "a‹LF›‹40×SP›b‹LF›‹41×SP›c", "a\n" + spaces(40) + "b\n‹41×SP›c"},
	{"tabs that push away", strings.Repeat("\t", 11) + "c", "‹11×TAB›c", "‹11×TAB›c"},
	{"unusual spaces are counted", "a" + strings.Repeat("\u00a0", 300) + "b", "a‹300×NBSP›b", "a‹300×NBSP›b"},

	{"a Cyrillic letter in a Latin word", "p\u0430ypal.com c\u0430t", "p\u0430ypal‹Latin+Cyrillic›.com c\u0430t‹Latin+Cyrillic›", "p\u0430ypal‹Latin+Cyrillic›.com c\u0430t‹Latin+Cyrillic›"},
	{"a Greek one, at the end", "sud\u03bf rm", "sud\u03bf‹Latin+Greek› rm", "sud\u03bf‹Latin+Greek› rm"},
	{"three scripts", "a\u03bf\u0585", "a\u03bf\u0585‹Latin+Greek+Armenian›", "a\u03bf\u0585‹Latin+Greek+Armenian›"},
	{"a word that only looks Latin", "\u0441\u043e\u0440\u0443 x", "\u0441\u043e\u0440\u0443‹Cyrillic› x", "\u0441\u043e\u0440\u0443‹Cyrillic› x"},
	{"one that does not", "копия файла", "копия файла", "копия файла"},
	{"an option that only looks Latin", "sh -\u0441 x", "sh -\u0441‹Cyrillic› x", "sh -\u0441‹Cyrillic› x"},
	{"a word of one letter", "он и \u0441 другом", "он и \u0441 другом", "он и \u0441 другом"},
	{"wide and mathematical letters", "\uff4c\uff53 \U0001d42b\U0001d426 -x\uff52", "\uff4c\uff53‹styled› \U0001d42b\U0001d426‹styled› -x\uff52‹Latin+styled›", "\uff4c\uff53‹styled› \U0001d42b\U0001d426‹styled› -x\uff52‹Latin+styled›"},
	{"scripts that are written beside Latin", "PCを使う Tシャツ API키 GoのAPI", "PCを使う Tシャツ API키 GoのAPI", "PCを使う Tシャツ API키 GoのAPI"},
	{"words of two scripts beside each other", "Go-программа, user@почта", "Go-программа, user@почта", "Go-программа, user@почта"},
	{"signs that look like ASCII", "a\u037e rm ..\u2215x \u2010rf", "a‹U+037E› rm ..‹U+2215›x ‹U+2010›rf", "a‹U+037E› rm ..‹U+2215›x ‹U+2010›rf"},
	{"a word of two directions", "ab\u05d0", "ab\u05d0‹RTL›‹Latin+Hebrew›", "ab\u05d0‹RTL›‹Latin+Hebrew›"},
	{"right to left words end visibly", "rm שלום 1 > 2 עולם", "rm שלום‹RTL› 1 > 2 עולם‹RTL›", "rm שלום‹RTL› 1 > 2 עולם‹RTL›"},
	{"right to left, then a line feed", "אב\nג", "אב‹RTL›‹LF›ג‹RTL›", "אב‹RTL›\nג‹RTL›"},
	{"right to left with points", "שָׁ1", "שָׁ‹RTL›1", "שָׁ‹RTL›1"},
	{"Arabic digits", "١+٢", "١‹RTL›+٢‹RTL›", "١‹RTL›+٢‹RTL›"},
}

func accents(n int) string { return strings.Repeat("\u0301", n) }

func spaces(n int) string { return strings.Repeat(" ", n) }

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
		"a b", "ls", "ls ", "ls  ", "ls\t", "\tls", "    ls", "  \tls", "\t ls", "a" + spaces(9) + "b", "a" + spaces(10) + "b", "⇥   ls",
		"a\tb", "a       b", "a" + spaces(6) + "\tb", "a\u00a0b", "a\u2003b", "a\tb", "a  b", "א", "א‹RTL›", "אRTL", "e\u0301", "é", "\u0301", "", " "}
	for _, c := range cases {
		texts = append(texts, c.in)
	}
	for r := rune(0); r <= 0x3000; r++ {
		texts = append(texts, string(r)+"x", "x"+string(r))
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
		if len(Block(a)) > 16*len(a) || len(Line(a)) > 16*len(a) {
			t.Fatalf("%q becomes too long", a)
		}
		checkSafe(t, Line(Line(a)))
		if (Marks(a) == nil) != (Block(a) == a) && !strings.Contains(a, "\t") {
			t.Fatalf("Block(%q) = %q, and the marks are %v", a, Block(a), Marks(a))
		}
		if a != b && !isFlood(a) && (Line(a) == Line(b) || Block(a) == Block(b)) {
			t.Fatalf("%q and %q look the same", a, b)
		}
		if c := Clip(a, 10); utf8.RuneCountInString(c) > 10 {
			t.Fatalf("Clip(%q) is too long: %q", a, c)
		} else {
			checkSafe(t, c)
		}
	})
}

// isFlood reports whether there are combining marks in s that are only counted.
func isFlood(s string) bool { return strings.Contains(Block(s), " combining›") }

func TestMarksSayWhatIsFoundTheGravestFirst(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"go test ./...\n\tindented\n    too\n", ""},
		{"a\u200bb\u200d\U000e0061 p\u0430ypal", "3 invisible characters; 1 word mixing Latin and Cyrillic"},
		{"\u202e \x1b[2K\r\n", "1 character that changes the direction of writing; 1 control character; 1 carriage return"},
		{"\u0441\u0430\u0440 ..\u2215x", "2 words or signs that look like ones of ASCII"},
		{"\xff\xff\ue000\u2028", "1 unusual line break; 2 bytes that are not UTF-8; 1 character without a meaning"},
		{"e" + accents(100) + "\u00a0" + "a" + spaces(50) + "b \nc", "96 combining marks too many; 1 unusual space; 1 long gap; 1 line with blanks at its end"},
		{"שלום ‹", "1 word written right to left; 1 character that marks are made of"},
		{"a\u0430 b\u0430 c\u03bf d\u0585\u03bf", "2 words mixing Latin and Cyrillic; 1 word mixing Latin, Armenian and Greek; 1 word mixing Latin and Greek"},
		{"a\u0430 a\u03bf a\u0585 \u0430\u03bf \u0585\u03bf", "5 words mixing several scripts"},
	} {
		var got []string
		for _, m := range Marks(c.in) {
			got = append(got, m.String())
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("Marks(%q): %s\nwant %s", c.in, s, c.want)
		}
	}
}

func TestEveryMarkOfEveryKindHasItsWords(t *testing.T) {
	for k := Direction; k <= Own; k++ {
		if one, many := (Mark{Kind: k, Count: 1}).String(), (Mark{Kind: k, Count: 2}).String(); len(one) < 8 || len(many) < 8 || one[1:] == many[1:] {
			t.Errorf("kind %d: %q, %q", k, one, many)
		}
	}
}

func TestNoMarkIsLongerThanSaid(t *testing.T) {
	names := slices.Clone(table().names)
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	if longest := "‹" + strings.Join(names[:3], "+") + "›"; len(longest) > LongestMark {
		t.Errorf("%s has %d bytes", longest, len(longest))
	}
}

func BenchmarkBlock(b *testing.B) {
	for name, s := range map[string]string{
		"plain":   strings.Repeat("go test ./... && echo done\n", 4000),
		"hostile": strings.Repeat("\x1b\u202eא\xff", 15000),
		"source":  strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"a: %w\", err)\n\t}\n", 2000),
		"mixed":   strings.Repeat("p\u0430ypal \u2c00\U00010400 ", 5000),
		"Russian": strings.Repeat("копия файла и каталога\n", 3000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Block(s)
			}
		})
	}
}
