package policy

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"countersign/worker/api/wire"
)

// maxInner bounds how many commands found inside parts are listed although
// nothing is said about them.
const maxInner = 200

// exec judges a command part by part.
func (j *judging) exec() []Part {
	s := script{why: "commands are not run by a POSIX shell here"}
	if !j.r.ctx.OtherShell || j.dry {
		s = understand(j.item.Command)
	}
	all := search(j.item.Command, s, j.r.ctx.Home, j.item.Env)
	j.guardOwn(all)
	parts, commands := j.parts(s)
	parts = j.searched(s, all, parts, commands)
	if s.why != "" && !slices.ContainsFunc(parts, func(p Part) bool { return p.Verdict != Allow }) {
		parts = append(parts, Part{Text: j.item.Command, Verdict: Ask, Reason: s.why})
	}
	if at := slices.IndexFunc(parts, func(p Part) bool { return p.Verdict == Ask }); at >= 0 {
		if why := j.mayTouchOwn(s, all); why != "" {
			p := &parts[at]
			p.Reason, p.always, p.own = p.Reason+"; "+why, true, true
		}
	}
	return parts
}

// parts judges the parts that are understood, or says for each why none is. The
// second result tells which are commands, by their text.
func (j *judging) parts(s script) ([]Part, map[string]int) {
	var out []Part
	commands := map[string]int{}
	var b bases
	b.at, b.why = j.directory()
	for i, pt := range s.parts {
		v := Part{Text: pt.text, Verdict: Ask}
		next := ""
		if i+1 < len(s.parts) {
			next = s.parts[i+1].op
		}
		b.before(pt)
		switch {
		case s.whole:
			v.Reason = s.why
		case pt.why != "":
			v.Reason = pt.why
			b.started = true
		case b.why != "":
			v.Reason = b.why
		case isCd(pt):
			v = j.cd(pt, &b, next)
		default:
			b.started = true
			j.simple(pt, b.all(), &v)
		}
		commands[pt.text] = len(out)
		if pt.call != "" {
			commands[pt.call] = len(out)
		}
		out = append(out, v)
		for _, r := range pt.redirs {
			if p, ok := j.redirect(r, b.all()); ok {
				out = append(out, p)
			}
		}
	}
	if len(s.parts) == 0 {
		out = append(out, Part{Text: j.item.Command, Verdict: Ask, Reason: s.why})
		commands[j.item.Command] = 0
	}
	return out, commands
}

// directory is where the command runs, or why that is not known.
func (j *judging) directory() (dir, why string) {
	word := strings.TrimLeft(filepath.ToSlash(j.item.Cwd), "/")
	if word == "" {
		return j.r.ctx.Root, ""
	}
	dir, err := path.Join(j.r.ctx.Root, word), error(nil)
	if !j.dry {
		dir, err = resolve(j.r.ctx.Root, word)
	}
	switch {
	case err != nil:
		return j.r.ctx.Root, fmt.Sprintf("its directory %q %s", j.item.Cwd, err)
	case !inside(j.r.ctx.Root, dir):
		return j.r.ctx.Root, fmt.Sprintf("its directory %q lies outside the work directory", j.item.Cwd)
	}
	return dir, ""
}

// bases are the directories that a part may run in.
type bases struct {
	at      string   // where it runs as long as everything before succeeded
	past    []string // where it may run if something before failed
	unsure  bool     // something before may have failed
	started bool     // something other than cd came before
	why     string   // why none is known
}

func (b *bases) all() []string {
	if b.unsure {
		return append([]string{b.at}, b.past...)
	}
	return []string{b.at}
}

// before notes what stands before a part. && makes sure that a cd before it
// worked, and the members of a pipeline start in the same directory.
func (b *bases) before(pt part) {
	b.unsure = b.unsure || pt.op != "" && pt.op != "&&" && pt.op != "|"
}

func isCd(pt part) bool { return len(pt.words) > 0 && pt.words[0] == "cd" }

