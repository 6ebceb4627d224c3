package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// A broad pattern is one of deny or ask: a program by its base name, then words
// that occur after it in this order, with anything between.
type broad struct {
	text  string
	words []string
}

func parseBroad(text string, fold bool) (broad, error) {
	tokens, err := splitPattern(text)
	if err != nil {
		return broad{}, err
	}
	b := broad{text: text}
	for _, tok := range tokens {
		switch {
		case tok.bracket != 0:
			return b, errors.New("has brackets; a deny or ask pattern is words, with anything between them")
		case !tok.quoted && strings.ContainsAny(tok.text, "<>*?"):
			return b, fmt.Errorf("has %q; a deny or ask pattern is words, with anything between them", tok.text)
		}
		b.words = append(b.words, tok.text)
	}
	if len(b.words) == 0 {
		return b, errors.New("is empty, expected a program and words that may follow it")
	}
	if name := b.words[0]; name == "" || strings.HasSuffix(name, "/") {
		return b, fmt.Errorf("%q is not the name of a program", name)
	}
	b.words[0] = base(b.words[0])
	if fold {
		b.words[0] = strings.ToLower(b.words[0])
	}
	return b, nil
}

// loose is a word as deny sees it: what is known of it before it runs.
type loose struct {
	text string
	glob bool // it has unquoted * ? or [ in it, and stands for what these match
}

func (l loose) equals(want string) bool {
	if l.text == want {
		return true
	}
	if l.glob {
		ok, err := path.Match(l.text, want)
		return ok && err == nil
	}
	return false
}

// named reports whether a word is the program's name, with or without its
// directory.
func (l loose) named(name string, fold bool) bool {
	text := base(l.text)
	if fold {
		text = strings.ToLower(text)
	}
	return loose{text, l.glob}.equals(name)
}

// found is one command found anywhere in an item's.
type found struct {
	text    string
	words   []loose
	writes  []loose  // targets of redirections
	into    []string // the same for people: by its name, or as written where that is not known
	named   []loose  // what is read beside the words: sources of redirections, values of variables
	wrapped bool     // any of its words may be the program that runs
}

// in reports whether the pattern occurs.
func (b broad) in(f found, fold bool, samePath func(a, b string) bool) bool {
	for i, w := range f.words {
		if w.named(b.words[0], fold) { // what follows a later one follows this one too
			return b.follows(f.words[i+1:], samePath)
		}
		if !f.wrapped {
			break
		}
	}
	return false
}

func (b broad) follows(words []loose, samePath func(a, b string) bool) bool {
	want := b.words[1:]
	for _, w := range words {
		if len(want) == 0 {
			break
		}
		if broadlyEqual(want[0], w) || strings.ContainsAny(w.text+want[0], "/.") && samePath(want[0], w.text) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// broadlyEqual compares a word of a pattern with one of a command. Options are
// recognized in clusters, abbreviated, and with their value attached.
func broadlyEqual(want string, w loose) bool {
	if w.equals(want) {
		return true
	}
	got, _, _ := strings.Cut(w.text, "=")
	switch {
	case strings.HasPrefix(want, "--") && len(want) > 3:
		return len(got) > 3 && strings.HasPrefix(got, "--") && strings.HasPrefix(want, got)
	case len(want) == 2 && want[0] == '-' && isAlnum(want[1]):
		return len(w.text) > 2 && w.text[0] == '-' && w.text[1] != '-' && strings.IndexByte(w.text[1:], want[1]) >= 0
	}
	return false
}
