package policy

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds how many words one with braces is taken to stand for, and
// maxBraced how long it may be.
const (
	maxBraces = 64
	maxBraced = 1024
)

// Bounds of what variables are taken to be: how many are noted, how many values
// one may have and how long they may be, and how many words are made with them.
const (
	maxVars   = 100
	maxValues = 4
	maxValue  = 4096
	maxFields = 8
	maxMade   = 20000
)

// word returns what a word may be when it runs: what is not known of it is left
// out, which is what an unset variable does. Where the text has values for a
// variable, the word is also made with each of these.
func (f *finder) word(w *syntax.Word) []loose {
	f.pick, f.most = 0, 0
	out := f.wordAs(w)
	for f.pick = 1; f.pick <= f.most && f.made < maxMade; f.pick++ {
		for _, l := range f.wordAs(w) {
			out = append(out, l)
			if fields := strings.Fields(l.text); len(fields) > 1 { // unquoted, it is several
				for _, text := range fields[:min(len(fields), maxFields)] {
					out = append(out, loose{text, l.glob})
				}
			}
		}
		f.made++
	}
	f.pick = 0
	return out
}

// isKnown reports whether the words that a word may be are all that it can be.
func (f *finder) isKnown(src string, w *syntax.Word) bool {
	known := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			text := cutText(src, n)
			known = known && (text == "$HOME" || text == "${HOME}") && f.home != "" && f.vars["HOME"] == nil
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			known = false
		}
		return known
	})
	return known
}

// asWritten is a word for people, without the quotes around all of it.
func asWritten(src string, w *syntax.Word) string {
	text := cutText(src, w)
	if q, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(w.Parts) == 1 && !q.Dollar && len(text) > 2 {
		return text[1 : len(text)-1]
	}
	return text
}

// set notes a value that a variable may have.
func (f *finder) set(name, value string) {
	had := f.vars[name]
	if len(value) <= maxValue && len(had) < maxValues && (had != nil || len(f.vars) < maxVars) && !slices.Contains(had, value) {
		f.vars[name] = append(had, value)
	}
}

// assignments notes what the variables of a text may be.
func (f *finder) assignments(file *syntax.File) {
	assign := func(a *syntax.Assign) {
		if a.Name != nil && a.Value != nil {
			for _, w := range f.word(a.Value) {
				f.set(a.Name.Value, w.text)
			}
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				assign(a)
			}
		case *syntax.DeclClause:
			for _, a := range n.Args {
				assign(a)
			}
		case *syntax.WordIter:
			for _, item := range n.Items {
				for _, w := range f.word(item) {
					f.set(n.Name.Value, w.text)
				}
			}
		}
		return true
	})
}

func (f *finder) wordAs(w *syntax.Word) []loose {
	var b strings.Builder
	glob, braces := false, false
	for i, wp := range w.Parts {
		f.wordPart(&b, wp, i == 0, &glob, &braces)
	}
	l := loose{b.String(), glob}
	if !braces || len(l.text) > maxBraced {
		return []loose{l}
	}
	var out []loose
	for _, text := range expandBraces(l.text, maxBraces) {
		out = append(out, loose{text, glob})
	}
	return out
}

func (f *finder) wordPart(b *strings.Builder, wp syntax.WordPart, first bool, glob, braces *bool) {
	switch wp := wp.(type) {
	case *syntax.Lit:
		s := wp.Value
		if first && (s == "~" || strings.HasPrefix(s, "~/")) && f.home != "" {
			b.WriteString(f.home)
			s = s[1:]
		}
		*glob = *glob || strings.ContainsAny(s, "*?[")
		*braces = *braces || strings.Contains(s, "{")
		b.WriteString(dropBackslashes(s, ""))
	case *syntax.SglQuoted:
		if wp.Dollar {
			b.WriteString(ansiC(wp.Value))
		} else {
			b.WriteString(wp.Value)
		}
	case *syntax.DblQuoted:
		for _, in := range wp.Parts {
			if lit, ok := in.(*syntax.Lit); ok {
				b.WriteString(dropBackslashes(lit.Value, "$`\"\\\n"))
			} else {
				f.wordPart(b, in, false, glob, braces)
			}
		}
	case *syntax.ParamExp:
		f.param(b, wp, glob, braces)
	case *syntax.CmdSubst:
		if b.Len() == 0 && isPwd(wp) {
			b.WriteString(".")
		}
	case *syntax.ExtGlob:
		*glob = true
		b.WriteString("*")
	}
}

func isPwd(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 {
		return false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == "pwd"
}

// param adds what a variable is likely to be: HOME, the directory, one of the
// values that the text gives it, or its default.
func (f *finder) param(b *strings.Builder, p *syntax.ParamExp, glob, braces *bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	values := f.vars[name]
	f.most = max(f.most, len(values))
	switch {
	case f.pick > 0 && len(values) > 0:
		value := values[min(f.pick, len(values))-1]
		*glob = *glob || strings.ContainsAny(value, "*?[")
		if b.Len() < maxParsed {
			b.WriteString(value)
		}
		return
	case name == "HOME":
		b.WriteString(f.home)
		return
	case name == "PWD" && b.Len() == 0:
		b.WriteString(".")
		return
	}
	if p.Exp == nil || p.Exp.Word == nil {
		return
	}
	for _, in := range p.Exp.Word.Parts {
		f.wordPart(b, in, false, glob, braces)
	}
}

// dropBackslashes unquotes: before every character, or before those of only.
func dropBackslashes(s, only string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC decodes what stands in $'…' as far as it helps to recognize words.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		from, digits, radix := i+1, 0, 16
		switch c := s[i]; {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			from, digits, radix = i, 3, 8
		case c == 'n':
			b.WriteByte('\n')
			continue
		case c == 't':
			b.WriteByte('\t')
			continue
		default:
			b.WriteByte(c)
			continue
		}
		to := from
		for to < len(s) && to < from+digits && isDigit(s[to], radix) {
			to++
		}
		if n, err := strconv.ParseUint(s[from:to], radix, 32); err == nil {
			if n < 0x80 {
				b.WriteByte(byte(n))
			} else {
				b.WriteRune(rune(n))
			}
		}
		i = to - 1
	}
	return b.String()
}

func isDigit(c byte, radix int) bool {
	_, err := strconv.ParseUint(string(rune(c)), radix, 8)
	return err == nil
}

// expandBraces returns what a word with {a,b} in it stands for, at most max
// words.
func expandBraces(s string, max int) []string {
	done, todo := []string(nil), []string{s}
	for len(todo) > 0 && len(done)+len(todo) < max {
		s, todo = todo[len(todo)-1], todo[:len(todo)-1]
		open := -1
		close := strings.IndexByte(s, '}')
		if close >= 0 {
			open = strings.LastIndexByte(s[:close], '{')
		}
		if open < 0 || !strings.Contains(s[open:close], ",") {
			done = append(done, s)
			continue
		}
		alts := strings.Split(s[open+1:close], ",")
		for i := len(alts) - 1; i >= 0; i-- { // the first is taken next
			todo = append(todo, s[:open]+alts[i]+s[close+1:])
		}
	}
	return append(done, todo...)
}
