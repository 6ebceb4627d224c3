package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Token says what a stretch of a command is.
type Token string

// What a stretch of a command can be.
const (
	TokenProgram    Token = "program"    // the first word of a simple command
	TokenOption     Token = "option"     // a word that begins with - after unquoting, up to --
	TokenWord       Token = "word"       // any other
	TokenString     Token = "string"     // what is quoted, and a here-document to the line that ends it
	TokenOperator   Token = "operator"   // what joins and groups commands, keywords included
	TokenRedirect   Token = "redirect"   // with the file that it names
	TokenAssignment Token = "assignment" // of a variable, with its value
	TokenExpansion  Token = "expansion"  // what the shell replaces by something else
	TokenComment    Token = "comment"
	TokenBlank      Token = "blank"
	TokenUnparsed   Token = "unparsed" // the whole of a command that cannot be read
)

// Span is a stretch of a command.
type Span struct {
	Start, End int // bytes
	Kind       Token
}

// Highlight takes a command apart for the eye: its structure as a POSIX shell
// reads it, or else Bash. It judges nothing. The spans follow each other and
// cover the command, whose text they do not change. What cannot be read, or not
// be relied on to be read like that by every shell, is one TokenUnparsed. The
// cost is that of parsing and of sorting the spans.
func Highlight(command string) []Span {
	if command == "" {
		return nil
	}
	marks, err := highlight(command)
	if err != nil {
		return []Span{{0, len(command), TokenUnparsed}}
	}
	return flatten(command, marks)
}

// highlight returns spans in any order, of which one can lie in another.
func highlight(command string) (marks []Span, err error) {
	defer func() { // a mistake in the parser
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	if why := strange(command); why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	var f *syntax.File
	for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		f, err = syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	p := painter{src: command, words: map[*syntax.Word]Token{}, quoted: map[syntax.Node]bool{}}
	syntax.Walk(f, p.node)
	return p.marks, nil
}

// painter collects spans from a syntax tree.
type painter struct {
	src    string
	marks  []Span
	words  map[*syntax.Word]Token // what words are of which more is known
	quoted map[syntax.Node]bool   // parts of words whose quotes are not told apart
	inner  []Token                // what other words are, in the nodes that are being visited
}

// outside is the kind of a span that stands for what is outside of any.
const outside Token = ""

func (p *painter) mark(from, to syntax.Pos, kind Token) {
	p.add(int(from.Offset()), int(to.Offset()), kind)
}

func (p *painter) add(from, to int, kind Token) {
	to = min(to, len(p.src))
	if from < to {
		p.marks = append(p.marks, Span{from, to, kind})
	}
}

// node takes note of one node, before those in it; nil ends one.
func (p *painter) node(n syntax.Node) bool {
	if n == nil {
		p.inner = p.inner[:len(p.inner)-1]
		return true
	}
	inner := TokenWord
	if len(p.inner) > 0 {
		inner = p.inner[len(p.inner)-1]
	}
	p.visit(n, inner)
	switch n.(type) {
	case *syntax.ParamExp, *syntax.ArithmExp:
		inner = TokenExpansion
	case *syntax.ArrayExpr:
		inner = TokenAssignment
	case *syntax.CmdSubst, *syntax.ProcSubst:
		inner = TokenWord
	}
	p.inner = append(p.inner, inner)
	return true
}

// visit marks what a node is. A word of which nothing else is known is as said.
func (p *painter) visit(n syntax.Node, inner Token) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		p.call(n)
	case *syntax.DeclClause:
		p.mark(n.Variant.Pos(), n.Variant.End(), TokenProgram)
	case *syntax.Assign:
		p.assign(n)
	case *syntax.Redirect:
		p.redirect(n)
	case *syntax.Word:
		p.word(n, inner)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		if !p.quoted[n] {
			p.mark(n.Pos(), n.End(), TokenString)
		}
	case *syntax.ParamExp, *syntax.ArithmExp, *syntax.ExtGlob:
		p.mark(n.Pos(), n.End(), TokenExpansion)
	case *syntax.CmdSubst:
		width := 2
		if n.Backquotes {
			width = 1
		}
		p.substitution(n.Left, n.Right, width)
	case *syntax.ProcSubst:
		p.substitution(n.OpPos, n.Rparen, 2)
	case *syntax.FuncDecl:
		if n.Name != nil {
			p.mark(n.Name.Pos(), n.Name.End(), TokenWord)
		}
	case *syntax.WordIter:
		p.mark(n.Name.Pos(), n.Name.End(), TokenWord)
	case *syntax.Comment:
		p.mark(n.Pos(), n.End(), TokenComment)
	}
}

