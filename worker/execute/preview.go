package execute

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

// Preview is what a task would meet on the disk at one moment: what an operator
// sees before deciding (APPROVALS.md). Fields that its kind does not have are
// empty. Words tells it in sentences.
type Preview struct {
	Kind  string
	Fails string   // why the task would fail now, as in "is a directory"; "" if nothing is known to be in its way
	Cut   string   // why this is not the whole picture; "" if it is
	Leads string   // where the path leads through links, relative to the root; "" if it is what it spells
	Old   *File    // the regular file that is there; nil if there is none
	New   *File    // write: what would be there
	Dirs  []string // write: directories that would be made, the outermost first
	Diff  Diff     // write: from Old to New
	Files int      // list: how many, of at most one more than may be listed
	Left  int      // list: files and directories that the rules leave out
}

// File is what is known of a file, or of what is to be one.
type File struct {
	Size   int64  // bytes
	SHA256 string // of the content, in hexadecimal; "" if it was not read
	Binary bool   // it has NUL characters, or is not UTF-8
	Lines  int    // of text, the last one counted whether it is ended or not; 0 if it was not read
	CRLF   int    // lines that end with CR LF
	Open   bool   // the last line of text is not ended
	// Of a file on the disk:
	Mode    fs.FileMode
	Links   int // names that it has (hard links); 0 if that is not known
	Changed time.Time
}

// Executable reports whether anybody may run the file.
func (f *File) Executable() bool { return f.Mode.Perm()&0o111 != 0 }

// Preview looks at what t would meet on the disk now, with the code that does it.
// It has no effects, never waits for another program, and opens nothing but
// regular files and directories. Memory is bounded: a few times the content of a
// write. When ctx is done it returns soon with what it has, and says so in Cut.
func (r *Runner) Preview(ctx context.Context, t Task) Preview {
	p := Preview{Kind: t.Kind}
	root, err := r.open()
	if err != nil {
		p.Fails = "has no place: " + err.Error()
		return p
	}
	defer root.Close()
	switch t.Kind {
	case wire.KindExec:
		r.previewExec(root, t, &p)
	case wire.KindRead:
		r.previewRead(ctx, root, t, &p)
	case wire.KindWrite:
		previewWrite(ctx, root, t, &p)
	case wire.KindList:
		r.previewList(ctx, root, t, &p)
	}
	if ctx.Err() != nil {
		p.Cut = "it was not looked at to the end: " + cause(ctx)
	}
	return p
}

// previewExec looks at the directory alone: what a command does is not known
// before.
func (r *Runner) previewExec(root *os.Root, t Task, p *Preview) {
	dir, err := r.commandDir(root, t.Cwd)
	if err != nil {
		p.Fails = "cannot be started: " + err.Error()
		return
	}
	if rel, err := filepath.Rel(r.dir, dir); err == nil {
		p.leads(t.Cwd, filepath.ToSlash(rel))
	}
}

func (r *Runner) previewRead(ctx context.Context, root *os.Root, t Task, p *Preview) {
	f, info, why := r.openToRead(root, t.Path)
	p.Fails = why
	if info != nil {
		p.leads(t.Path, whereIs(root, filepath.FromSlash(inRoot(t.Path))))
		p.Old = onDiskFile(info)
	}
	if f == nil {
		return
	}
	defer f.Close()
	if data, err := readAtMost(whileOpen{ctx, f}, r.o.ReadLimit); err == nil {
		p.Old.inspect(string(data))
	} else if ctx.Err() == nil {
		p.Fails = explain(err)
	}
}

func (r *Runner) previewList(ctx context.Context, root *os.Root, t Task, p *Preview) {
	l := r.lister(ctx, root, t)
	l.most = l.limit // it fails beyond: there is no need to count further
	err := l.start(inRoot(t.Path))
	p.Files, p.Left = l.count, l.hidden
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errTooMany):
		p.Fails = "has more files or directories below it than can be listed"
	case err != nil:
		p.Fails = explain(err)
	default:
		p.leads(t.Path, whereIs(root, filepath.FromSlash(inRoot(t.Path))))
	}
}

