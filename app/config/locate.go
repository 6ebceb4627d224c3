package config

import (
	"fmt"
	"regexp"
	"strings"
)

// locate finds the line of every table and key of a TOML text, for error
// messages: the decoder tells lines of syntax errors only. Keys of the third
// [[connection]] are "connection[2].name". What it does not understand, such as
// inline tables, is simply not in the answer.
func locate(text []byte) map[string]int {
	lines := map[string]int{}
	count := map[string]int{}
	table, open := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		if open != "" { // inside a string of several lines
			if strings.Contains(line, open) {
				open = ""
			}
			continue
		}
		switch {
		case arrayHeader.MatchString(line):
			name := bare(arrayHeader.FindStringSubmatch(line)[1])
			table = fmt.Sprintf("%s[%d]", name, count[name])
			count[name]++
			note(lines, name, i+1)
			note(lines, table, i+1)
		case tableHeader.MatchString(line):
			table = bare(tableHeader.FindStringSubmatch(line)[1])
			note(lines, table, i+1)
		case keyLine.MatchString(line):
			note(lines, join(table, bare(keyLine.FindStringSubmatch(line)[1])), i+1)
			open = unclosed(line)
		}
	}
	return lines
}

var (
	arrayHeader = regexp.MustCompile(`^\s*\[\[([^\]]+)\]\]`)
	tableHeader = regexp.MustCompile(`^\s*\[([^\[\]]+)\]`)
	keyLine     = regexp.MustCompile(`^\s*([A-Za-z0-9_\-."' ]+?)\s*=`)
	index       = regexp.MustCompile(`\[\d+\]`)
)

// note keeps the first line of a name.
func note(lines map[string]int, name string, line int) {
	if _, known := lines[name]; !known {
		lines[name] = line
	}
}

func bare(name string) string {
	return strings.NewReplacer(`"`, "", `'`, "", " ", "").Replace(name)
}

// unclosed returns the delimiter of a multi-line string that a line leaves
// open, or "".
func unclosed(line string) string {
	for _, quote := range []string{`"""`, `'''`} {
		if strings.Count(line, quote)%2 == 1 {
			return quote
		}
	}
	return ""
}

// line is where a key stands, or else the nearest table around it; 0 if
// neither was found.
func (r *reader) line(path string) int {
	for path != "" {
		if n, ok := r.lines[path]; ok {
			return n
		}
		if i := strings.LastIndexAny(path, ".["); i >= 0 {
			path = path[:i]
		} else {
			path = ""
		}
	}
	return 0
}

func withoutIndex(path string) string { return index.ReplaceAllString(path, "") }
