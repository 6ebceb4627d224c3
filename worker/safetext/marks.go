package safetext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is what about a text is shown as a mark, the gravest first.
type Kind int

// The kinds of what is found in a text.
const (
	Direction   Kind = iota + 1 // characters that change the direction of writing
	Invisible                   // characters that are not drawn: zero width, tags, fillers, selectors
	Mixed                       // words with letters of several scripts
	Imitation                   // words and signs that look like ones of ASCII
	Control                     // controls, escapes among them
	Separator                   // line breaks other than the line feed
	Invalid                     // bytes that are not UTF-8
	Undefined                   // private use and unassigned characters
	Combining                   // combining marks on nothing, or too many on one character
	Blank                       // spaces that are not the usual one
	Gap                         // gaps long enough to push something out of sight
	Trailing                    // lines with blanks at their end
	Return                      // carriage returns
	RightToLeft                 // words written right to left
	Own                         // characters that marks are made of
)

// Mark is one thing that is found in a text, and how often. Its String is words
// for people, as in "2 invisible characters".
type Mark struct {
	Kind    Kind
	Count   int
	Scripts string // Mixed only, as in "Latin+Cyrillic"; "" for several such pairs
}

// manyPairs is how many pairs of scripts are told apart.
const manyPairs = 4

// Marks returns what Block marks in s, the gravest first; nil if there is
// nothing. The cost is that of Block.
func Marks(s string) []Mark {
	if isPlain(s, true) {
		return nil
	}
	w := writer{block: true, afterBlank: true, found: &finds{mixed: map[string]int{}}}
	w.all(s)
	return w.found.marks()
}

type finds struct {
	counts [Own + 1]int
	mixed  map[string]int // by their scripts
}

func (w *writer) find(k Kind, n int) {
	if w.found != nil {
		w.found.counts[k] += n
	}
}

func (f *finds) marks() (all []Mark) {
	for k, n := range f.counts {
		switch {
		case n == 0:
		case Kind(k) == Mixed && len(f.mixed) <= manyPairs:
			pairs := slices.SortedFunc(maps.Keys(f.mixed), func(a, b string) int {
				return cmp.Or(f.mixed[b]-f.mixed[a], cmp.Compare(a, b))
			})
			for _, p := range pairs {
				all = append(all, Mark{Mixed, f.mixed[p], p})
			}
		default:
			all = append(all, Mark{Kind: Kind(k), Count: n})
		}
	}
	return all
}

var kindWords = [...]struct{ one, many string }{
	Direction:   {"character that changes the direction of writing", "characters that change the direction of writing"},
	Invisible:   {"invisible character", "invisible characters"},
	Mixed:       {"word mixing", "words mixing"},
	Imitation:   {"word or sign that looks like one of ASCII", "words or signs that look like ones of ASCII"},
	Control:     {"control character", "control characters"},
	Separator:   {"unusual line break", "unusual line breaks"},
	Invalid:     {"byte that is not UTF-8", "bytes that are not UTF-8"},
	Undefined:   {"character without a meaning", "characters without a meaning"},
	Combining:   {"combining mark too many", "combining marks too many"},
	Blank:       {"unusual space", "unusual spaces"},
	Gap:         {"long gap", "long gaps"},
	Trailing:    {"line with blanks at its end", "lines with blanks at their end"},
	Return:      {"carriage return", "carriage returns"},
	RightToLeft: {"word written right to left", "words written right to left"},
	Own:         {"character that marks are made of", "characters that marks are made of"},
}

func (m Mark) String() string {
	if m.Kind < Direction || m.Kind > Own {
		return ""
	}
	words := kindWords[m.Kind].many
	if m.Count == 1 {
		words = kindWords[m.Kind].one
	}
	if m.Kind == Mixed {
		words += " " + mixture(m.Scripts)
	}
	return fmt.Sprintf("%d %s", m.Count, words)
}

// mixture is "Latin and Cyrillic" for "Latin+Cyrillic".
func mixture(scripts string) string {
	if scripts == "" {
		return "several scripts"
	}
	names := strings.Split(scripts, "+")
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
