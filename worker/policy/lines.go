package policy

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// lines knows on which line of a rule file a setting stands. The TOML decoder
// tells only about what it cannot read itself.
type lines struct {
	text  []string
	heads map[string]int // line of the header of rule[0], test[2]; of other tables by name
	keys  map[string]int // line of rule[0].name
}

func locate(text []byte) lines {
	l := lines{text: strings.Split(string(text), "\n"), heads: map[string]int{}, keys: map[string]int{}}
	count := map[string]int{}
	at := ""
	for i, line := range l.text {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name := strings.Trim(strings.SplitN(strings.TrimLeft(line, "["), "]", 2)[0], " \t\"'")
			at = name
			if strings.HasPrefix(line, "[[") {
				at = fmt.Sprintf("%s[%d]", name, count[name])
				count[name]++
			}
			l.heads[at] = i + 1
			continue
		}
		if key, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			where := at + "." + strings.Trim(strings.TrimSpace(key), `"'`)
			if _, known := l.keys[where]; !known {
				l.keys[where] = i + 1
			}
		}
	}
	return l
}

// key returns the line of a setting, or of the table's header if it has none.
func (l lines) key(at, key string) int {
	if n := l.keys[at+"."+key]; n != 0 {
		return n
	}
	return l.heads[at]
}

// value returns the line of one string of a list.
func (l lines) value(at, key, value string) int {
	from := l.key(at, key)
	if from == 0 {
		return 0
	}
	for i, line := range l.text[from-1:] {
		if strings.Contains(line, `"`+value+`"`) || strings.Contains(line, `'`+value+`'`) {
			return from + i
		}
		if i > 0 && strings.HasPrefix(strings.TrimSpace(line), "[[") {
			break
		}
	}
	return from
}

// of returns the lines where a key, which the decoder names without the number
// of its table, stands.
func (l lines) of(key toml.Key) []int {
	last := key[len(key)-1]
	var found []int
	for where, line := range l.keys {
		at, name, _ := strings.Cut(where, ".")
		table, _, _ := strings.Cut(at, "[")
		if name == last && (len(key) == 1 && at == "" || len(key) > 1 && table == key[0]) {
			found = append(found, line)
		}
	}
	if len(found) == 0 {
		for at, line := range l.heads {
			if table, _, _ := strings.Cut(at, "["); table == key[0] {
				found = append(found, line)
			}
		}
	}
	if len(found) == 0 {
		found = []int{0}
	}
	return found
}
