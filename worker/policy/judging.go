package policy

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

// judging is one look at one item.
type judging struct {
	r        *Rules
	item     Item
	now      time.Time
	dry      bool // a test in a rule file: neither files nor programs are looked at
	programs map[string]string
	reads    map[reading]string // what is wrong with reading
	own      guard              // of our own files
}

// pathVerdict is what is said about one path.
type pathVerdict struct {
	verdict Verdict
	rule    string
	reason  string
	always  bool
}

// file judges a read, write or list.
func (j *judging) file() Part {
	word := strings.TrimLeft(filepath.ToSlash(j.item.Path), "/") // a leading / means the root (PROTOCOL.md §4)
	if word == "" {
		word = "."
	}
	v := j.path(j.item.Kind, j.r.ctx.Root, word)
	p := Part{Text: j.item.Path, Verdict: v.verdict, Reason: v.reason, Rule: v.rule, always: v.always}
	if v.rule != "" {
		p.rules = []string{v.rule}
	}
	return p
}

// path judges what a path leads to, for a kind of file operation.
func (j *judging) path(kind, base, word string) pathVerdict {
	ctx := &j.r.ctx
	spelled := path.Clean(word)
	if !path.IsAbs(word) {
		spelled = path.Join(base, word)
	}
	abs, err := spelled, error(nil)
	if !j.dry {
		abs, err = resolve(base, word)
	}
	if odd := oddName(word); odd != "" && ctx.windows {
		err = errors.New(odd)
	}
	if kind == wire.KindWrite {
		if isOwn(ctx, spelled) || err == nil && isOwn(ctx, abs) {
			return pathVerdict{verdict: Deny, reason: fmt.Sprintf("%q is Countersign's own: tool calls never write there", word)}
		}
	}
	if abs == "" {
		abs = spelled
	}
	if rule := j.deniedPath(kind, abs, spelled); rule != "" {
		return pathVerdict{verdict: Deny, rule: rule, reason: fmt.Sprintf("rule %q denies to %s %q", rule, kind, word)}
	}
	switch {
	case err != nil:
		return pathVerdict{verdict: Ask, reason: fmt.Sprintf("%q %s", word, err)}
	case !inside(ctx.Root, abs):
		return pathVerdict{verdict: Ask, reason: fmt.Sprintf("%q lies outside the work directory", word)}
	case kind == wire.KindWrite && (hasGit(relative(ctx.Root, abs)) || inside(ctx.Root, spelled) && hasGit(relative(ctx.Root, spelled))):
		return pathVerdict{verdict: Ask, always: true, reason: fmt.Sprintf("%q belongs to git, which can run what is written there", word)}
	}
	if rule := j.allowedPath(kind, relative(ctx.Root, abs)); rule != "" {
		return pathVerdict{verdict: Allow, rule: rule, reason: fmt.Sprintf("rule %q allows to %s it", rule, kind)}
	}
	return pathVerdict{verdict: Ask, reason: fmt.Sprintf("no rule allows to %s %q", kind, word)}
}

func isOwn(ctx *Context, p string) bool {
	for _, own := range ctx.Own {
		if inside(own, p) || ctx.FoldCase && inside(strings.ToLower(own), strings.ToLower(p)) {
			return true
		}
	}
	return false
}

// deniedPath returns the rule that denies a path, as resolved or as spelled.
func (j *judging) deniedPath(kind, abs, spelled string) string {
	root := j.r.ctx.Root
	both := []string{abs, spelled}
	if abs == spelled {
		both = both[:1]
	}
	for _, ru := range j.r.rules {
		if len(ru.denyPaths) == 0 || !ru.kinds[kind] || !ru.applies(j.item, j.now) {
			continue
		}
		for _, g := range ru.denyPaths {
			for _, p := range both {
				if g.absolute() && g.match(p) || !g.absolute() && inside(root, p) && g.match(relative(root, p)) {
					return ru.name
				}
			}
		}
	}
	return ""
}

func (j *judging) allowedPath(kind, rel string) string {
	for _, ru := range j.r.rules {
		if len(ru.allowPaths) == 0 || !ru.kinds[kind] || !ru.applies(j.item, j.now) {
			continue
		}
		for _, g := range ru.allowPaths {
			if g.match(rel) {
				return ru.name
			}
		}
	}
	return ""
}

// program says what is wrong with the file that a name stands for now, or "".
func (j *judging) program(name string) string {
	if j.dry {
		return ""
	}
	why, known := j.programs[name]
	if known {
		return why
	}
	recorded := j.r.programs[name]
	file, err := j.r.ctx.LookPath(name)
	switch {
	case err != nil:
		why = fmt.Sprintf("the program %s cannot be used: %v", name, err)
	case recorded.err != nil:
		why = fmt.Sprintf("the program %s was not there when the rules were loaded", name)
	case file != recorded.file:
		why = fmt.Sprintf("the program %s is %s now and was %s when the rules were loaded", name, file, recorded.file)
	case inside(j.r.ctx.Root, file):
		why = fmt.Sprintf("the program %s lies in the work directory", name)
	}
	if j.programs == nil {
		j.programs = map[string]string{}
	}
	j.programs[name] = why
	return why
}

// besideHead are names that make git take a directory with a HEAD in it for a
// repository, by themselves or because they lead to another one.
var besideHead = []string{"objects", "refs", "commondir", "config", "gitdir"}

// gitTrap says what is wrong with running git in a directory: one that looks
// like a repository, itself or on the way up to the root, brings its own
// configuration, which can name programs to run. A .git does not end the way: git
// passes over one that is none.
func (j *judging) gitTrap(dir string) string {
	if j.dry {
		return ""
	}
	for inside(j.r.ctx.Root, dir) {
		if exists(dir + "/HEAD") {
			for _, name := range besideHead {
				if exists(dir + "/" + name) {
					return fmt.Sprintf("git would take its orders from a directory that looks like a repository: %s has HEAD and %s in it", relative(j.r.ctx.Root, dir), name)
				}
			}
		}
		if dir == j.r.ctx.Root {
			return ""
		}
		dir = path.Dir(dir)
	}
	return ""
}
