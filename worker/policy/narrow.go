package policy

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"countersign/worker/api/wire"
)

// Narrow writes a rule, as TOML, that allows what an item does and little else:
// each of its commands with exactly its words in the directory that it runs in, or
// its very path. It is what
// "always" offers to an operator, to be edited. The text has to be read with
// the rules that are there (Parse), and the item explained by them, before it is
// saved: what the item names may not be readable, or be denied.
//
// The error says why there can be no such rule.
func Narrow(name string, i Item) (string, error) {
	if i.Kind != wire.KindExec {
		return narrowPath(name, i)
	}
	s := understand(i.Command)
	if s.why != "" {
		return "", fmt.Errorf("no rule can allow this: %s", s.why)
	}
	n := narrowing{env: slices.Sorted(maps.Keys(i.Env))}
	parts, err := n.enter(i.Cwd, s.parts)
	if err != nil {
		return "", fmt.Errorf("no rule can allow this: %w", err)
	}
	for _, pt := range parts {
		if err := n.add(pt); err != nil {
			return "", fmt.Errorf("no rule can allow this: %w", err)
		}
	}
	for _, name := range n.env {
		if err := mayList(name); err != nil {
			return "", fmt.Errorf("no rule can allow this: %w", err)
		}
	}
	return n.text(name, i), nil
}

func narrowPath(name string, i Item) (string, error) {
	rel := path.Clean("/" + strings.ReplaceAll(i.Path, `\`, "/"))[1:]
	if strings.ContainsAny(i.Path, `*?[\`) || rel == "" || strings.Contains(i.Path, "..") {
		return "", errors.New("no rule can allow just this path")
	}
	return fmt.Sprintf("[[rule]]\nname = %s\nkind = %s\nallow-paths = [%s]\n%s",
		quote(name), quote(i.Kind), quote(rel), connection(i)), nil
}

type narrowing struct {
	dir      string // where all of it runs, relative to the work directory if cd says so
	allow    []string
	env      []string
	runsCode bool
}

// enter follows the cd that lead a command, and returns the parts after them. A
// rule is for one directory, so all of these have to run there.
func (n *narrowing) enter(cwd string, parts []part) ([]part, error) {
	n.dir = path.Join(".", strings.TrimLeft(filepath.ToSlash(cwd), "/"))
	moved := false
	for i, pt := range parts {
		if !isCd(pt) {
			if moved && slices.ContainsFunc(parts[i+1:], func(later part) bool { return later.op != "&&" && later.op != "|" }) {
				return nil, errors.New("if its cd fails, a part of it runs in another directory")
			}
			if slices.ContainsFunc(parts[i:], isCd) {
				return nil, errors.New("it goes to another directory after its beginning")
			}
			if n.dir == ".." || strings.HasPrefix(n.dir, "../") {
				return nil, errors.New("it runs outside the work directory")
			}
			if path.Base(n.dir) == "**" { // in a rule that means those below
				return nil, errors.New("its directory has a name that rules read in their own way")
			}
			return parts[i:], nil
		}
		if len(pt.words) != 2 || pt.piped || pt.words[1] == "" || pt.words[1][0] == '-' || i+1 == len(parts) || parts[i+1].op != "&&" {
			return nil, errors.New("only cd PATH && at its beginning is followed")
		}
		if moved = true; path.IsAbs(pt.words[1]) {
			n.dir = path.Clean(pt.words[1])
		} else {
			n.dir = path.Join(n.dir, pt.words[1])
		}
	}
	return nil, errors.New("it runs no program")
}

// add makes a pattern of a part. Its redirections are for rules about files.
func (n *narrowing) add(pt part) error {
	words := make([]string, len(pt.words))
	for i, w := range pt.words {
		var err error
		if words[i], err = patternWord(w); err != nil {
			return err
		}
	}
	if err := checkProgram(pt.words[0]); err != nil {
		return err
	}
	words[0] = pt.words[0] // [ needs no quotes there
	text := strings.Join(words, " ")
	p, err := parsePattern(text)
	if err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	if err := p.checkWrapped(); err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	n.runsCode = n.runsCode || p.checkRuns() != nil
	n.allow = appendNew(n.allow, text)
	for _, a := range pt.assigns {
		n.env = appendNew(n.env, a.name)
	}
	return nil
}

// patternWord writes a word of a command as a pattern's.
func patternWord(w string) (string, error) {
	if strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("a word has a line break or another control character in it")
	}
	switch {
	case w != "" && !strings.ContainsAny(w, " []<>*?'\"") && !strings.HasSuffix(w, "..."):
		return w, nil
	case !strings.Contains(w, "'"):
		return "'" + w + "'", nil
	case !strings.Contains(w, `"`):
		return `"` + w + `"`, nil
	}
	return "", errors.New("a word has quotes of both kinds in it")
}

func (n *narrowing) text(name string, i Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[[rule]]\nname = %s\nkind = \"exec\"\n", quote(name))
	if n.runsCode {
		b.WriteString("runs-code = true\n")
	}
	b.WriteString("allow = [\n")
	for _, p := range n.allow {
		fmt.Fprintf(&b, "  %s,\n", quote(p))
	}
	b.WriteString("]\n")
	if len(n.env) > 0 {
		quoted := make([]string, len(n.env))
		for i, name := range n.env {
			quoted[i] = quote(name)
		}
		fmt.Fprintf(&b, "env = [%s]\n", strings.Join(quoted, ", "))
	}
	fmt.Fprintf(&b, "cwd = %s\n", quote(n.dir))
	return b.String() + connection(i)
}

func connection(i Item) string {
	if i.Connection == "" {
		return ""
	}
	return "connection = " + quote(i.Connection) + "\n"
}

// quote writes a TOML string: what Go quotes is one, but for bytes that the
// texts here do not have.
func quote(s string) string { return strconv.Quote(strings.ToValidUTF8(s, "\ufffd")) }
