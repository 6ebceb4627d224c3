package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// searchBudget bounds how much text inside arguments is searched as a command of
// its own. Who nests more than that has every word taken for a program.
const searchBudget = 1 << 20

// search finds every command that an item's command has in it, whether it is
// understood or not: in substitutions, conditions and functions, behind
// wrappers, in scripts given as words. env is what is added to its environment.
func search(command string, s script, home string, env map[string]string) []found {
	f := finder{home: home, budget: searchBudget, seen: map[string]bool{}, vars: map[string][]string{}}
	f.environment(env)
	if s.why == "" {
		for _, p := range s.parts {
			f.add(foundIn(p))
			for _, a := range p.assigns { // of BASH_ENV, GIT_SSH_COMMAND and others the value is a command
				f.later(a.value)
			}
		}
	} else {
		f.text(command)
		if strings.Contains(command, "\r") {
			f.text(strings.ReplaceAll(command, "\r", "\n"))
		}
	}
	for len(f.queue) > 0 {
		next := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		f.text(next)
	}
	if f.budget < 0 {
		for _, words := range cut(command, true) {
			f.found = append(f.found, found{text: command, words: words, wrapped: true})
		}
	}
	return f.found
}

func foundIn(p part) found {
	out := found{text: p.text}
	for _, w := range p.words {
		out.words = append(out.words, loose{text: w})
	}
	for _, r := range p.redirs {
		switch r.use() {
		case writes:
			out.writes = append(out.writes, loose{text: r.target})
			out.into = append(out.into, r.target)
		case reads:
			out.named = append(out.named, loose{text: r.target})
		}
	}
	for _, a := range p.assigns {
		out.named = append(out.named, loose{text: a.value})
	}
	return out
}

type finder struct {
	home   string
	found  []found
	queue  []string
	seen   map[string]bool
	vars   map[string][]string // what variables may be, as far as the text says
	pick   int                 // which of these a word is made with; 0 for none of them
	most   int                 // how many there are for a variable in it
	made   int                 // how many words were made with values
	budget int
}

// environment notes what is added to the environment: values that may be used,
// name files, or be commands themselves.
func (f *finder) environment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		f.set(name, env[name])
		f.later(env[name])
		f.found = append(f.found, found{named: []loose{{text: env[name]}}})
	}
}

// text searches a text in both dialects, or as well as can be.
func (f *finder) text(s string) {
	short := len(s) <= maxParsed
	if short && !isDeep(s) {
		read := false
		for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
			if file, err := parse(s, lang); err == nil {
				f.file(s, file)
				read = true
			}
		}
		if read {
			return
		}
	}
	if short { // where quotes do not close, or are too many, they say nothing
		for _, words := range cut(s, true) {
			f.add(found{text: s, words: words, wrapped: true})
		}
	}
	for _, words := range cut(s, false) {
		f.add(found{text: s, words: afterPrefix(words)})
	}
}

// afterPrefix leaves out the reserved words and assignments before a program.
func afterPrefix(words []loose) []loose {
	for len(words) > 1 && (prefixes[words[0].text] || strings.Contains(words[0].text, "=")) {
		words = words[1:]
	}
	return words
}

var prefixes = setOf("! if then else elif while until do time coproc { [[")

// file collects the commands of a parsed text.
func (f *finder) file(src string, file *syntax.File) {
	f.assignments(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			f.stmt(src, n)
		case *syntax.CallExpr:
			f.call(src, n)
		case *syntax.DeclClause:
			words := []loose{{text: n.Variant.Value}}
			for _, a := range n.Args {
				if a.Value != nil {
					words = append(words, f.word(a.Value)...)
				}
			}
			f.add(found{text: n.Variant.Value, words: words})
		}
		return true
	})
}

func (f *finder) call(src string, n *syntax.CallExpr) {
	c := found{text: cutText(src, n)}
	for i, arg := range n.Args {
		words := f.word(arg)
		c.words = append(c.words, words...)
		if i == 0 && (f.most > 0 || words[0].text == "" && arg.Lit() == "") {
			c.wrapped = true // it may be nothing, and the next the program
		}
	}
	for _, a := range n.Assigns {
		if a.Value != nil {
			for _, w := range f.word(a.Value) {
				c.named = append(c.named, w)
				f.later(w.text)
			}
		}
	}
	switch {
	case len(c.words) > 0:
		f.add(c)
	case len(c.named) > 0:
		f.found = append(f.found, c)
	}
}

func (f *finder) stmt(src string, s *syntax.Stmt) {
	var c found
	for _, r := range s.Redirs {
		switch {
		case r.Hdoc != nil:
			if call, ok := s.Cmd.(*syntax.CallExpr); ok && f.isShell(call) {
				for _, w := range f.word(r.Hdoc) {
					f.now(w.text)
				}
			}
		case r.Op == syntax.WordHdoc:
			for _, w := range f.word(r.Word) {
				c.named = append(c.named, w)
				f.now(w.text)
			}
		case r.Word != nil:
			f.redirect(src, r, &c)
		}
	}
	if len(c.writes) > 0 {
		c.text = cutText(src, s)
	}
	if len(c.writes)+len(c.named) > 0 {
		f.found = append(f.found, c)
	}
}

// mayBeAFile says of a word that stands for a descriptor whether Bash may take it for
// a file all the same: its value may be another, and "2-" in quotes is a name.
func (f *finder) mayBeAFile(src string, r *syntax.Redirect, text string) bool {
	moves := strings.HasSuffix(text, "-") && text != "-"
	return r.Op == syntax.DplOut && (!f.isSet(r.Word) || moves && asWritten(src, r.Word) != text)
}