// call tells the words of a simple command apart.
func (p *painter) call(c *syntax.CallExpr) {
	options := true
	for i, w := range c.Args {
		text, _ := literal(w)
		switch {
		case i == 0:
			p.words[w] = TokenProgram
		case options && strings.HasPrefix(text, "-") && text != "-":
			p.words[w] = TokenOption
			options = text != "--"
		}
	}
}

func (p *painter) assign(a *syntax.Assign) {
	if a.Naked { // a word of export and its like
		return
	}
	p.mark(a.Pos(), a.End(), TokenAssignment)
	if a.Value != nil {
		p.words[a.Value] = TokenAssignment
	}
}

// word marks a word. Of programs and options the quotes are not told apart: what
// matters is what they are.
func (p *painter) word(w *syntax.Word, other Token) {
	kind := cmp.Or(p.words[w], other)
	p.mark(w.Pos(), w.End(), kind)
	if kind == TokenProgram || kind == TokenOption {
		for _, part := range w.Parts {
			p.quoted[part] = true
		}
	}
}

// redirect marks a redirection with its target, and the text of a here-document.
func (p *painter) redirect(r *syntax.Redirect) {
	p.mark(r.Pos(), r.Word.End(), TokenRedirect)
	p.words[r.Word] = TokenRedirect
	if r.Hdoc != nil {
		p.words[r.Hdoc] = TokenString
	}
}

// substitution marks the brackets of commands inside a word.
func (p *painter) substitution(left, right syntax.Pos, width int) {
	from, to := int(left.Offset()), int(right.Offset())
	p.add(from, from+width, TokenExpansion)
	p.add(from+width, to, outside)
	p.add(to, to+1, TokenExpansion)
}

// flatten makes spans that follow each other of ones that lie in each other: the
// innermost counts. What is in none is blank or an operator.
func flatten(src string, marks []Span) []Span {
	slices.SortStableFunc(marks, func(a, b Span) int {
		return cmp.Or(a.Start-b.Start, b.End-a.End)
	})
	f := flattener{src: src}
	for _, m := range marks {
		f.leave(m.Start)
		if n := len(f.in); n > 0 {
			m.End = min(m.End, f.in[n-1].End)
		}
		if m.Start >= f.at && m.Start < m.End {
			f.in = append(f.in, m)
		}
	}
	f.leave(len(src))
	f.write(len(src), outside)
	return f.spans
}

type flattener struct {
	src   string
	spans []Span
	at    int    // what is before it is written
	in    []Span // that at lies in, the innermost last
}

// leave writes what comes before a place, and leaves the spans that end there.
func (f *flattener) leave(place int) {
	for n := len(f.in); n > 0; n = len(f.in) {
		top := f.in[n-1]
		if top.End > place {
			f.write(place, top.Kind)
			return
		}
		f.write(top.End, top.Kind)
		f.in = f.in[:n-1]
	}
	f.write(place, outside)
}

// write adds spans up to a place.
func (f *flattener) write(to int, kind Token) {
	for f.at < to {
		end, k := to, kind
		if kind == outside {
			end, k = f.between(to)
		}
		if n := len(f.spans); n > 0 && f.spans[n-1].Kind == k {
			f.spans[n-1].End = end
		} else {
			f.spans = append(f.spans, Span{f.at, end, k})
		}
		f.at = end
	}
}

// between tells blanks from operators. A line that is continued is blank.
func (f *flattener) between(to int) (end int, k Token) {
	const blanks = " \t\n"
	rest := f.src[f.at:to]
	if n := len(rest) - len(strings.TrimLeft(rest, blanks)); n > 0 {
		return f.at + n, TokenBlank
	}
	if strings.HasPrefix(rest, "\\\n") {
		return f.at + 2, TokenBlank
	}
	if n := strings.IndexAny(rest[1:], blanks+"\\"); n >= 0 {
		return f.at + 1 + n, TokenOperator
	}
	return to, TokenOperator
}