// previewWrite compares what is there with what would be.
func previewWrite(ctx context.Context, root *os.Root, t Task, p *Preview) {
	p.New = &File{Size: int64(len(t.Content))}
	p.New.inspect(t.Content)
	d := findDestination(root, t.Path)
	if p.Fails = d.why; d.why == "" {
		p.place(root, d, t.Path)
	}
	if d.old == nil || !d.old.Mode().IsRegular() {
		if p.Fails == "" {
			p.Diff.Shape = ShapeNew
		}
		return
	}
	p.Old = onDiskFile(d.old)
	old, why := p.readOld(ctx, root, d.name)
	if why != "" {
		p.Diff = Diff{Shape: ShapeWhole, Why: why}
		return
	}
	p.Diff = compare(ctx, p.Old, p.New, old, t.Content)
}

// readOld reads the file that a write replaces, or says why it did not.
func (p *Preview) readOld(ctx context.Context, root *os.Root, name string) (content, why string) {
	f, info, why := openRegular(root, name)
	if why != "" {
		return "", "what is there now " + why // it can be replaced all the same
	}
	defer f.Close()
	p.Old = onDiskFile(info)
	if info.Size() > maxCompared {
		l := looker{ctx: ctx, left: hashedTogether}
		var print Fingerprint
		if l.hash(&print, f, info) == nil && !print.Partly {
			p.Old.SHA256 = print.SHA256
		}
		return "", tooLarge
	}
	data, err := readAtMost(whileOpen{ctx, f}, maxCompared)
	if err != nil {
		return "", "what is there now " + explain(err)
	}
	content = string(data)
	p.Old.Size = int64(len(content))
	p.Old.inspect(content)
	return content, ""
}

// place finds where a write makes its file: the directories that have to be made,
// and what is in their way.
func (p *Preview) place(root *os.Root, d destination, asked string) {
	separator := string(filepath.Separator)
	dir := dirOf(d.name)
	for ; dir != "."; dir = dirOf(dir) {
		dir = strings.TrimRight(dir, separator)
		info, err := root.Stat(dir)
		if err == nil && info.IsDir() {
			break
		}
		if p.Fails = noDirectory(root, dir, info, err); p.Fails != "" {
			return
		}
		p.Dirs = append(p.Dirs, strings.TrimPrefix(filepath.ToSlash(dir), "./"))
	}
	slices.Reverse(p.Dirs)
	if err := mayMakeIn(root, dir); err != nil {
		p.Fails = "cannot be written: its directory " + explain(err)
	}
	below := d.name
	if dir != "." {
		below = strings.TrimLeft(strings.TrimPrefix(d.name, dir), separator)
	}
	if in := whereIs(root, dir); in != "" {
		p.leads(asked, path.Join(in, filepath.ToSlash(below)))
	}
}

// noDirectory says why a directory that is not there cannot be made, else "".
func noDirectory(root *os.Root, dir string, info fs.FileInfo, err error) string {
	switch {
	case err == nil:
		what := notRegular(info.Mode())
		if what == "" {
			what = "a file"
		}
		return "cannot be made: what should be its directory is " + what
	case !errors.Is(err, fs.ErrNotExist):
		return "cannot be made: its directory " + explain(err)
	}
	if _, err := root.Lstat(dir); err == nil {
		return "cannot be made: its directory is a link that leads nowhere"
	}
	return ""
}

// leads notes where a path leads if that is not what it spells.
func (p *Preview) leads(asked, to string) {
	if to != "" && to != path.Clean(inRoot(asked)) {
		p.Leads = to
	}
}

// whereIs returns where the name of something that is there leads, relative to
// the root; "" if that cannot be told. It is for people: os.Root is the judge.
func whereIs(root *os.Root, name string) string {
	real, err := filepath.EvalSymlinks(root.Name() + string(filepath.Separator) + name)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root.Name(), real)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

func onDiskFile(info fs.FileInfo) *File {
	return &File{Size: info.Size(), Mode: info.Mode(), Links: linkCount(info), Changed: info.ModTime()}
}
