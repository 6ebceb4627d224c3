package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of what is parsed. Longer commands, and ones that may be nested more
// deeply, are asked for: they are searched for what is denied, but not
// understood.
const (
	maxParsed = 64 << 10
	maxNested = 2000
)

// strange says what about the bytes of a command is not accepted, whatever it
// may mean.
func strange(command string) string {
	if len(command) > maxParsed {
		return fmt.Sprintf("it is longer than %d KB", maxParsed>>10)
	}
	line := 0 // where it begins
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '\n':
			line = i + 1
		case c == '\r':
			return "it has a carriage return in it"
		case c == 0:
			return "it has a NUL character in it"
		case c < ' ' && c != '\t', c == 0x7f:
			return "it has a control character in it"
		case c == '\\' && i+1 < len(command) && command[i+1] == '\n':
			// Shells disagree on a continuation inside a word or an operator.
			if i == 0 || command[i-1] != ' ' && command[i-1] != '\t' {
				return "it has a line continued inside a word or an operator"
			}
			if strings.Contains(command[line:i], "#") { // shells do not continue a comment; the parser does
				return "it has a line continued after a #"
			}
		}
	}
	if isDeep(command) {
		return fmt.Sprintf("it has more than %d brackets and conditions", maxNested)
	}
	if !utf8.ValidString(command) {
		return "it is not valid UTF-8"
	}
	for _, r := range command {
		if r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return "it has a control character in it"
		}
	}
	return ""
}

// isDeep reports whether a text has so many brackets and words that open
// something that a parser would need much time and stack for it.
func isDeep(s string) bool {
	opened, start := 0, true
	for i := 0; i < len(s) && opened <= maxNested; i++ {
		c := s[i]
		switch {
		case c == '(' || c == '{' || c == '`' || c == '!':
			opened++
			start = true
		case c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|':
			start = true
		default:
			if start && strings.IndexByte("iwuftcs", c) >= 0 && opens(s[i:]) {
				opened++
			}
			start = false
		}
	}
	return opened > maxNested
}

func opens(s string) bool {
	for _, word := range []string{"if", "while", "until", "for", "function", "time", "case", "coproc", "select"} {
		if strings.HasPrefix(s, word) {
			return true
		}
	}
	return false
}
