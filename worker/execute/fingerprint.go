package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
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
	SHA256 string `json:"sha256,omitempty"` // of regular files: of the content, in hexadecimal
	// Partly says that the content is too large to be hashed: SHA256 is of its
	// beginning, with its size, the time of its last change and its place on the
	// disk. A change of the rest that keeps these is not noticed.
	Partly bool `json:"partly,omitempty"`
}

// The states of a fingerprint that others tell apart.
const (
	StateRegular = "regular"
	StateMissing = "missing"
	StateUnknown = "not looked at" // stopped before that; never the same as anything
)

// String is the fingerprint in one line, different for different ones.
func (f Fingerprint) String() string {
	return fmt.Sprintf("%q %s %d %s", f.Path, f.State, f.Size, f.SHA256)
}

// hashedUpTo bounds what is read of one file, in bytes, and hashedTogether what
// is read for one task.
const (
	hashedUpTo     = 64 << 20
	hashedTogether = 256 << 20
)

// Fingerprint takes the fingerprints of the files that a task names: named, as
// canonical paths, for a command; the file that a write would replace. Nothing but
// regular files is opened, and no other program waited for. At most 64 MB of one
// file and 256 MB together are read; what was not is said (Partly). It ends early,
// with states that say so, when ctx does.
func (r *Runner) Fingerprint(ctx context.Context, t Task, named []string) []Fingerprint {
	root, err := r.open()
	if err != nil {
		return nil // the task cannot run then either
	}
	defer root.Close()
	l := looker{ctx: ctx, left: hashedTogether}
	if t.Kind == wire.KindWrite {
		name, err := followLinks(root, filepath.FromSlash(inRoot(t.Path)))
		if err != nil {
			return nil
		}
		return []Fingerprint{l.fingerprint(filepath.ToSlash(filepath.Clean(name)), name, root.Stat, root.OpenFile)}
	}
	prints := make([]Fingerprint, 0, len(named))
	for _, path := range named {
		rel, err := filepath.Rel(r.dir, path)
		if err == nil && filepath.IsLocal(rel) {
			prints = append(prints, l.fingerprint(filepath.ToSlash(rel), rel, root.Stat, root.OpenFile))
		} else {
			prints = append(prints, l.fingerprint(path, path, os.Stat, os.OpenFile))
		}
	}
	return prints
}

// looker takes fingerprints for one task.
type looker struct {
	ctx  context.Context
	left int64 // bytes that may still be read
}

func (l *looker) fingerprint(shown, name string, stat func(string) (fs.FileInfo, error),
	open func(string, int, fs.FileMode) (*os.File, error)) Fingerprint {
	p := Fingerprint{Path: shown, State: StateUnknown}
	if l.ctx.Err() != nil {
		return p
	}
	info, err := stat(name)
	switch {
	case missing(err):
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
	if info != nil {
		p.Size = info.Size()
	}
	if err == nil {
		p.State = StateRegular
		err = l.hash(&p, f, info)
	}
	switch {
	case l.ctx.Err() != nil:
		p.State, p.SHA256 = StateUnknown, ""
	case err != nil:
		p.State, p.SHA256 = explain(err), ""
		if info != nil { // others may be able to read it
			p.SHA256, p.Partly = hex.EncodeToString(aside(info).Sum(nil)), true
		}
	}
	return p
}

// hash reads an open file for its fingerprint.
func (l *looker) hash(p *Fingerprint, f io.Reader, info fs.FileInfo) error {
	most := min(l.left, hashedUpTo)
	sum := sha256.New()
	if p.Partly = info.Size() > most; p.Partly {
		sum = aside(info)
	}
	n, err := io.Copy(sum, io.LimitReader(whileOpen{l.ctx, f}, most))
	l.left -= n
	p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return err
}

// aside is a hash that has begun with what is known of a file beside its content.
func aside(info fs.FileInfo) hash.Hash {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %s ", info.Size(), info.ModTime().UnixNano(), onDisk(info))
	return sum
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

// Changed names the files whose fingerprints differ: changed, gone, new, or not
// looked at.
func Changed(was, now []Fingerprint) []string {
	before := make(map[string]string, len(was))
	for _, f := range was {
		before[f.Path] = f.String()
	}
	var names []string
	for _, f := range now {
		if before[f.Path] != f.String() || f.State == StateUnknown {
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
