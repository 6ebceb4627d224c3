package policy

import (
	"errors"
	"fmt"
	"strings"
)

// A pattern is one allow pattern: which words, exactly, a command may have.
//
//	ls [-l -a] <path>...        options that may occur, then any number of paths
//	head [-n <number>] <path>   an option whose value is the next word
//	git log [-<number> --format=<word>]
//	sed -n <lines> <path>...    <lines> is a sed script that prints: 5p, 1,20p, 5,$p
//	diff <file> <file>          <file> is a path to a file that is there
//	rg [-n --] <word> <path>    -- may be given; what follows it are operands
//
// Options may occur from where they are listed on, until the next literal word:
// those of "git status" are no options of "git". Each is compared byte for byte.
type pattern struct {
	text    string
	program string
	items   []slot
	options [][]option // by how many items are matched: which may come now
	dashes  []bool     // likewise: -- may come now
}

// slot is one thing that must occur, in order.
type slot struct {
	prefix string // a literal, or what a placeholder is attached to
	value  value
	repeat bool // any number of times; the last item only
}

// option is one that may occur.
type option struct {
	text     string
	value    value
	attached bool // its value is the rest of the word, not the next word
}

// value is the kind of a placeholder.
type value int

const (
	nothing value = iota
	aPath
	aFile
	aWord
	aNumber
	someLines
)

var values = map[string]value{"<path>": aPath, "<file>": aFile, "<word>": aWord, "<number>": aNumber, "<lines>": someLines}

func parsePattern(text string) (*pattern, error) {
	tokens, err := splitPattern(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, errors.New("is empty, expected a program and what may follow it")
	}
	p := &pattern{text: text, program: tokens[0].text}
	if err := checkProgram(p.program); err != nil {
		return nil, err
	}
	b := patternBuilder{p: p}
	for _, tok := range tokens[1:] {
		if err := b.add(tok); err != nil {
			return nil, err
		}
	}
	if b.open {
		return nil, errors.New("has a [ without its ]")
	}
	b.close()
	return p, nil
}

func checkProgram(name string) error {
	switch {
	case name == "*":
		return errors.New("a bare * would allow everything; name the program")
	case strings.Contains(name, "/"):
		return fmt.Errorf("%q has a slash in it; a program is named as PATH finds it", name)
	case name == "[":
		return nil
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isAlnum(c) && !strings.ContainsRune("._+-", rune(c)) || i == 0 && (c == '-' || c == '.') {
			return fmt.Errorf("%q is not the name of a program", name)
		}
	}
	if shellOnly[name] {
		return fmt.Errorf("%s changes the shell itself and is always asked for", name)
	}
	return nil
}

// patternBuilder adds token after token.
type patternBuilder struct {
	p      *pattern
	open   bool     // inside [ ]
	opts   []option // that may come at this place
	dashes bool
}

func (b *patternBuilder) close() {
	b.p.options = append(b.p.options, b.opts)
	b.p.dashes = append(b.p.dashes, b.dashes)
}

func (b *patternBuilder) add(tok token) error {
	if tok.bracket != 0 {
		if (tok.bracket == '[') == b.open {
			return errors.New("has brackets that do not fit together")
		}
		b.open = !b.open
		return nil
	}
	if b.open {
		return b.option(tok)
	}
	it, err := parseItem(tok)
	if err != nil {
		return err
	}
	if n := len(b.p.items); n > 0 && b.p.items[n-1].repeat {
		return errors.New("has something after ..., which can only end a pattern")
	}
	b.close()
	b.p.items = append(b.p.items, it)
	if it.value == nothing { // the options before a subcommand are not its own
		b.opts, b.dashes = nil, false
	}
	return nil
}

func (b *patternBuilder) option(tok token) error {
	if tok.text == "--" {
		b.dashes = true
		return nil
	}
	if v, ok := values[tok.text]; ok && !tok.quoted {
		n := len(b.opts)
		if n == 0 || b.opts[n-1].value != nothing || strings.HasSuffix(b.opts[n-1].text, "=") {
			return fmt.Errorf("has %s in brackets without an option before it", tok.text)
		}
		b.opts = append(b.opts[:n-1:n-1], option{text: b.opts[n-1].text, value: v})
		return nil
	}
	o := option{text: tok.text}
	if at := strings.IndexByte(tok.text, '<'); at > 0 && !tok.quoted {
		v, ok := values[tok.text[at:]]
		if !ok {
			return fmt.Errorf("has %q, which is none of <path>, <file>, <word>, <number> and <lines>", tok.text[at:])
		}
		o = option{text: tok.text[:at], value: v, attached: true}
	}
	if o.text == "-" && o.value != aNumber || o.text[0] != '-' && o.text[0] != '+' {
		return fmt.Errorf("has %q in brackets, which is not an option", tok.text)
	}
	if strings.ContainsAny(o.text, "*?") {
		return fmt.Errorf("has %q: options are listed byte for byte", tok.text)
	}
	b.opts = append(b.opts[:len(b.opts):len(b.opts)], o)
	return nil
}

func parseItem(tok token) (slot, error) {
	text, repeat := tok.text, false
	if !tok.quoted {
		text, repeat = strings.CutSuffix(text, "...")
		if text == "" || text == "." { // "..." and "./..." are words
			text, repeat = tok.text, false
		}
		if strings.HasSuffix(text, "/") && repeat {
			text, repeat = tok.text, false
		}
		if at := strings.IndexByte(text, '<'); at >= 0 {
			v, ok := values[text[at:]]
			if !ok {
				return slot{}, fmt.Errorf("has %q, which is none of <path>, <file>, <word>, <number> and <lines>", text[at:])
			}
			return slot{prefix: text[:at], value: v, repeat: repeat}, nil
		}
		if strings.ContainsAny(text, "*?") {
			return slot{}, fmt.Errorf("has %q: a bare * or ? means nothing here; say <path>, <word> or <number>", tok.text)
		}
	}
	if repeat {
		return slot{}, fmt.Errorf("has ... after %q; only placeholders repeat", text)
	}
	return slot{prefix: text}, nil
}