// cd judges a cd that leads a command, and moves the base for what follows.
func (j *judging) cd(pt part, b *bases, next string) Part {
	v := Part{Text: pt.text, Verdict: Ask}
	if b.started || b.unsure || pt.piped || len(pt.words) != 2 || len(pt.assigns)+len(pt.redirs) > 0 || strings.HasPrefix(pt.text, "!") || next != "&&" {
		v.Reason = "only cd PATH && at the beginning is understood"
		b.why = "the directory it runs in is not known"
		return v
	}
	to, why := j.cdTarget(b.at, pt.words[1])
	if why != "" {
		v.Reason, b.why = why, "the directory it runs in is not known"
		return v
	}
	b.past = append(b.past, b.at)
	b.at = to
	v.Verdict, v.Reason = Allow, "it moves within the work directory"
	return v
}

// cdTarget returns where cd leads. A shell takes ".." out of a path before it
// follows links, and the kernel after: both must agree.
func (j *judging) cdTarget(base, word string) (to, why string) {
	if word == "" || strings.HasPrefix(word, "-") {
		return "", fmt.Sprintf("cd %q leads to where the shell says", word)
	}
	if j.r.ctx.CDPath != "" && !path.IsAbs(word) && word[0] != '.' {
		return "", "CDPATH is set: cd can lead elsewhere"
	}
	logical := path.Clean(word)
	if !path.IsAbs(word) {
		logical = path.Join(base, word)
	}
	if !inside(j.r.ctx.Root, logical) {
		return "", fmt.Sprintf("%q lies outside the work directory", word)
	}
	if j.dry {
		return logical, ""
	}
	real, err := resolve(base, word)
	switch {
	case err != nil:
		return "", fmt.Sprintf("%q %s", word, err)
	case real != logical:
		return "", fmt.Sprintf("%q leads through a link", word)
	}
	return real, ""
}

// simple judges one simple command by the allow patterns.
func (j *judging) simple(pt part, dirs []string, v *Part) {
	if len(pt.words) == 0 {
		v.Reason = "it only sets variables"
		return
	}
	name := pt.words[0]
	switch {
	case strings.Contains(name, "/"):
		v.Reason = "programs are allowed by their names, not by paths"
		return
	case shellOnly[name]:
		v.Reason = fmt.Sprintf("%s changes what the shell does", name)
		return
	}
	best := mismatch{at: -1}
	for _, a := range j.r.allow[name] {
		if !a.rule.applies(j.item, j.now) || !a.rule.in(dirs) {
			continue
		}
		miss, ok := a.pattern.match(pt.words[1:], func(w string, file bool) string { return j.readable(name, dirs, w, file) })
		if ok {
			if why := j.unmet(a, pt, dirs); why != "" {
				best = mismatch{at: len(pt.words) + 1, why: why}
				continue
			}
			v.Verdict, v.Rule, v.rules, v.RunsCode = Allow, a.rule.name, []string{a.rule.name}, a.rule.runsCode
			v.Reason = fmt.Sprintf("rule %q allows it", a.rule.name)
			return
		}
		if miss.at > best.at || miss.at == best.at && best.why == "" {
			best = miss
		}
	}
	v.Reason = best.reason(name, pt.words[1:])
}

// in reports whether the rule is for all of these directories.
func (ru *rule) in(dirs []string) bool {
	for _, d := range dirs {
		if ru.cwd != "" && d != ru.cwd && (!ru.below || !inside(ru.cwd, d)) {
			return false
		}
	}
	return true
}

func (m mismatch) reason(name string, args []string) string {
	switch {
	case m.at < 0:
		return fmt.Sprintf("no rule allows %s", name)
	case m.why != "":
		return m.why
	case m.at >= len(args):
		return fmt.Sprintf("no rule allows %s with nothing more", name)
	case strings.HasPrefix(args[m.at], "-"):
		return fmt.Sprintf("no rule for %s lists the option %q", name, args[m.at])
	}
	return fmt.Sprintf("no rule for %s fits %q", name, args[m.at])
}

