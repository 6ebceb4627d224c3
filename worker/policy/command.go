package policy

import (
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A script is what two readings of a command, as POSIX shell and as Bash, agree
// on. It is understood only if why is "".
type script struct {
	why   string // why it is not understood; its parts then only help to tell
	whole bool   // that is about all of it, not about one of its parts
	parts []part
}

// A part is one simple command of a script with its redirections.
type part struct {
	text    string   // as written
	call    string   // the same without redirections; "" for what is no simple command
	op      string   // what stands before it: "", "&&", "||", "|", ";", "&" or "newline"
	words   []string // after unquoting: the program, then its arguments
	assigns []assign
	redirs  []redir
	piped   bool   // it is one of several commands of a pipeline
	why     string // why it is not understood
}

type assign struct{ name, value string }

type redir struct {
	text   string // as written
	op     syntax.RedirOperator
	fd     string // as written: "", 0, 1 or 2
	target string // after unquoting
	why    string // why the target is not known; it is then what comes before that
}

// use is what a redirection does with the file that its word names.
type use int

const (
	noFile use = iota // it duplicates or closes a descriptor, or brings the text itself
	reads
	writes // it may make or change it
)

// useOf is the one place that tells what a redirection does. To Bash a duplicate of
// what is no descriptor is a file for both outputs.
func useOf(op syntax.RedirOperator, word string) use {
	switch op {
	case syntax.RdrIn:
		return reads
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return noFile
	case syntax.DplOut:
		if word == "-" || isNumber(strings.TrimSuffix(word, "-")) {
			return noFile
		}
	}
	return writes
}

func (r redir) use() use { return useOf(r.op, r.target) }

// understand reads a command in both dialects.
func understand(command string) script {
	if why := strange(command); why != "" {
		return script{why: why, whole: true}
	}
	posix, err := parse(command, syntax.LangPOSIX)
	if err != nil {
		return script{why: "it cannot be read as a POSIX shell command: " + parseReason(err), whole: true}
	}
	s := readFile(command, posix)
	if s.why != "" {
		return s
	}
	bash, err := parse(command, syntax.LangBash)
	if err != nil {
		return script{why: "it cannot be read as a Bash command: " + parseReason(err), whole: true, parts: s.parts}
	}
	if b := readFile(command, bash); b.why != "" || !sameParts(s.parts, b.parts) {
		s.why, s.whole = "a POSIX shell and Bash would read it differently", true
	}
	return s
}

// Parsers are large and can be used again.
var parsers = map[syntax.LangVariant]*sync.Pool{
	syntax.LangPOSIX: {New: func() any { return newParser(syntax.LangPOSIX) }},
	syntax.LangBash:  {New: func() any { return newParser(syntax.LangBash) }},
}

func newParser(lang syntax.LangVariant) *syntax.Parser {
	return syntax.NewParser(syntax.Variant(lang))
}

// parse never panics: a mistake in the parser is a command that is not
// understood.
func parse(command string, lang syntax.LangVariant) (f *syntax.File, err error) {
	pool := parsers[lang]
	p := pool.Get().(*syntax.Parser)
	defer func() {
		if r := recover(); r != nil { // p is left to the collector
			f, err = nil, fmt.Errorf("the parser failed: %v", r)
			return
		}
		pool.Put(p)
	}()
	return p.Parse(strings.NewReader(command), "")
}

func parseReason(err error) string {
	if perr, ok := err.(syntax.ParseError); ok {
		return perr.Text
	}
	return err.Error()
}

// reader takes a parsed command apart into parts.
type reader struct {
	src   string
	parts []part
	why   string // why the whole is not understood
}

func readFile(src string, f *syntax.File) script {
	r := reader{src: src}
	for i, stmt := range f.Stmts {
		op := ""
		if i > 0 {
			op = "newline"
			if before := f.Stmts[i-1]; before.Background {
				op = "&"
			} else if before.Semicolon.IsValid() {
				op = ";"
			}
		}
		r.list(stmt, op)
	}
	if len(r.parts) == 0 {
		r.refuse("it has no command in it")
	}
	s := script{why: r.why, whole: r.why != "", parts: r.parts}
	for _, p := range r.parts {
		if s.why == "" {
			s.why = p.why
		}
	}
	return s
}

func (r *reader) refuse(why string) {
	if r.why == "" {
		r.why = why
	}
}

// pending is a statement that is still to be read, and what stands before it.
type pending struct {
	stmt  *syntax.Stmt
	op    string
	piped bool
}

// list reads a statement with all that && || and | join to it. Long chains are
// deep trees, so the stack is ours.
func (r *reader) list(stmt *syntax.Stmt, op string) {
	stack := []pending{{stmt, op, false}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p.stmt.Coprocess || p.stmt.Disown {
			r.refuse("it starts a coprocess")
		}
		b, ok := p.stmt.Cmd.(*syntax.BinaryCmd)
		if !ok {
			r.simple(p)
			continue
		}
		if len(p.stmt.Redirs) > 0 {
			r.refuse("it redirects several commands at once")
		}
		piped := p.piped || b.Op == syntax.Pipe
		switch b.Op {
		case syntax.AndStmt, syntax.OrStmt, syntax.Pipe:
		default:
			r.refuse(fmt.Sprintf("it uses %s", b.Op))
		}
		stack = append(stack, pending{b.Y, b.Op.String(), piped}, pending{b.X, p.op, piped})
	}
}

// simple reads one simple command.
func (r *reader) simple(p pending) {
	s := p.stmt
	pt := part{op: p.op, piped: p.piped, text: r.text(s)}
	switch cmd := s.Cmd.(type) {
	case nil:
		pt.refuse("it is a redirection without a command")
	case *syntax.CallExpr:
		r.call(cmd, &pt)
	default:
		pt.refuse(kindOf(cmd))
	}
	for _, rd := range s.Redirs {
		r.redirect(rd, &pt)
	}
	r.parts = append(r.parts, pt)
}

func (pt *part) refuse(why string) {
	if pt.why == "" {
		pt.why = why
	}
}

// text is a statement as written, without what separates it from the next.
func (r *reader) text(s *syntax.Stmt) string {
	from, to := s.Pos().Offset(), s.End().Offset()
	if s.Semicolon.IsValid() {
		to = s.Semicolon.Offset()
	}
	return r.between(from, to)
}

func (r *reader) between(from, to uint) string {
	if from > to || to > uint(len(r.src)) {
		return ""
	}
	return strings.TrimSpace(r.src[from:to])
}

func kindOf(cmd syntax.Command) string {
	switch cmd.(type) {
	case *syntax.Subshell:
		return "it is a subshell"
	case *syntax.Block:
		return "it is a block in braces"
	case *syntax.IfClause, *syntax.CaseClause:
		return "it is a condition"
	case *syntax.WhileClause, *syntax.ForClause:
		return "it is a loop"
	case *syntax.FuncDecl:
		return "it defines a function"
	case *syntax.ArithmCmd, *syntax.LetClause:
		return "it is arithmetic"
	case *syntax.TestClause:
		return "it uses [["
	case *syntax.DeclClause:
		return "it changes the shell's variables"
	}
	return "it is more than a simple command"
}

func (r *reader) call(c *syntax.CallExpr, pt *part) {
	pt.call = r.between(c.Pos().Offset(), c.End().Offset())
	for _, a := range c.Assigns {
		if a.Append || a.Index != nil || a.Array != nil || a.Naked {
			pt.refuse("it has an assignment of Bash's own")
			continue
		}
		value := ""
		if a.Value != nil {
			var why string
			if value, why = literal(a.Value); why != "" {
				pt.refuse(why)
			} else if strings.Contains(r.between(a.Value.Pos().Offset(), a.Value.End().Offset()), "~") {
				pt.refuse("it has a tilde in an assignment")
			}
		}
		pt.assigns = append(pt.assigns, assign{a.Name.Value, value})
	}
	for _, w := range c.Args {
		text, why := literal(w)
		if why != "" {
			pt.refuse(why)
		}
		pt.words = append(pt.words, text)
	}
	if len(c.Args) == 0 {
		pt.refuse("it sets variables of the shell")
	}
}

func (r *reader) redirect(rd *syntax.Redirect, pt *part) {
	re := redir{op: rd.Op, text: r.between(rd.Pos().Offset(), rd.End().Offset())}
	if rd.N != nil {
		re.fd = rd.N.Value
	}
	if end := rd.Word.End().Offset(); end < uint(len(r.src)) && (r.src[end] == '<' || r.src[end] == '>') {
		pt.refuse("it has redirections that run into each other") // >2>f is a mistake to shells
	}
	target, why := literal(rd.Word)
	re.target, re.why = target, why
	if why != "" {
		pt.refuse(why)
	}
	switch rd.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrIn:
		if target == "" && why == "" {
			re.why = "it redirects to a file without a name"
			pt.refuse(re.why)
		}
	case syntax.DplOut:
		if target != "1" && target != "2" || re.fd == "0" || rd.Word.Lit() != target {
			pt.refuse("it duplicates a descriptor other than 1 and 2")
		}
	case syntax.Hdoc, syntax.DashHdoc:
		pt.refuse("it has a here-document")
	default:
		pt.refuse(fmt.Sprintf("it redirects with %s", rd.Op))
	}
	if re.fd != "" && re.fd != "0" && re.fd != "1" && re.fd != "2" {
		pt.refuse("it redirects a descriptor other than 0, 1 and 2")
	}
	pt.redirs = append(pt.redirs, re)
}

func sameParts(a, b []part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].same(b[i]) {
			return false
		}
	}
	return true
}

func (pt part) same(o part) bool {
	if pt.text != o.text || pt.op != o.op || pt.piped != o.piped ||
		len(pt.words) != len(o.words) || len(pt.assigns) != len(o.assigns) || len(pt.redirs) != len(o.redirs) {
		return false
	}
	for i, w := range pt.words {
		if w != o.words[i] {
			return false
		}
	}
	for i, a := range pt.assigns {
		if a != o.assigns[i] {
			return false
		}
	}
	for i, r := range pt.redirs {
		if r != o.redirs[i] {
			return false
		}
	}
	return true
}
