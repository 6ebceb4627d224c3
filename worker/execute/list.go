package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// countFactor bounds how far a list that is too long is counted, in limits.
const countFactor = 20

// list returns every file below a path, relative to the root and sorted. Links
// to files are files; links to directories are not followed.
func (r *Runner) list(ctx context.Context, root *os.Root, t Task) Outcome {
	l := r.lister(ctx, root, t)
	err := l.start(inRoot(t.Path))
	switch {
	case ctx.Err() != nil:
		return fileFailed("The list of %q was stopped: %s.", t.Path, cause(ctx))
	case errors.Is(err, errTooMany):
		return fileFailed("Cannot list %q: there are more than %d files or directories, and at most %d can be listed. List a directory below it.", t.Path, l.most, l.limit)
	case err != nil:
		return fileFailed("Cannot list %q: it %s.", t.Path, explain(err))
	case l.count > l.limit:
		return fileFailed("Cannot list %q: there are %d files, and at most %d can be listed. List a directory below it.", t.Path, l.count, l.limit)
	}
	slices.Sort(l.files)
	o := fileDone(encode(l.files))
	o.Head = validPrefix([]byte(strings.Join(l.files[:min(len(l.files), headLimit/2)], "\n")), headLimit)
	if l.unreadable > 0 {
		o.note(fmt.Sprintf("Directories below %q that could not be read are not in the list: %d.", t.Path, l.unreadable))
	}
	if l.hidden > 0 {
		o.note(fmt.Sprintf("Files and directories below %q that the rules leave out of a list: %d.", t.Path, l.hidden))
	}
	return o
}

var errTooMany = errors.New("too many files")

// lister walks directories, a batch of entries at a time.
type lister struct {
	ctx        context.Context
	root       *os.Root
	hides      func(rel string) bool // what is left out
	limit      int
	most       int      // what is counted, at most
	files      []string // at most limit
	count      int      // found, also those above the limit
	dirs       []string // still to be read
	unreadable int      // directories
	hidden     int      // files and directories
}

func (r *Runner) lister(ctx context.Context, root *os.Root, t Task) lister {
	l := lister{ctx: ctx, root: root, limit: r.o.ListLimit, most: r.o.ListLimit * countFactor, files: []string{}}
	l.hides = func(string) bool { return false }
	if r.o.Hidden != nil {
		l.hides = func(rel string) bool { return r.o.Hidden(t, rel) }
	}
	return l
}

func (l *lister) start(name string) error {
	info, err := l.root.Stat(filepath.FromSlash(name))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if name, err = l.plain(name); err != nil {
		return err
	}
	if !info.IsDir() {
		return l.add(name, info.Mode())
	}
	l.dirs = []string{name}
	for top := true; len(l.dirs) > 0; top = false {
		dir := l.dirs[len(l.dirs)-1]
		l.dirs = l.dirs[:len(l.dirs)-1]
		if err := l.readDir(dir, top); err != nil {
			return err
		}
	}
	return nil
}

// plain returns name in the shape that paths of a list have. A ".." may come
// after a link, so only the file system knows what it means.
func (l *lister) plain(name string) (string, error) {
	if !slices.Contains(strings.Split(name, "/"), "..") {
		return path.Clean(name), nil
	}
	real, err := filepath.EvalSymlinks(l.root.Name() + "/" + name)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(l.root.Name(), real)
	return filepath.ToSlash(rel), err
}

// missing reports whether an error means that a path names nothing.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (l *lister) readDir(dir string, top bool) error {
	f, err := l.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return l.skip(err, top)
	}
	defer f.Close()
	for l.ctx.Err() == nil {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if err := l.entry(path.Join(dir, e.Name()), e.Type()); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return l.skip(err, top)
		}
	}
	return l.ctx.Err()
}

// skip passes over a directory that cannot be read, unless it is what was asked
// for or is gone.
func (l *lister) skip(err error, top bool) error {
	if missing(err) {
		return nil
	}
	if top {
		return err
	}
	l.unreadable++
	return nil
}

func (l *lister) entry(name string, mode fs.FileMode) error {
	if mode.IsDir() {
		if len(l.dirs) > l.most {
			return errTooMany
		}
		if l.hides(name) {
			l.hidden++
			return nil
		}
		l.dirs = append(l.dirs, name)
		return nil
	}
	if mode&fs.ModeSymlink != 0 {
		info, err := l.root.Stat(filepath.FromSlash(name))
		if err != nil {
			return nil // it leads nowhere, or outside
		}
		mode = info.Mode()
	}
	return l.add(name, mode)
}

func (l *lister) add(name string, mode fs.FileMode) error {
	if !mode.IsRegular() {
		return nil
	}
	if l.hides(name) {
		l.hidden++
		return nil
	}
	if l.count++; l.count > l.most {
		return errTooMany
	}
	if l.count <= l.limit {
		l.files = append(l.files, name)
	}
	return nil
}
