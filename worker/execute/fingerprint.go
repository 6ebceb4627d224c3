package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"countersign/worker/api/wire"
)

// Fingerprint is the state of one file that a task names, for telling whether it
// is the same later.
type Fingerprint struct {
	Path   string `json:"path"`             // below the work directory where it is, else absolute
	State  string `json:"state"`            // regular, missing, or in words what else it is
	Size   int64  `json:"size,omitempty"`   // bytes
	SHA256 string `json:"sha256,omitempty"` // of regular files: of the content, or see hashedUpTo
}

// The states of a fingerprint that others tell apart.
const (
	StateRegular = "regular"
	StateMissing = "missing"
)

// String is the fingerprint in one line, different for different ones.
func (f Fingerprint) String() string {
	return fmt.Sprintf("%q %s %d %s", f.Path, f.State, f.Size, f.SHA256)
}

// hashedUpTo bounds what is read of a file. Of the rest of a larger one the size
// and the time of the last change stand for the content.
const hashedUpTo = 64 << 20

// Fingerprint takes the fingerprints of the files that a task names: named, as
// canonical paths, for a command; the file that a write would replace. Nothing but
// regular files is opened. It ends early, with states that say so, when ctx does.
func (r *Runner) Fingerprint(ctx context.Context, t Task, named []string) []Fingerprint {
	root, err := r.open()
	if err != nil {
		return nil // the task cannot run then either
	}
	defer root.Close()
	if t.Kind == wire.KindWrite {
		name, err := followLinks(root, filepath.FromSlash(inRoot(t.Path)))
		if err != nil {
			return nil
		}
		return []Fingerprint{fingerprint(ctx, filepath.ToSlash(filepath.Clean(name)), name, root.Stat, root.OpenFile)}
	}
	prints := make([]Fingerprint, 0, len(named))
	for _, path := range named {
		rel, err := filepath.Rel(r.dir, path)
		if err == nil && filepath.IsLocal(rel) {
			prints = append(prints, fingerprint(ctx, filepath.ToSlash(rel), rel, root.Stat, root.OpenFile))
		} else {
			prints = append(prints, fingerprint(ctx, path, path, os.Stat, os.OpenFile))
		}
	}
	return prints
}

func fingerprint(ctx context.Context, shown, name string, stat func(string) (fs.FileInfo, error),
	open func(string, int, fs.FileMode) (*os.File, error)) Fingerprint {
	p := Fingerprint{Path: shown}
	info, err := stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.State = StateMissing
		return p
	case err == nil && !info.Mode().IsRegular():
		p.State = notRegular(info.Mode())
		return p
	}
	var f *os.File
	if err == nil {
		f, err = open(name, os.O_RDONLY|openNonblock, 0)
	}
	if err == nil {
		defer f.Close()
		info, err = f.Stat()
	}
	if err == nil && !info.Mode().IsRegular() { // swapped since
		p.State = notRegular(info.Mode())
		return p
	}
	if err == nil {
		p.State, p.Size = StateRegular, info.Size()
		p.SHA256, err = contentHash(ctx, f, info)
	}
	if err != nil {
		p.State = explain(err)
	}
	return p
}

// contentHash is the hash of an open file.
func contentHash(ctx context.Context, f io.Reader, info fs.FileInfo) (string, error) {
	sum := sha256.New()
	if info.Size() > hashedUpTo {
		fmt.Fprintf(sum, "%d %d ", info.Size(), info.ModTime().UnixNano())
	}
	_, err := io.Copy(sum, io.LimitReader(whileOpen{ctx, f}, hashedUpTo))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// whileOpen reads until its context ends.
type whileOpen struct {
	ctx  context.Context
	from io.Reader
}

func (r whileOpen) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// Changed names the files whose fingerprints differ: changed, gone, or new.
func Changed(was, now []Fingerprint) []string {
	before := make(map[string]string, len(was))
	for _, f := range was {
		before[f.Path] = f.String()
	}
	var names []string
	for _, f := range now {
		if before[f.Path] != f.String() {
			names = append(names, f.Path)
		}
		delete(before, f.Path)
	}
	for _, f := range was {
		if _, gone := before[f.Path]; gone {
			names = append(names, f.Path)
		}
	}
	return names
}
