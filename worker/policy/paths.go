package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxLinks is how many links one path may lead through, as on Linux.
const maxLinks = 40

var (
	errNotFollowed = errors.New(`goes up ("..") out of something that does not exist`)
	errProc        = errors.New("leads through /proc, which is another for each process")
)

// resolve returns where the kernel would arrive from base, a canonical
// directory, with the path word. What does not exist yet is taken as spelled,
// but nothing can go up from it. What leads through /proc, where links such as
// self are ours here and the command's later, is an error beside the path so far.
func resolve(base, word string) (string, error) {
	at, rest := base, word
	if filepath.IsAbs(word) {
		at = "/"
		if inside(base, word) && isClean(word) { // base is canonical: no need to walk it
			at, rest = base, strings.TrimPrefix(word[len(base):], "/")
		}
	}
	links, missing := 0, false
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		rest = more
		switch name {
		case "", ".":
			continue
		case "..":
			if missing {
				return "", errNotFollowed
			}
			at = path.Dir(at)
			continue
		}
		next := join(at, name)
		if next == "/proc" && rest != "" {
			return path.Join(next, rest), errProc
		}
		if missing {
			at = next
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = true
		case err != nil:
			return "", fmt.Errorf("cannot be followed: %w", pathReason(err))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(next)
			if err != nil {
				return "", fmt.Errorf("cannot be followed: %w", pathReason(err))
			}
			if links++; links > maxLinks {
				return "", errors.New("leads through too many links")
			}
			if filepath.VolumeName(to) != "" {
				return "", errors.New("leads through an absolute link")
			}
			rest = filepath.ToSlash(to) + "/" + rest
			if filepath.IsAbs(to) {
				at = "/"
			}
			continue
		}
		at = next
	}
	return at, nil
}

// oddName says what about a path is read in a way of its own by Windows: drives
// and streams, short names, and endings that are not there.
func oddName(word string) string {
	if strings.ContainsAny(word, ":~") {
		return "has a : or a ~ in it, which Windows reads in its own way"
	}
	for name := range strings.SplitSeq(word, "/") {
		if trimmed := strings.TrimRight(name, ". "); trimmed != name && name != "." && name != ".." {
			return "has a name that ends in a dot or a blank, which Windows leaves out"
		}
	}
	return ""
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

func isClean(p string) bool { return path.Clean(p) == p }

func pathReason(err error) error {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return perr.Err
	}
	return err
}

// inside reports whether p is dir or lies below it. Both are clean.
func inside(dir, p string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// relative is p as seen from root, "." for root itself. p lies inside.
func relative(root, p string) string {
	if p == root {
		return "."
	}
	return strings.TrimPrefix(p[len(root):], "/")
}

// hasGit reports whether a path leads to or into a directory named .git, in any
// case: some file systems do not tell them apart.
func hasGit(rel string) bool {
	for rel != "" {
		name, rest, _ := strings.Cut(rel, "/")
		if strings.EqualFold(name, ".git") {
			return true
		}
		rel = rest
	}
	return false
}

// glob is a pattern of paths relative to the work directory: ** stands for any
// number of whole names, none included; * ? and […] for what path.Match says,
// inside one name. One that begins with / is compared with absolute paths.
type glob struct {
	text     string
	segments []string
	must     string // what every match has in it; it keeps most comparisons short
	fold     bool
}

func parseGlob(text string, fold bool) (glob, error) {
	g := glob{text: text, fold: fold}
	if fold {
		text = strings.ToLower(text)
	}
	trimmed := strings.TrimPrefix(text, "/")
	if trimmed == "" {
		return g, errors.New("is empty, expected a path pattern such as src/**")
	}
	if path.Clean("/"+trimmed) != "/"+trimmed {
		return g, fmt.Errorf("%q is not in its shortest form; write it without //, ., .. and a / at the end", g.text)
	}
	if strings.HasPrefix(trimmed, "~") {
		return g, fmt.Errorf("%q begins with ~, which means nothing here; paths are relative to the work directory", g.text)
	}
	if text[0] == '/' {
		g.segments = append(g.segments, "")
	}
	for s := range strings.SplitSeq(trimmed, "/") {
		if strings.Contains(s, "**") && s != "**" {
			return g, fmt.Errorf("%q has ** beside other characters; it stands for whole names", g.text)
		}
		if _, err := path.Match(s, ""); err != nil {
			return g, fmt.Errorf("%q is not a path pattern", g.text)
		}
		if !strings.ContainsAny(s, `[\`) {
			for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '*' || r == '?' }) {
				if len(run) > len(g.must) {
					g.must = run
				}
			}
		}
		g.segments = append(g.segments, s)
	}
	return g, nil
}

func (g glob) absolute() bool { return g.segments[0] == "" }

// match compares with a clean path, "." for the work directory itself.
func (g glob) match(p string) bool {
	if g.fold {
		p = strings.ToLower(p)
	}
	if g.must != "" && !strings.Contains(p, g.must) {
		return false
	}
	if p == "." {
		p = ""
	}
	// After a mismatch, the last ** takes one name more: nothing else can help.
	segments, rest, done := g.segments, p, p == ""
	var afterStars []string
	var starRest string
	starDone, starred := false, false
	for {
		if len(segments) > 0 && segments[0] == "**" {
			segments = segments[1:]
			afterStars, starRest, starDone, starred = segments, rest, done, true
			continue
		}
		if len(segments) == 0 && done {
			return true
		}
		if len(segments) > 0 && !done {
			name, more, found := strings.Cut(rest, "/")
			if ok, _ := path.Match(segments[0], name); ok {
				segments, rest, done = segments[1:], more, !found
				continue
			}
		}
		if !starred || starDone {
			return false
		}
		_, more, found := strings.Cut(starRest, "/")
		starRest, starDone = more, !found
		segments, rest, done = afterStars, starRest, starDone
	}
}
