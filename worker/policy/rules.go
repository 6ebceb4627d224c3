package policy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"countersign/worker/api/wire"
)

// Context is the place that rules are read and judged for: one connection's
// work directory on this machine. Root is required; zero fields take the
// defaults named here.
type Context struct {
	Root       string           // canonical path of the work directory
	SearchPath string           // PATH as commands get it; default that of this process
	CDPath     string           // CDPATH as commands get it; with one, cd can go elsewhere
	Home       string           // home directory, for ~ and $HOME in what is denied; default the user's
	Own        []string         // our configuration, data and rules: writing there is denied
	FoldCase   bool             // the file system takes A and a for the same; default on macOS and Windows
	OtherShell bool             // commands are not run by a POSIX shell, so none is understood; default on Windows
	Now        func() time.Time // default time.Now

	// LookPath returns the file, with links followed, that a program's name
	// stands for. The default searches SearchPath and refuses what could be
	// replaced from inside the work directory.
	LookPath func(name string) (file string, err error)

	windows bool // names of files are read as Windows does
}

func (c Context) withDefaults() Context {
	if c.SearchPath == "" {
		c.SearchPath = os.Getenv("PATH")
	}
	if c.Home == "" {
		c.Home, _ = os.UserHomeDir()
	}
	c.FoldCase = c.FoldCase || runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	c.OtherShell = c.OtherShell || runtime.GOOS == "windows"
	c.windows = runtime.GOOS == "windows"
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LookPath == nil {
		root, search := c.Root, c.SearchPath
		c.LookPath = func(name string) (string, error) { return lookPath(root, search, name) }
	}
	own := make([]string, len(c.Own))
	for i, p := range c.Own {
		own[i] = path.Clean(p)
		if real, err := filepath.EvalSymlinks(p); err == nil {
			own[i] = real
		}
	}
	c.Own = own
	return c
}

// lookPath finds a program as a shell does, as long as nothing in the work
// directory has a say in it.
func lookPath(root, search, name string) (string, error) {
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("PATH has %q in it, which depends on the directory", dir)
		}
		if inside(root, path.Clean(dir)) {
			return "", errors.New("PATH leads into the work directory")
		}
		file := join(path.Clean(dir), name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return "", err
		}
		if inside(root, real) {
			return "", fmt.Errorf("%s lies in the work directory", name)
		}
		return real, nil
	}
	return "", exec.ErrNotFound
}

// Rules are one rule file, read for one place. They are safe for concurrent
// use and never change, but for the counts of what they matched.
type Rules struct {
	ctx      Context
	file     string
	hash     string
	rules    []*rule
	allow    map[string][]allowing // by program
	broad    map[string][]refusing // deny and ask patterns, by program
	programs map[string]program    // those allowed, as they were when this was loaded
}

// rule is one [[rule]], compiled.
type rule struct {
	name       string
	kinds      map[string]bool
	allowPaths []glob
	denyPaths  []glob
	runsCode   bool
	env        map[string]bool
	connection string
	session    string
	cwd        string // absolute; "" for anywhere
	below      bool   // and every directory below it
	until      time.Time

	matched atomic.Int64
	last    atomic.Int64 // Unix nanoseconds
}

type allowing struct {
	rule    *rule
	pattern *pattern
}

type refusing struct {
	rule    *rule
	pattern broad
	verdict Verdict // Deny or Ask
}

type program struct {
	file string
	err  error
}

// File is the name of the file that the rules were read from.
func (r *Rules) File() string { return r.file }

// Hash is the SHA-256 of the file, in hexadecimal: what a decision made by one
// of its rules names beside the rule.
func (r *Rules) Hash() string { return r.hash }

// Count is how often a rule has decided since the rules were loaded, and when
// it last did.
type Count struct {
	Rule    string    `json:"rule"`
	Matched int64     `json:"matched"`
	Last    time.Time `json:"last,omitzero"`
}

// Counts returns the counts of all rules, in the order of the file.
func (r *Rules) Counts() []Count {
	counts := make([]Count, len(r.rules))
	for i, ru := range r.rules {
		counts[i] = Count{Rule: ru.name, Matched: ru.matched.Load()}
		if at := ru.last.Load(); at != 0 {
			counts[i].Last = time.Unix(0, at)
		}
	}
	return counts
}

// count records that rules decided. Explaining does not count.
func (r *Rules) count(names []string) {
	for _, ru := range r.rules {
		for _, name := range names {
			if ru.name == name {
				ru.matched.Add(1)
				ru.last.Store(r.ctx.Now().UnixNano())
			}
		}
	}
}

// Hidden reports whether a list leaves out an entry, a clean path relative to
// the work directory: deny-paths of rules for lists do (APPROVALS.md, Verdict). A
// list through a link leaves out what is denied where it is.
func (r *Rules) Hidden(item Item, entry string) bool {
	if !slices.ContainsFunc(r.rules, func(ru *rule) bool { return ru.kinds[wire.KindList] && len(ru.denyPaths) > 0 }) {
		return false
	}
	spelled := path.Join(r.ctx.Root, entry)
	abs, err := resolve(r.ctx.Root, entry)
	if err != nil {
		abs = spelled
	}
	j := judging{r: r, item: item, now: r.ctx.Now()}
	return j.deniedPath(wire.KindList, abs, spelled) != ""
}

// applies reports whether the rule is for an item's connection and session, and
// not over.
func (ru *rule) applies(i Item, now time.Time) bool {
	return (ru.connection == "" || ru.connection == i.Connection) &&
		(ru.session == "" || ru.session == i.Session) &&
		(ru.until.IsZero() || now.Before(ru.until))
}

// by names a rule for the history.
func (r *Rules) by(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return fmt.Sprintf("rule %s (%s)", strings.Join(quoted, ", "), r.hash[:min(12, len(r.hash))])
}
