package safetext

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
)

// word is what is known of the letters of a word: letters, digits, _ and the
// marks that they carry.
type word struct {
	scripts  []script // in the order in which they came, at most 3
	letters  int
	imitates bool // each of its letters looks like one of ASCII
	free     bool // it stands after a blank
}

// add takes note of a letter.
func (w *word) add(s script, imitates, afterBlank bool) {
	if w.letters++; w.letters == 1 {
		w.imitates, w.free = true, afterBlank
	}
	w.imitates = w.imitates && imitates
	if s != neutral && len(w.scripts) < 3 && !slices.Contains(w.scripts, s) {
		w.scripts = append(w.scripts, s)
	}
}

// verdict returns the names of the scripts to flag a word for, and why. A letter
// by itself is a word in several languages, so it has to stand beside a sign, as
// that of an option does, to be one that imitates.
func (w *word) verdict() (names string, k Kind) {
	switch {
	case len(w.scripts) > 1:
		var all []string
		for _, s := range w.scripts {
			all = append(all, s.String())
		}
		return strings.Join(all, "+"), Mixed
	case len(w.scripts) == 1 && w.imitates && w.scripts[0] != latin() && (w.letters > 1 || !w.free):
		return w.scripts[0].String(), Imitation
	}
	return "", 0
}

// endWord ends a word, and flags it where its letters are not what they seem.
func (w *writer) endWord() {
	if w.word.letters == 0 {
		return
	}
	names, kind := w.word.verdict()
	w.word = word{scripts: w.word.scripts[:0]}
	if names == "" {
		return
	}
	w.find(kind, 1)
	if kind == Mixed && w.found != nil {
		w.found.mixed[names]++
	}
	w.mark(names)
}

// script is a script's place among the names of unicode.Scripts, sorted, from 1
// on; or one of these.
type script int

const (
	neutral script = 0  // belongs with any other
	styled  script = -1 // ASCII in another shape: wide, bold, numerals made of letters
)

func (s script) String() string {
	if s == styled {
		return "styled"
	}
	return strings.ReplaceAll(table().names[s-1], "_", " ")
}

// neutrals are written beside Latin letters without a blank, as a matter of
// course: no words are told apart in them, or blanks do not tell them apart.
var neutrals = []string{"Common", "Inherited", "Han", "Hiragana", "Katakana", "Bopomofo", "Hangul", "Yi",
	"Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet"}

// imitators are scripts most of whose letters look like Latin ones, and that
// hardly anything is written in.
var imitators = []string{"Cherokee", "Coptic", "Lisu", "Old_Italic", "Carian", "Lycian", "Lydian", "Elbasan", "Deseret", "Osage"}

// imitations are the letters of other scripts that look like one of ASCII.
const imitations = "" +
	"\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u04cf\u04af" + // Cyrillic aeopcyxsijhdqwly
	"\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u04ae\u04c0\u050c\u051a\u051c\u0417" + // ABEKMHOPCTYXSIJYIGQW3
	"\u03b1\u03b3\u03b9\u03bd\u03bf\u03c1\u03c3\u03c5\u03c7\u03f2\u03f3\u03ba" + // Greek ayivopouxcjk
	"\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u037f\u03f9" + // ABEZHIKMNOPTYXJC
	"\u0585\u057d\u0578\u0570\u0581\u0566\u057c\u0584\u0555\u054f\u053c\u054d" // Armenian ounhgqnfOSLU

// scriptOf returns the script of a letter that is not of ASCII, and whether it
// looks like one that is.
func scriptOf(r rune) (s script, imitates bool) {
	switch {
	case r >= 0xff21 && r <= 0xff5a, r >= 0x1d400 && r <= 0x1d7ff, // wide; mathematical
		r >= 0x2100 && r <= 0x2188, // letter-like symbols and Roman numerals
		r == 0x0251, r == 0x0261:   // a and g as phoneticians write them
		return styled, true
	}
	t := table()
	i := sort.Search(len(t.spans), func(i int) bool { return t.spans[i].hi >= r })
	if i == len(t.spans) || r < t.spans[i].lo {
		return neutral, false
	}
	s = t.spans[i].script
	return s, s != neutral && (t.imitators[s] || strings.ContainsRune(imitations, r))
}

func latin() script { return table().latin }

// scriptTable is unicode.Scripts as one sorted table.
type scriptTable struct {
	names     []string
	spans     []scriptSpan
	latin     script
	imitators map[script]bool
}

type scriptSpan struct {
	lo, hi rune
	script script
}

var table = sync.OnceValue(func() *scriptTable {
	t := &scriptTable{names: slices.Sorted(maps.Keys(unicode.Scripts)), imitators: map[script]bool{}}
	for i, name := range t.names {
		s := script(i + 1)
		switch {
		case name == "Latin":
			t.latin = s
		case slices.Contains(neutrals, name):
			s = neutral
		case slices.Contains(imitators, name):
			t.imitators[s] = true
		}
		for _, r := range unicode.Scripts[name].R16 {
			t.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), s)
		}
		for _, r := range unicode.Scripts[name].R32 {
			t.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), s)
		}
	}
	slices.SortFunc(t.spans, func(a, b scriptSpan) int { return int(a.lo - b.lo) })
	return t
})

func (t *scriptTable) add(lo, hi, stride rune, s script) {
	if stride == 1 {
		t.spans = append(t.spans, scriptSpan{lo, hi, s})
		return
	}
	for r := lo; r <= hi; r += stride {
		t.spans = append(t.spans, scriptSpan{r, r, s})
	}
}
