package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// removers are writers that take a directory with all that is in it.
var removers = setOf("rm rmdir unlink shred mv chmod chown chgrp chattr setfacl rsync")

// readers are programs that write nothing, whatever they are told.
var readers = setOf(`cat ls head tail wc nl tac stat file du df tree basename dirname realpath readlink which cmp diff md5sum sha1sum sha256sum
	sha512sum hexdump od strings grep egrep fgrep rg test [ cd echo printf pwd true false cut tr rev fold jq ag`)

// maxOwnLooks bounds how often the disk is asked whether a word leads to what is
// ours.
const maxOwnLooks = 5000

// guard is what is known of a command for telling whether it may write to what is
// ours.
type guard struct {
	dirs  []string // that it may be in
	lost  bool     // there may be others, or words that were not followed
	fed   bool     // a program that writes gets its words from another
	whole bool     // and removes whole directories
	looks int      // how often the disk may still be asked
}

// guardOwn looks at all the commands that were found together.
func (j *judging) guardOwn(all []found) {
	dir, _ := j.directory()
	j.own = guard{dirs: []string{dir}, looks: maxOwnLooks}
	if len(j.r.ctx.Own) == 0 {
		return
	}
	for from := 0; from < len(j.own.dirs); from++ {
		for _, f := range all {
			for _, w := range f.leads() {
				for _, to := range j.goesTo(j.own.dirs[from], w) {
					switch {
					case slices.Contains(j.own.dirs, to):
					case len(j.own.dirs) == maxDirs:
						j.own.lost = true
					default:
						j.own.dirs = append(j.own.dirs, to)
					}
				}
			}
		}
	}
	for _, f := range all {
		for _, w := range f.words {
			if f.wrapped && (w.text == "xargs" || w.text == "parallel") {
				writes, removes := f.writesFiles()
				j.own.fed, j.own.whole = j.own.fed || writes, j.own.whole || removes
			}
		}
	}
}

// goesTo returns where a cd from a directory can lead: to what is there.
func (j *judging) goesTo(dir string, w loose) []string {
	places := j.places(dir, w.text)
	if !w.glob {
		at := places[len(places)-1]
		switch {
		case !j.dry && !exists(at):
			return nil
		case strings.Contains(w.text, ".."): // a shell takes it out before it follows links
			return places
		}
		return []string{at}
	}
	for _, own := range j.r.ctx.Own {
		for at := own; at != path.Dir(at); at = path.Dir(at) {
			if matchesAll(places[0], at) {
				places = append(places, at)
			}
		}
	}
	return places
}

// places returns where a path leads, as spelled and, if that is another, as
// resolved.
func (j *judging) places(dir, word string) []string {
	spelled := path.Clean(word)
	if !path.IsAbs(word) {
		spelled = path.Join(dir, word)
	}
	if j.dry || len(word) > maxPath {
		return []string{spelled}
	}
	if j.own.looks == 0 {
		j.own.lost = true
		return []string{spelled}
	}
	j.own.looks--
	if abs, err := resolve(dir, word); err == nil && abs != spelled {
		return []string{spelled, abs}
	}
	return []string{spelled}
}

// writesFiles reports whether a command is known to write to files that it
// names, and whether it takes whole directories. Whoever is told what to run by
// its words may run any of them.
func (f found) writesFiles() (writes, removes bool) {
	for i, w := range f.words {
		if i > 0 && !f.wrapped {
			break
		}
		name := strings.TrimRight(base(w.text), "0123456789.")
		removes = removes || removers[name] || name == "find" && slices.ContainsFunc(f.words, func(w loose) bool {
			return w.text == "-delete" || strings.HasPrefix(w.text, "-exec")
		})
		writes = writes || removes || writers[name] || writers[base(w.text)]
	}
	return writes, removes
}

// writesOwn returns the word by which a command may write to what is ours: to
// be told apart from reading, its program has to be known to write.
func (j *judging) writesOwn(f found) string {
	if len(j.r.ctx.Own) == 0 {
		return ""
	}
	writes, removes := f.writesFiles()
	if word := j.namesOwn(f.writes, removes); word != "" {
		return word
	}
	if writes || f.wrapped || j.own.fed {
		if word := j.namesOwn(f.words, removes || j.own.whole); word != "" {
			return word
		}
	}
	if j.own.fed {
		return j.namesOwn(f.named, j.own.whole)
	}
	return ""
}

