package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign/worker/api/wire"
)

// maxFiles bounds how many files one command is taken to name.
const maxFiles = 100

// NamedFiles returns the regular files that a command names, by their canonical
// paths, sorted: what is hashed when it is shown and compared before it runs
// (APPROVALS.md, "The traps"). What these files load is not among them. root is
// the canonical work directory.
func NamedFiles(root string, i Item) []string {
	if i.Kind != wire.KindExec {
		return nil
	}
	dirs := []string{root}
	if cwd := strings.TrimLeft(filepath.ToSlash(i.Cwd), "/"); cwd != "" {
		if dir, err := resolve(root, cwd); err == nil {
			dirs[0] = dir
		}
	}
	home, _ := os.UserHomeDir()
	understood := understand(i.Command)
	if understood.why == "" && onlyLooks(understood.parts) {
		return nil
	}
	all := search(i.Command, understood, home)
	for _, f := range all { // each may run where any cd leads
		if len(f.words) == 2 && f.words[0].text == "cd" && len(dirs) < 8 {
			if dir, err := resolve(dirs[len(dirs)-1], f.words[1].text); err == nil {
				dirs = append(dirs, dir)
			}
		}
	}
	c := collector{seen: map[string]bool{}}
	for _, f := range all {
		for _, w := range f.words {
			_, after, _ := strings.Cut(w.text, "=")
			for _, dir := range dirs {
				c.add(dir, w.text)
				c.add(dir, after)
			}
		}
	}
	slices.Sort(c.files)
	return slices.Compact(c.files)
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

type collector struct {
	files []string
	seen  map[string]bool // directories and words that were looked at
}

func (c *collector) add(dir, word string) {
	key := dir + "\x00" + word
	if word == "" || c.seen[key] || len(c.seen) > 100*maxFiles || len(c.files) == maxFiles {
		return
	}
	c.seen[key] = true
	if file := regular(dir, word); file != "" {
		c.files = append(c.files, file)
	}
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