// isSet says that the text itself sets all that a word has the value of.
func (f *finder) isSet(w *syntax.Word) bool {
	set := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			set = set && n.Exp == nil && f.vars[n.Param.Value] != nil
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			set = false
		}
		return set
	})
	return set
}

// redirect notes the files that a redirection may be to.
func (f *finder) redirect(src string, r *syntax.Redirect, c *found) {
	words := f.word(r.Word)
	writing := false
	for i, w := range words {
		use := useOf(r.Op, w.text)
		if use == noFile && f.mayBeAFile(src, r, w.text) {
			use = writes
		}
		switch use {
		case reads:
			c.named = append(c.named, w)
		case writes:
			c.writes = append(c.writes, w)
			// The first is without values where the text has some.
			writing = writing || i > 0 || f.most == 0
		}
	}
	switch {
	case !writing:
	case !f.isKnown(src, r.Word):
		c.into = append(c.into, asWritten(src, r.Word))
	default:
		for _, w := range words {
			c.into = append(c.into, w.text)
		}
	}
}

func (f *finder) isShell(call *syntax.CallExpr) bool {
	for _, w := range call.Args {
		for _, l := range f.word(w) {
			if wrapperKind(base(l.text)) == "any" {
				return true
			}
		}
	}
	return false
}

func cutText(src string, n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(src)) {
		return ""
	}
	return src[from:to]
}

// later searches a word as a command of its own, if it can be one.
func (f *finder) later(word string) {
	if strings.ContainsAny(word, " \t\n;|&()`$<>'\"\\!") {
		f.now(word)
	}
}

// now searches a text as a command of its own.
func (f *finder) now(text string) {
	if f.seen[text] || f.budget < 0 {
		return
	}
	f.seen[text] = true
	f.budget -= len(text) + 1
	f.queue = append(f.queue, text)
}

// add keeps a command, and looks through it if it is a wrapper.
func (f *finder) add(c found) {
	kind := ""
	for _, w := range c.words {
		kind = wrapperKind(strings.ToLower(base(w.text)))
		if !c.wrapped || kind != "" {
			break
		}
	}
	switch kind {
	case "any":
		c.wrapped = true
		for _, w := range c.words {
			f.later(w.text)
		}
	case "code":
		f.code(c.words[1:])
	case "git":
		f.git(c)
	case "find", "fd", "rg":
		f.after(c, kind)
	}
	f.found = append(f.found, c)
}

// code searches words that are programs in another language: whatever in them
// looks like a command may be one.
func (f *finder) code(words []loose) {
	for _, w := range words {
		if !strings.ContainsAny(w.text, " ;|&()`'\"!=/") {
			continue
		}
		for _, piece := range cut(w.text, true) {
			f.found = append(f.found, found{text: w.text, words: piece, wrapped: true})
		}
	}
}

// git searches what git runs: values of -c and options that name programs.
func (f *finder) git(c found) {
	for i, w := range c.words {
		switch {
		case w.text == "-c" || w.text == "-x" || w.text == "--exec" || strings.HasPrefix(w.text, "-O"):
			f.code(c.words[i:min(i+2, len(c.words))])
		case strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "="):
			f.code(c.words[i : i+1])
		case w.text == "bisect" || w.text == "foreach" || w.text == "config" || w.text == "filter-branch" || w.text == "rebase":
			f.found = append(f.found, found{text: c.text, words: c.words[i+1:], wrapped: true})
			f.code(c.words[i+1:])
		}
	}
}

// after searches what follows the options that run a command.
func (f *finder) after(c found, kind string) {
	for i, w := range c.words {
		runs := false
		switch kind {
		case "find":
			runs = strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok")
		case "fd":
			runs = w.text == "-x" || w.text == "-X" || strings.HasPrefix(w.text, "--exec")
		case "rg":
			runs = strings.HasPrefix(w.text, "--pre") || strings.HasPrefix(w.text, "--hostname-bin")
		}
		switch {
		case runs && c.wrapped: // then all its words are looked at already
			for _, w := range c.words[i+1:] {
				f.later(w.text)
			}
			return
		case runs:
			f.add(found{text: c.text, words: c.words[i+1:], wrapped: true})
			f.code(c.words[i : i+1])
			return
		}
	}
}

// cut splits a text where commands may begin, without understanding it: also at
// quotes, if they say nothing.
func cut(s string, atQuotes bool) (pieces [][]loose) {
	var piece []loose
	var word strings.Builder
	endWord := func() {
		if word.Len() > 0 {
			piece = append(piece, loose{text: word.String()})
			word.Reset()
		}
	}
	endPiece := func() {
		endWord()
		if piece != nil {
			pieces = append(pieces, piece)
			piece = nil
		}
	}
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case !atQuotes && quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case !atQuotes && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(s) && quote != '\'':
			if i++; s[i] != '\n' {
				word.WriteByte(s[i])
			}
		case quote == '\'':
			word.WriteByte(c)
		case c == '`' || c == '(' || c == ')':
			endPiece()
		case quote != 0:
			word.WriteByte(c)
		case strings.IndexByte(";|&\n\r{}", c) >= 0:
			endPiece()
		case c == ' ' || c == '\t' || c == '<' || c == '>',
			atQuotes && strings.IndexByte("'\"[],=!$", c) >= 0:
			endWord()
		default:
			word.WriteByte(c)
		}
	}
	endPiece()
	return pieces
}
