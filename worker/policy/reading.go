package policy

import (
	"fmt"
	"os"
	"path"
	"strings"

	"countersign/worker/api/wire"
)

// reading is a word that a program gets for a path, in one of the directories
// that it may run in.
type reading struct {
	base, word string
	git        bool // it is git, which reads more than paths from a word
	file       bool // only a file that is there will do
}

// maxColons bounds how many colons and double dots, which part paths in words,
// one word may have.
const maxColons = 8

// readable says what is wrong with reading a path from every base, or "".
func (j *judging) readable(program string, bases []string, word string, file bool) string {
	for _, b := range bases {
		r := reading{b, word, program == "git", file}
		why, known := j.reads[r]
		if !known {
			why = j.unreadable(r)
			if j.reads == nil {
				j.reads = map[reading]string{}
			}
			j.reads[r] = why
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func (j *judging) unreadable(r reading) string {
	if r.git {
		if why := gitReads(r.word); why != "" {
			return why
		}
	}
	if v := j.path(wire.KindRead, r.base, r.word); v.verdict != Allow {
		return v.reason
	}
	if r.file && !j.dry && regular(r.base, r.word) == "" {
		return fmt.Sprintf("%q is not a file that is there", r.word)
	}
	if strings.Contains(r.word, ":") {
		return j.afterColons(r)
	}
	return ""
}

// gitReads says what about a word git reads in a way of its own: a pattern of
// paths, as it has them without a shell's help, or one of many words that begin
// with a colon.
func gitReads(word string) string {
	if at := strings.IndexAny(word, `*?[\`); at >= 0 {
		return fmt.Sprintf("git reads the %c in %q as a pattern", word[at], word)
	}
	if strings.HasPrefix(word, ":") {
		return fmt.Sprintf("git reads %q, which begins with a colon, in a way of its own", word)
	}
	return ""
}

// afterColons judges what follows any colon of a word, as the path that it can
// be: HEAD:src/a.go, HEAD@{0:00}:.env, 1,5:main.go, a:x..b:y.
func (j *judging) afterColons(r reading) string {
	if strings.Count(r.word, ":") > maxColons || strings.Count(r.word, "..") > maxColons {
		return fmt.Sprintf("%q has more than %d colons or double dots in it", r.word, maxColons)
	}
	_, rest, more := strings.Cut(r.word, ":")
	for ; more; _, rest, more = strings.Cut(rest, ":") {
		names := []string{rest}
		for at := range len(rest) {
			if r.git && strings.HasPrefix(rest[at:], "..") {
				names = append(names, rest[:at])
			}
		}
		for _, name := range names {
			if why := j.inCommit(r, name); why != "" {
				return why
			}
		}
	}
	return ""
}

// inCommit judges a path in what stands before a colon. git counts it from where
// its repository begins, unless it says to count from here.
func (j *judging) inCommit(r reading, name string) string {
	if name == "" {
		return ""
	}
	v := j.path(wire.KindRead, r.base, name)
	if v.verdict == Deny {
		return v.reason
	}
	if !r.git {
		return ""
	}
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		v = j.path(wire.KindRead, j.repository(r.base), name)
	}
	if v.verdict != Allow {
		return v.reason
	}
	return ""
}

// repository is where the repository begins that a directory belongs to, or the
// work directory if there is none.
func (j *judging) repository(dir string) string {
	if j.dry {
		return j.r.ctx.Root
	}
	for at := dir; ; at = path.Dir(at) {
		if _, err := os.Lstat(join(at, ".git")); err == nil {
			return at
		}
		if at == path.Dir(at) {
			return j.r.ctx.Root
		}
	}
}
