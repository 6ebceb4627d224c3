package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"countersign/worker/api/wire"
)

// maxFile bounds a rule file; more than this is a mistake.
const maxFile = 1 << 20

// Invalid is something in a rule file that cannot be used. It refuses the whole
// file.
type Invalid struct {
	File string
	Line int // 0 where it is not known
	What string
}

func (e *Invalid) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.What
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What)
}

// Load reads a rule file, which must exist, and runs the tests in it. The error
// joins an *Invalid for everything that is wrong with it, in the order of lines.
func Load(name string, ctx Context) (*Rules, error) {
	text, err := readRuleFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text, ctx)
}

// readRuleFile returns the text of a rule file. It waits for nobody at the other end of
// a pipe, and reads no more than a rule file may have.
func readRuleFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, &Invalid{File: name, What: "expected a text file of at most 1 MB"}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	return text, nil
}

// Parse reads the text of a rule file; name stands for it in errors.
func Parse(name string, text []byte, ctx Context) (*Rules, error) {
	if !path.IsAbs(ctx.Root) && !ctx.OtherShell {
		return nil, errors.New("read the rules: the work directory has no absolute path")
	}
	if len(text) > maxFile {
		return nil, &Invalid{File: name, What: "expected a text file of at most 1 MB"}
	}
	sum := sha256.Sum256(text)
	l := loader{lines: locate(text), r: &Rules{
		ctx: ctx.withDefaults(), file: name, hash: hex.EncodeToString(sum[:]),
		allow: map[string][]allowing{}, broad: map[string][]refusing{}, programs: map[string]program{},
	}}
	raw, err := l.decode(text)
	if err != nil {
		return nil, err
	}
	for i, rr := range raw.Rules {
		l.rule(fmt.Sprintf("rule[%d]", i), rr)
	}
	if len(l.errs) > 0 {
		return nil, l.joined()
	}
	l.recordPrograms()
	for i, t := range raw.Tests {
		l.test(fmt.Sprintf("test[%d]", i), t)
	}
	if len(l.errs) > 0 {
		return nil, l.joined()
	}
	return l.r, nil
}

// recordPrograms notes which files the allowed programs are now.
func (l *loader) recordPrograms() {
	for _, refs := range l.r.allow {
		for _, a := range refs {
			for _, name := range a.pattern.starts() {
				if _, known := l.r.programs[name]; !known {
					file, err := l.r.ctx.LookPath(name)
					l.r.programs[name] = program{file, err}
				}
			}
		}
	}
}

// rawFile is a rule file as written.
type rawFile struct {
	Rules []rawRule `toml:"rule"`
	Tests []rawTest `toml:"test"`
}

type rawRule struct {
	Name       string `toml:"name"`
	Kind       list   `toml:"kind"`
	Allow      list   `toml:"allow"`
	Deny       list   `toml:"deny"`
	Ask        list   `toml:"ask"`
	AllowPaths list   `toml:"allow-paths"`
	DenyPaths  list   `toml:"deny-paths"`
	RunsCode   bool   `toml:"runs-code"`
	Env        list   `toml:"env"`
	Connection string `toml:"connection"`
	Session    string `toml:"session"`
	Cwd        string `toml:"cwd"`
	Until      moment `toml:"until"`
}

type rawTest struct {
	Command    *string           `toml:"command"`
	Read       *string           `toml:"read"`
	Write      *string           `toml:"write"`
	List       *string           `toml:"list"`
	Cwd        string            `toml:"cwd"`
	Env        map[string]string `toml:"env"`
	Connection string            `toml:"connection"`
	Session    string            `toml:"session"`
	Expect     list              `toml:"expect"`
}

// list is a string or a list of strings.
type list []string

// UnmarshalTOML implements toml.Unmarshaler.
func (l *list) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		*l = list{v}
		return nil
	case []any:
		*l = list{}
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return fmt.Errorf("expected strings, found %v", e)
			}
			*l = append(*l, s)
		}
		return nil
	}
	return fmt.Errorf("expected a string or a list of strings, found %v", v)
}

