package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal returns what a word is after unquoting, or why it is not known before
// it runs. Only what every shell reads the same is accepted.
func literal(w *syntax.Word) (text, why string) {
	if len(w.Parts) == 1 { // most words
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && isPlain(lit.Value) {
			return lit.Value, ""
		}
	}
	if s := w.Lit(); s == "[" || s == "]" { // the program, not a glob
		return s, ""
	}
	var b strings.Builder
	for i, wp := range w.Parts {
		switch wp := wp.(type) {
		case *syntax.Lit:
			why = unquoted(&b, wp.Value, i == 0)
		case *syntax.SglQuoted:
			if wp.Dollar {
				return b.String(), "it has a $'…' word in it"
			}
			b.WriteString(wp.Value)
		case *syntax.DblQuoted:
			why = doubleQuoted(&b, wp)
		default:
			why = expansion(wp)
		}
		if why != "" {
			return b.String(), why
		}
	}
	return b.String(), ""
}

// isPlain reports whether a literal has nothing to unquote and nothing special.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if !plainByte[s[i]] {
			return false
		}
	}
	return s != ""
}

var plainByte = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=^") {
		set[c] = true
	}
	return set
}()

// unquoted adds a literal with its backslashes taken away.
func unquoted(b *strings.Builder, s string, first bool) (why string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case plainByte[c]:
		case c == '\\':
			if i++; i == len(s) {
				return "it ends in a backslash"
			}
			if c = s[i]; c < ' ' || c > '~' {
				return "it has a backslash before something other than printable ASCII"
			}
		case (c == '#' || c == '~') && (i > 0 && isAlnum(s[i-1]) && (i == 1 || s[i-2] != '\\')):
			// Inside a word neither begins a comment nor names a home directory.
		case c == '~':
			return "it has an unquoted tilde in it"
		case c == '*' || c == '?' || c == '[' || c == ']':
			return "it has an unquoted glob in it"
		case c == '{' || c == '}':
			return "it has unquoted braces in it"
		case c >= 0x80:
			return "it has a non-ASCII character outside quotes"
		default:
			return "it has an unquoted " + string(rune(c)) + " in it"
		}
		b.WriteByte(c)
	}
	return ""
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// doubleQuoted adds what stands in double quotes.
func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) (why string) {
	if q.Dollar {
		return `it has a $"…" word in it`
	}
	for _, wp := range q.Parts {
		lit, ok := wp.(*syntax.Lit)
		if !ok {
			return expansion(wp)
		}
		s := lit.Value
		for i := 0; i < len(s); i++ {
			c := s[i]
			switch c {
			case '$', '`':
				return "it has an unquoted " + string(rune(c)) + " in it"
			case '\\':
				if i+1 == len(s) || s[i+1] == '\n' || i > 0 && s[i-1] >= 0x80 {
					return "it has a backslash in double quotes that shells read differently"
				}
				if next := s[i+1]; next == '$' || next == '`' || next == '"' || next == '\\' {
					i++
					c = next
				}
			}
			b.WriteByte(c)
		}
	}
	return ""
}

func expansion(wp syntax.WordPart) string {
	switch wp.(type) {
	case *syntax.CmdSubst:
		return "it runs a command to make a word (command substitution)"
	case *syntax.ProcSubst:
		return "it has a process substitution in it"
	case *syntax.ArithmExp:
		return "it has arithmetic in it"
	case *syntax.ParamExp:
		return "it has the value of a variable in it"
	}
	return "it has a glob of Bash's own in it"
}
