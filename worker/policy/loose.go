package policy

import (
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

// word returns what a word may be when it runs: what is not known of it is left
// out, which is what an unset variable does.
func (f *finder) word(w *syntax.Word) []loose {
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
	case *syntax.ExtGlob:
		*glob = true
		b.WriteString("*")
	}
}

// param adds what a variable is likely to be: HOME, or its default.
func (f *finder) param(b *strings.Builder, p *syntax.ParamExp, glob, braces *bool) {
	if p.Param != nil && p.Param.Value == "HOME" {
		b.WriteString(f.home)
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
