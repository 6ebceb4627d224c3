package policy

import (
	"path"
	"slices"
	"strings"
)

// removers are writers that take a directory with all that is in it.
var removers = setOf("rm rmdir unlink shred mv chmod chown chgrp chattr setfacl rsync")

// writesOwn returns the word by which a command may write to what is ours: to
// be told apart from reading, its program has to be known not to write.
func (j *judging) writesOwn(f found) string {
	if len(j.r.ctx.Own) == 0 {
		return ""
	}
	words, removes, writes := slices.Clone(f.writes), false, f.wrapped
	for i, w := range f.words {
		if i > 0 && !f.wrapped {
			break
		}
		name := strings.TrimRight(base(w.text), "0123456789.")
		removes = removes || removers[name] || name == "find" && slices.ContainsFunc(f.words, func(w loose) bool {
			return w.text == "-delete" || strings.HasPrefix(w.text, "-exec")
		})
		writes = writes || removes || writers[name]
	}
	if writes {
		words = append(words, f.words...)
	}
	dir, _ := j.directory()
	for _, w := range words {
		_, after, _ := strings.Cut(w.text, "=")
		for _, text := range []string{w.text, after} {
			if strings.Contains(text, "/") || strings.HasPrefix(text, "..") {
				if j.leadsToOwn(dir, text, removes) {
					return text
				}
			}
		}
	}
	return ""
}

// leadsToOwn reports whether a word names what is ours, something in it, or,
// where a whole directory goes, one that it is in.
func (j *judging) leadsToOwn(dir, word string, whole bool) bool {
	spelled := path.Clean(word)
	if !path.IsAbs(word) {
		spelled = path.Join(dir, word)
	}
	places := []string{spelled}
	if !j.dry {
		if abs, err := resolve(dir, word); err == nil && abs != spelled {
			places = append(places, abs)
		}
	}
	for _, p := range places {
		if isOwn(&j.r.ctx, p) {
			return true
		}
		for _, own := range j.r.ctx.Own {
			if whole && inside(p, own) {
				return true
			}
		}
	}
	return false
}
