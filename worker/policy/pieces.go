package policy

import (
	"io"
	"os"
	"path"
	"strings"
)

// maxPath is the longest path that a kernel follows, in bytes, and maxPieces how
// many parts of one word are taken for paths.
const (
	maxPath   = 4096
	maxPieces = 64
)

// pieces returns what of a word may be a path: the word, what may be attached to
// the letters of options, and what stands between or after = : , and @.
func pieces(word string) []string {
	dash := len(word) > 2 && word[0] == '-' && word[1] != '-'
	if !dash && !strings.ContainsAny(word, "=:,@") {
		return []string{word}
	}
	out := []string{word}
	add := func(s string) {
		if s != "" && len(s) <= maxPath && len(out) < maxPieces {
			out = append(out, s)
		}
	}
	if dash {
		for at := 2; at < min(len(word), 10); at++ {
			add(word[at:])
		}
	}
	for rest := word; len(out) < maxPieces; {
		at := strings.IndexAny(rest, "=:,@")
		if at < 0 {
			break
		}
		if at < len(rest)-1 {
			add(rest[:at])
		}
		rest = rest[at+1:]
		add(rest)
	}
	return out
}

// dirOptions are options whose value is the directory that a program goes to.
var dirOptions = []string{"-C", "--chdir", "--directory", "--cwd", "--prefix", "--workdir", "-D", "-w"}

// leads returns the words by which a command goes to another directory.
func (f found) leads() (out []loose) {
	goes := goers[base(f.first())]
	for i, w := range f.words {
		if f.wrapped && goers[w.text] {
			goes = true
			continue
		}
		if goes && i > 0 && !strings.HasPrefix(w.text, "-") {
			out = append(out, w)
			continue
		}
		for _, o := range dirOptions {
			switch rest, ok := strings.CutPrefix(w.text, o); {
			case !ok:
			case rest == "" && i+1 < len(f.words):
				out = append(out, f.words[i+1])
			case rest != "":
				out = append(out, loose{strings.TrimPrefix(rest, "="), w.glob})
			}
		}
	}
	return out
}

var goers = setOf("cd chdir pushd")

// first is the program of a command, "" if it has none.
func (f found) first() string {
	if len(f.words) == 0 {
		return ""
	}
	return f.words[0].text
}

// maxEntries bounds how many entries of one directory a pattern is compared with.
const maxEntries = 2000

// texts returns what of a word may be a path from a directory: its pieces, and
// what these match there if they are patterns.
func (c *collector) texts(dir string, w loose) []string {
	out := pieces(w.text)
	if !w.glob {
		return out
	}
	for _, p := range out {
		if strings.ContainsAny(p, "*?[") {
			out = append(out, c.matches(dir, p)...)
		}
	}
	return out
}

// matches returns the paths from a directory that a pattern of the shell stands
// for. What is too much to look at is noted as left out.
func (c *collector) matches(dir, pattern string) []string {
	found := []string{""}
	if path.IsAbs(pattern) {
		found = []string{"/"}
	}
	for name := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, at := range found {
			if !strings.ContainsAny(name, "*?[") {
				next = append(next, at+name+"/")
				continue
			}
			in := at
			if !path.IsAbs(in) {
				in = dir + "/" + in
			}
			for _, entry := range c.entries(in) {
				if ok, err := path.Match(name, entry); ok && err == nil && (entry[0] != '.' || name[0] == '.') {
					next = append(next, at+entry+"/")
				}
			}
			if len(next) > 2*maxFiles {
				c.more = true
				break
			}
		}
		found = next
	}
	for i := range found {
		found[i] = strings.TrimSuffix(found[i], "/")
	}
	return found
}

// entries are the names in a directory.
func (c *collector) entries(dir string) []string {
	if c.looks <= 0 {
		return nil
	}
	c.looks--
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries)
	if err == nil && len(names) == maxEntries {
		if _, err := f.Readdirnames(1); err != io.EOF {
			c.more = true
		}
	}
	c.looks -= len(names) / 20
	return names
}