// moment is a time, or what is written in its place: that must not keep the rest of a
// file from being read.
type moment struct {
	time.Time
	not string
}

// UnmarshalTOML implements toml.Unmarshaler.
func (m *moment) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case time.Time:
		if m.Time = v; v.Year() == 0 {
			m.not = "a time without a date"
		}
	case string: // in quotes it is taken, too
		var err error
		if m.Time, err = time.Parse(time.RFC3339, v); err != nil {
			m.not = strconv.Quote(v)
		}
	case []any:
		m.not = "a list"
	case map[string]any:
		m.not = "a table"
	default:
		m.not = fmt.Sprint(v)
	}
	return nil
}

// loader reads one file and collects what is wrong with it.
type loader struct {
	r     *Rules
	lines lines
	errs  []*Invalid
}

func (l *loader) fail(line int, format string, args ...any) {
	l.errs = append(l.errs, &Invalid{File: l.r.file, Line: line, What: fmt.Sprintf(format, args...)})
}

func (l *loader) joined() error {
	slices.SortStableFunc(l.errs, func(a, b *Invalid) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(l.errs))
	for i, e := range l.errs {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// wrongType takes apart what the decoder says of a value of the wrong type, which
// it does not give as a ParseError.
var wrongType = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (.*)$`)

func (l *loader) decode(text []byte) (raw rawFile, err error) {
	meta, err := toml.Decode(string(text), &raw)
	if err != nil {
		line, what := 0, err.Error()
		var perr toml.ParseError
		if errors.As(err, &perr) {
			line, what = perr.Position.Line, perr.Message
		} else if m := wrongType.FindStringSubmatch(what); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits
			what = m[2] + ": " + m[3]
		}
		l.fail(line, "%s", what)
		return raw, l.joined()
	}
	seen := map[string]bool{}
	for _, key := range meta.Undecoded() {
		name := key[len(key)-1]
		if where := key.String(); !seen[where] {
			seen[where] = true
			for _, line := range l.lines.of(key) {
				l.fail(line, "%s is not a setting of a rule file", name)
			}
		}
	}
	if len(l.errs) > 0 {
		return raw, l.joined()
	}
	return raw, nil
}

var kinds = []string{wire.KindExec, wire.KindRead, wire.KindWrite, wire.KindList}

func (l *loader) rule(at string, raw rawRule) {
	ru := &rule{
		name: raw.Name, kinds: map[string]bool{}, runsCode: raw.RunsCode, env: map[string]bool{},
		connection: raw.Connection, session: raw.Session, until: raw.Until.Time,
	}
	head := l.lines.key(at, "")
	if strings.TrimSpace(raw.Name) == "" {
		l.fail(head, "a rule needs a name")
	}
	for _, other := range l.r.rules {
		if other.name == raw.Name && raw.Name != "" {
			l.fail(l.lines.key(at, "name"), "another rule is called %q too", raw.Name)
		}
	}
	for _, k := range raw.Kind {
		if !slices.Contains(kinds, k) {
			l.fail(l.lines.value(at, "kind", k), "kind is %q, expected exec, read, write or list", k)
		}
		ru.kinds[k] = true
	}
	if len(raw.Kind) == 0 {
		l.fail(head, "rule %q needs a kind: exec, read, write or list", raw.Name)
	}
	l.fits(at, head, raw, ru)
	l.patterns(at, raw, ru)
	l.paths(at, raw, ru)
	for _, name := range raw.Env {
		if err := mayList(name); err != nil {
			l.fail(l.lines.value(at, "env", name), "env: %v", err)
		}
		ru.env[name] = true
	}
	if raw.Cwd != "" {
		l.cwd(at, raw.Cwd, ru)
	}
	if raw.Until.not != "" {
		l.fail(l.lines.key(at, "until"), "until is %s, expected a date and time, such as 2026-12-31T18:00:00Z, or a date; it is written without quotes", raw.Until.not)
	}
	l.r.rules = append(l.r.rules, ru)
}

// cwd reads the directory that a rule is for: that one, or with /** at its end
// also those below it. An absolute one is for the connection whose work directory
// it lies in.
func (l *loader) cwd(at, raw string, ru *rule) {
	dir := raw
	if raw == "**" {
		dir, ru.below = ".", true
	} else if dir, ru.below = strings.CutSuffix(raw, "/**"); dir == "" {
		dir = "/"
	}
	ru.cwd = path.Clean(dir)
	if !path.IsAbs(dir) {
		ru.cwd = path.Join(l.r.ctx.Root, dir)
		if !inside(l.r.ctx.Root, ru.cwd) {
			l.fail(l.lines.key(at, "cwd"), "cwd is %q, expected a path below the work directory", raw)
		}
	}
}

// fits refuses settings that mean nothing for the rule's kinds.
func (l *loader) fits(at string, head int, raw rawRule, ru *rule) {
	files := ru.kinds[wire.KindRead] || ru.kinds[wire.KindWrite] || ru.kinds[wire.KindList]
	for key, set := range map[string]bool{"allow": raw.Allow != nil, "deny": raw.Deny != nil, "ask": raw.Ask != nil,
		"runs-code": raw.RunsCode, "env": raw.Env != nil, "cwd": raw.Cwd != ""} {
		if set && !ru.kinds[wire.KindExec] {
			l.fail(l.lines.key(at, key), "%s is for rules of kind exec", key)
		}
	}
	for key, set := range map[string]bool{"allow-paths": raw.AllowPaths != nil, "deny-paths": raw.DenyPaths != nil} {
		if set && !files {
			l.fail(l.lines.key(at, key), "%s is for rules of kind read, write or list", key)
		}
	}
	if len(raw.Allow)+len(raw.Deny)+len(raw.Ask)+len(raw.AllowPaths)+len(raw.DenyPaths) == 0 {
		l.fail(head, "rule %q says nothing: it needs allow, deny, ask, allow-paths or deny-paths", raw.Name)
	}
}

func (l *loader) patterns(at string, raw rawRule, ru *rule) {
	for _, text := range raw.Allow {
		p, err := parsePattern(text)
		if err == nil && !raw.RunsCode {
			err = p.checkRuns()
		}
		if err == nil {
			err = p.checkWrapped()
		}
		if err != nil {
			l.fail(l.lines.value(at, "allow", text), "allow %q: %v", text, err)
			continue
		}
		l.r.allow[p.program] = append(l.r.allow[p.program], allowing{ru, p})
	}
	refuse := func(key string, texts []string, v Verdict) {
		for _, text := range texts {
			b, err := parseBroad(text, l.r.ctx.FoldCase)
			if err != nil {
				l.fail(l.lines.value(at, key, text), "%s %q: %v", key, text, err)
				continue
			}
			l.r.broad[b.words[0]] = append(l.r.broad[b.words[0]], refusing{ru, b, v})
		}
	}
	refuse("deny", raw.Deny, Deny)
	refuse("ask", raw.Ask, Ask)
}

func (l *loader) paths(at string, raw rawRule, ru *rule) {
	parse := func(key string, texts []string) (globs []glob) {
		for _, text := range texts {
			g, err := parseGlob(text, l.r.ctx.FoldCase)
			if err == nil && key == "allow-paths" && g.absolute() {
				err = fmt.Errorf("%q begins with a /; only what is in the work directory can be allowed", text)
			}
			if err != nil {
				l.fail(l.lines.value(at, key, text), "%s: %v", key, err)
				continue
			}
			globs = append(globs, g)
		}
		return globs
	}
	ru.allowPaths = parse("allow-paths", raw.AllowPaths)
	ru.denyPaths = parse("deny-paths", raw.DenyPaths)
}

// exists reports whether a path is there, whatever it is.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