// namesOwn returns the word that leads to what is ours or, where whole
// directories go, to one that it is in.
func (j *judging) namesOwn(words []loose, whole bool) string {
	for _, w := range words {
		for _, text := range pieces(w.text) {
			for _, dir := range j.own.dirs {
				if len(text) <= maxPath && j.leadsToOwn(dir, loose{text, w.glob}, whole) {
					return w.text
				}
			}
		}
	}
	return ""
}

func (j *judging) leadsToOwn(dir string, w loose, whole bool) bool {
	if w.text == "" || w.text[0] == '-' && !strings.Contains(w.text, "/") {
		return false
	}
	places := j.places(dir, w.text)
	for _, p := range places {
		if isOwn(&j.r.ctx, p) {
			return true
		}
		for _, own := range j.r.ctx.Own {
			if whole && inside(p, own) || w.glob && matchesOwn(p, own, whole) {
				return true
			}
		}
	}
	return false
}

// matchesOwn reports whether a pattern of the shell, as an absolute path, can
// stand for what is ours, for what lies in it, or, of whole directories, for one
// that it is in.
func matchesOwn(pattern, own string, whole bool) bool {
	return matchesFirst(pattern, own) || whole && matchesFirst(own, pattern)
}

// matchesFirst reports whether the names that the shorter path has are matched,
// whichever of the two is the pattern.
func matchesFirst(longer, shorter string) bool {
	for {
		var a, b string
		var more bool
		if b, shorter, more = cutName(shorter); !more {
			return true
		}
		if a, longer, more = cutName(longer); !more {
			return false
		}
		if !nameMatches(a, b) && !nameMatches(b, a) {
			return false
		}
	}
}

func matchesAll(pattern, p string) bool {
	return strings.Count(pattern, "/") == strings.Count(p, "/") && matchesFirst(pattern, p)
}

// cutName takes the first name off a path.
func cutName(p string) (name, rest string, ok bool) {
	p = strings.TrimLeft(p, "/")
	if p == "" {
		return "", "", false
	}
	name, rest, _ = strings.Cut(p, "/")
	return name, rest, true
}

// nameMatches compares one name with one pattern, which stands for a hidden one
// only if it begins with a dot too.
func nameMatches(pattern, name string) bool {
	if name[0] == '.' && pattern[0] != '.' {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// mayTouchOwn says what about an item that is asked for could lead to what is
// ours, or "": a program of which it is not known whether it writes, given a path
// there, or something that is not followed, and a name of ours in it.
func (j *judging) mayTouchOwn(s script, all []found) string {
	if len(j.r.ctx.Own) == 0 {
		return ""
	}
	unknown := s.why != ""
	for _, f := range all {
		unknown = unknown || f.wrapped
		if len(f.words) == 0 || readers[f.words[0].text] && !f.wrapped {
			continue
		}
		if word := j.namesOwn(f.words, false); word != "" {
			return fmt.Sprintf("%q may touch Countersign's own files", word)
		}
		for _, dir := range j.own.dirs {
			if isOwn(&j.r.ctx, dir) && !slices.Contains([]string{"cd", "pushd", "popd"}, f.words[0].text) {
				return fmt.Sprintf("%s may touch Countersign's own files", f.words[0].text)
			}
		}
	}
	switch {
	case j.own.lost:
		return "it names too many paths to tell which of them are Countersign's own files"
	case !unknown:
		return ""
	}
	texts := []string{j.item.Command}
	for _, value := range j.item.Env {
		texts = append(texts, value)
	}
	for _, own := range j.r.ctx.Own {
		for _, text := range texts {
			if mentions(text, path.Base(own), j.r.ctx.FoldCase) {
				return fmt.Sprintf("it names %q and may touch Countersign's own files", path.Base(own))
			}
		}
	}
	return ""
}

// unquoting takes away what only keeps a name from being seen.
var unquoting = strings.NewReplacer("'", "", `"`, "", `\`, "", "\n", " ")

// mentions reports whether a name stands in a text, not as a part of another.
func mentions(text, name string, fold bool) bool {
	if fold {
		text, name = strings.ToLower(text), strings.ToLower(name)
	}
	for _, t := range []string{text, unquoting.Replace(text)} {
		for rest := t; ; {
			at := strings.Index(rest, name)
			if at < 0 {
				break
			}
			end := at + len(name)
			if (at == 0 || !inName(rest[at-1])) && (end == len(rest) || !inName(rest[end])) {
				return true
			}
			rest = rest[at+1:]
		}
	}
	return false
}

func inName(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c >= 0x80 }
