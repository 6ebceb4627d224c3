package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/worker/api/wire"
)

// maxFiles bounds how many files of one command are compared, and maxLooks how
// often the disk is asked for them.
const (
	maxFiles = 1000
	maxLooks = 20000
)

// NamedFiles returns the regular files that a command names, by their canonical
// paths: what is hashed when it is shown and compared before it runs
// (APPROVALS.md, "The traps"). What these files load is not among them. Those that
// may run come before those that are only looked at. root is the canonical work
// directory. more says that there are or may be others, which are not compared.
func NamedFiles(root string, i Item) (files []string, more bool) {
	if i.Kind != wire.KindExec {
		return nil, false
	}
	home, _ := os.UserHomeDir()
	understood := understand(i.Command)
	if understood.why == "" && len(i.Env) == 0 && onlyLooks(understood.parts) {
		return nil, false
	}
	start := root
	if cwd := strings.TrimLeft(filepath.ToSlash(i.Cwd), "/"); cwd != "" {
		if dir, err := resolve(root, cwd); err == nil {
			start = dir
		}
	}
	all := search(i.Command, understood, home, i.Env)
	c := collector{seen: map[string]bool{}, looks: maxLooks}
	c.dirs = []string{start}
	c.wander(all, found.leads)
	c.looks = maxLooks / 4
	c.wander(all, found.all)
	c.looks = maxLooks
	for _, data := range []bool{false, true} {
		from := len(c.files)
		for _, f := range all {
			if !data {
				c.words(f.named)
			}
			if f.looks() == data {
				c.words(f.words)
				c.words(f.writes)
			}
		}
		slices.Sort(c.files[from:])
	}
	return c.files, c.more || c.looks <= 0
}

// looking are programs to which a file is nothing but data, whatever it says. A
// log that grows while a person thinks does not bring "tail log" back to them.
var looking = []string{"cat", "cd", "cmp", "du", "echo", "egrep", "fgrep", "file", "grep", "head", "ls", "pwd", "stat", "tail", "true", "wc"}

// onlyLooks reports whether all that a command runs are such programs.
func onlyLooks(parts []part) bool {
	for _, p := range parts {
		if len(p.words) == 0 || len(p.assigns) > 0 || !slices.Contains(looking, p.words[0]) {
			return false
		}
	}
	return len(parts) > 0
}

func (f found) looks() bool {
	return !f.wrapped && len(f.words) > 0 && slices.Contains(looking, f.words[0].text)
}

// all are all the words of a command that may be paths.
func (f found) all() []loose { return slices.Concat(f.words, f.named) }

// collector finds the files that words name.
type collector struct {
	dirs  []string // that the command may be in
	files []string
	seen  map[string]bool // directories and words, and files
	looks int             // how often the disk may still be asked
	more  bool            // something was left out
}

// maxDirs bounds how many directories a command is taken to be in.
const maxDirs = 16

// wander adds the directories that words lead to, from any that are there.
func (c *collector) wander(all []found, words func(found) []loose) {
	for from := 0; from < len(c.dirs); from++ {
		dir := c.dirs[from]
		for _, f := range all {
			for _, w := range words(f) {
				for _, text := range c.texts(dir, w) {
					if to := c.look(dir, text); to.isDir && !slices.Contains(c.dirs, to.path) {
						if len(c.dirs) == maxDirs {
							return
						}
						c.dirs = append(c.dirs, to.path)
					}
				}
			}
		}
	}
}

// words adds the files that words name.
func (c *collector) words(words []loose) {
	for _, w := range words {
		for _, dir := range c.dirs {
			for _, text := range c.texts(dir, w) {
				c.add(dir, text)
			}
		}
	}
}

func (c *collector) add(dir, word string) {
	key := dir + "\x00" + word
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	to := c.look(dir, word)
	switch {
	case !to.isFile || c.seen[to.path]:
	case len(c.files) == maxFiles:
		c.more = true
	default:
		c.seen[to.path] = true
		c.files = append(c.files, to.path)
	}
}

// spot is what is where a path leads.
type spot struct {
	path          string
	isDir, isFile bool
}

// look asks the disk what is where a word leads.
func (c *collector) look(dir, word string) spot {
	if word == "" || len(word) > maxPath || c.looks <= 0 {
		return spot{}
	}
	c.looks--
	at, err := resolve(dir, word)
	if errors.Is(err, errProc) {
		// The directory of the process that will follow it is this one.
		if _, rest, ok := strings.Cut(at, "/cwd/"); ok {
			at, err = resolve(dir, rest)
		}
	}
	if err != nil {
		return spot{}
	}
	info, err := os.Lstat(at)
	if err != nil {
		return spot{}
	}
	return spot{at, info.IsDir(), info.Mode().IsRegular()}
}

// regular returns where a word leads if that is a regular file.
func regular(dir, word string) string {
	file, err := resolve(dir, word)
	if err != nil {
		return ""
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}