// token is a word of a pattern, or a bracket around options.
type token struct {
	text    string
	quoted  bool
	bracket byte
}

func splitPattern(text string) ([]token, error) {
	var out []token
	s := text
	for {
		s = strings.TrimLeft(s, " ")
		if s == "" {
			return out, nil
		}
		var tok token
		var err error
		if tok, s, err = nextToken(s, len(out) == 0); err != nil {
			return nil, err
		}
		out = append(out, tok)
	}
}

func nextToken(s string, first bool) (token, string, error) {
	if s[0] == '[' && !first {
		return token{bracket: '['}, s[1:], nil
	}
	if s[0] == ']' && len(s) > 1 && s[1] != ' ' {
		return token{}, "", errors.New("has something right after a ]")
	}
	if s[0] == ']' {
		return token{bracket: ']'}, s[1:], nil
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return token{}, "", errors.New("has a control character in it")
		case c == '\'' || c == '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return token{}, "", errors.New("has a quote without its end")
			}
			b.WriteString(s[i+1 : i+1+end])
			i, quoted = i+1+end, true
		case c == ' ', c == ']' && i > 0 && !first:
			return token{text: b.String(), quoted: quoted}, s[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	return token{text: b.String(), quoted: quoted}, "", nil
}

// A mismatch is where a command stops to fit a pattern: the further, the closer.
type mismatch struct {
	at  int    // index of the word; len(words) if something is missing
	why string // about that word; "" if there is nothing particular to say
}

// match compares words, without the program, with the pattern. pathOK judges
// paths and says what is wrong with one, or with taking it for a file.
func (p *pattern) match(words []string, pathOK func(word string, file bool) string) (mismatch, bool) {
	// Which states can be reached before each word: a state is the number of
	// items matched, doubled, plus one after --.
	states := 2 * (len(p.items) + 1)
	reached := make([]bool, (len(words)+2)*states)
	reached[0] = true
	var miss mismatch
	m := matcher{p: p, words: words, pathOK: pathOK}
	for at := range words {
		for st := range states {
			if !reached[at*states+st] {
				continue
			}
			if at > miss.at {
				miss = mismatch{at: at}
			}
			m.step(at, st/2, st%2 == 1, func(used, items int, operands bool) {
				to := 2 * items
				if operands {
					to++
				}
				reached[min(at+used, len(words)+1)*states+to] = true
			})
			if m.why != "" && miss.at == at && miss.why == "" {
				miss.why = m.why
			}
			m.why = ""
		}
	}
	for st := range states {
		if reached[len(words)*states+st] {
			if p.done(st / 2) {
				return mismatch{}, true
			}
			miss = mismatch{at: len(words)}
		}
	}
	return miss, false
}

// done reports whether nothing more must come.
func (p *pattern) done(items int) bool {
	return items == len(p.items) || items == len(p.items)-1 && p.items[items].repeat
}

type matcher struct {
	p      *pattern
	words  []string
	pathOK func(word string, file bool) string
	why    string
}

// step tries everything that words[at] can be once so many items are matched.
func (m *matcher) step(at, items int, operands bool, next func(used, items int, operands bool)) {
	w := m.words[at]
	if !operands {
		if m.p.dashes[items] && w == "--" {
			next(1, items, true)
		}
		for _, o := range m.p.options[items] {
			rest, ok := strings.CutPrefix(w, o.text)
			switch {
			case !ok:
			case o.attached: // an option without its value takes the next word for it
				if rest != "" && m.fits(o.value, rest, true) {
					next(1, items, false)
				}
			case rest != "":
			case o.value == nothing:
				next(1, items, false)
			case at+1 < len(m.words) && m.fits(o.value, m.words[at+1], false):
				next(2, items, false)
			}
		}
	}
	if items == len(m.p.items) {
		return
	}
	it := m.p.items[items]
	if it.value == nothing {
		if w == it.prefix {
			next(1, items+1, operands || w == "--")
		}
		return
	}
	rest, ok := strings.CutPrefix(w, it.prefix)
	if !ok || rest == "" && it.prefix != "" || !m.fits(it.value, rest, operands || it.prefix != "") {
		return
	}
	next(1, items+1, operands)
	if it.repeat {
		next(1, items, operands)
	}
}

// fits reports whether a word is what a placeholder stands for. One that begins
// with - may be an option, unless it cannot be one at its place.
func (m *matcher) fits(v value, w string, operand bool) bool {
	if !operand && strings.HasPrefix(w, "-") {
		return false
	}
	switch v {
	case aPath, aFile:
		if w == "" {
			return false
		}
		why := m.pathOK(w, v == aFile)
		if why != "" {
			m.why = why
		}
		return why == ""
	case aWord:
		return true
	case aNumber:
		return isNumber(w)
	case someLines:
		return isLines(w)
	}
	return false
}

func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 18
}

// isLines reports whether a sed script only prints lines.
func isLines(s string) bool {
	s, ok := strings.CutSuffix(s, "p")
	from, to, two := strings.Cut(s, ",")
	return ok && (isNumber(from) || from == "$") && (!two || isNumber(to) || to == "$")
}