// unmet says what else keeps a matching pattern from allowing a part.
func (j *judging) unmet(a allowing, pt part, dirs []string) string {
	for _, as := range pt.assigns {
		if !a.rule.env[as.name] {
			return fmt.Sprintf("it sets %s, which rule %q does not list", as.name, a.rule.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.item.Env)) {
		if !a.rule.env[name] {
			return fmt.Sprintf("%s is added to its environment, which rule %q does not list", name, a.rule.name)
		}
	}
	if pt.words[0] == "git" {
		for _, d := range dirs {
			if why := j.gitTrap(d); why != "" {
				return why
			}
		}
	}
	for _, name := range a.pattern.starts() {
		if why := j.program(name); why != "" {
			return why
		}
	}
	return ""
}

// redirect judges what a redirection reads or writes, if it does either.
func (j *judging) redirect(r redir, dirs []string) (Part, bool) {
	p := Part{Text: r.text, Verdict: Allow}
	use := r.use()
	switch {
	case use == noFile:
		return p, false
	case r.why == "" && r.target == "/dev/null":
		p.Reason = "nothing is kept there"
		return p, true
	}
	kind := wire.KindRead
	if use == writes {
		kind = wire.KindWrite
	}
	for _, d := range dirs {
		v := j.path(kind, d, r.target)
		if rank(v.verdict) < rank(p.Verdict) || p.Reason == "" {
			p.Verdict, p.Reason, p.Rule, p.rules = v.verdict, v.reason, v.rule, nil
			if v.rule != "" {
				p.rules = []string{v.rule}
			}
		}
		p.always = p.always || v.always
	}
	if r.why != "" && p.Verdict != Deny {
		p.Verdict, p.Reason, p.Rule, p.rules = Ask, r.why, "", nil
	}
	return p, true
}

func rank(v Verdict) int {
	switch v {
	case Deny:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// searched adds what the search for denied commands has to say.
func (j *judging) searched(s script, all []found, parts []Part, commands map[string]int) []Part {
	inner := 0
	for _, f := range all {
		verdict, rule, reason := j.refused(f)
		at, top := commands[f.text]
		switch {
		case verdict == "" && (top || s.why == "" || inner >= maxInner || f.text == "" || len(f.words) == 0):
			continue
		case !top:
			inner++
			at = len(parts)
			commands[f.text] = at
			parts = append(parts, Part{Text: f.text, Verdict: Ask, Inner: true, Reason: "it is found inside another part"})
		}
		if verdict == "" || rank(verdict) > rank(parts[at].Verdict) || parts[at].Verdict == Deny {
			continue
		}
		p := &parts[at]
		p.Verdict, p.Rule, p.Reason, p.rules, p.RunsCode = verdict, rule, reason, nil, false
		if rule != "" {
			p.rules = []string{rule}
		}
	}
	return parts
}

// refused returns the deny or ask rule that a found command meets.
func (j *judging) refused(f found) (v Verdict, rule, reason string) {
	if own := j.writesOwn(f); own != "" {
		return Deny, "", fmt.Sprintf("%q is Countersign's own: tool calls never write there", own)
	}
	try := func(refs []refusing) {
		for _, ref := range refs {
			if v == Deny || v == Ask && ref.verdict == Ask || !ref.rule.applies(j.item, j.now) || !ref.pattern.in(f, j.r.ctx.FoldCase, j.samePath) {
				continue
			}
			v, rule = ref.verdict, ref.rule.name
			says := "denies"
			if v == Ask {
				says = "asks for"
			}
			reason = fmt.Sprintf("rule %q %s %q", rule, says, ref.pattern.text)
		}
	}
	if len(j.r.broad) == 0 {
		return "", "", ""
	}
	for _, w := range f.words {
		if w.glob {
			for _, refs := range j.r.broad {
				try(refs)
			}
		} else {
			name := base(w.text)
			if j.r.ctx.FoldCase {
				name = strings.ToLower(name)
			}
			try(j.r.broad[name])
		}
		if !f.wrapped {
			break
		}
	}
	return v, rule, reason
}

// samePath compares two words as paths from the work directory.
func (j *judging) samePath(a, b string) bool {
	to := func(p string) string {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = j.r.ctx.Home + "/" + rest
		}
		if j.dry {
			if path.IsAbs(p) {
				return path.Clean(p)
			}
			return path.Join(j.r.ctx.Root, p)
		}
		abs, err := resolve(j.r.ctx.Root, p)
		if err != nil {
			return path.Clean(p)
		}
		return abs
	}
	a, b = to(a), to(b)
	return a == b || j.r.ctx.FoldCase && strings.EqualFold(a, b)
}
