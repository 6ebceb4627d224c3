package execute

import (
	"fmt"
	"strconv"
	"strings"

	"countersign/worker/api/wire"
)

// Words tells what a preview found in sentences for an operator, the weightiest
// first. They quote names of files: text for safetext.
func (p Preview) Words() []string {
	var w sentences
	if p.Fails != "" {
		w.add("As things are now it would fail: it %s.", p.Fails)
	}
	switch p.Kind {
	case wire.KindRead:
		if p.Old != nil {
			w.add("Reads %s.", p.Old.describe())
		}
	case wire.KindWrite:
		p.tellWrite(&w)
	case wire.KindList:
		if p.Fails == "" {
			w.add("Lists %s.", count(p.Files, "file", "files"))
		}
		if p.Left > 0 {
			w.add("The rules leave out %s below it.", count(p.Left, "file or directory", "files or directories"))
		}
	}
	if p.Leads != "" {
		w.add("Its path leads through a link to %q.", p.Leads)
	}
	if p.Cut != "" {
		w.add("This is not the whole picture: %s.", p.Cut)
	}
	return w
}

func (p *Preview) tellWrite(w *sentences) {
	switch p.Diff.Shape {
	case ShapeNew:
		w.add("Makes a new file: %s.", p.New.describe())
	case ShapeSame:
		w.add("No change: the file has this content already.")
	case ShapeLines:
		w.add("Changes a file: %s removed, %d added (%s to %s).", count(p.Diff.Removed, "line", "lines"), p.Diff.Added,
			sizeOf(p.Old.Size), sizeOf(p.New.Size))
	case ShapeBinary, ShapeWhole:
		w.add("Replaces a file whole: %s to %s.", p.Old.describe(), p.New.describe())
		w.add("SHA-256 %s to %s.", shortHash(p.Old.SHA256), shortHash(p.New.SHA256))
	}
	if p.Diff.Why != "" {
		w.add("What changes is not told line by line: %s.", p.Diff.Why)
	}
	if p.Old != nil {
		p.tellKept(w)
	}
	if len(p.Dirs) > 0 {
		quoted := make([]string, len(p.Dirs))
		for i, dir := range p.Dirs {
			quoted[i] = strconv.Quote(dir)
		}
		w.add("Makes %s: %s.", count(len(p.Dirs), "directory", "directories"), strings.Join(quoted, ", "))
	}
}

// tellKept tells what of the file that is there stays, and what does not.
func (p *Preview) tellKept(w *sentences) {
	if p.Old.Executable() {
		w.add("The file is executable, and stays so (mode %04o).", p.Old.Mode.Perm())
	}
	if p.Old.Links > 1 {
		w.add("The file has %d names (hard links); the others keep the old content.", p.Old.Links)
	}
	if p.Diff.Shape != ShapeLines && p.Diff.Shape != ShapeWhole || p.Old.Lines == 0 || p.New.Lines == 0 {
		return
	}
	if was, will := p.Old.ends(), p.New.ends(); was != will {
		w.add("Line ends change from %s to %s.", was, will)
	}
	switch {
	case p.New.Open && !p.Old.Open:
		w.add("The last line is no longer ended by a line feed.")
	case p.Old.Open && !p.New.Open:
		w.add("The last line is now ended by a line feed.")
	}
}

// ends names what ends the lines of a text.
func (f *File) ends() string {
	ended := f.Lines
	if f.Open {
		ended--
	}
	switch {
	case f.CRLF == 0:
		return "LF"
	case f.CRLF == ended:
		return "CR LF"
	}
	return "a mixture of LF and CR LF"
}

// describe is a file in a few words.
func (f *File) describe() string {
	switch {
	case f.SHA256 == "":
		return sizeOf(f.Size)
	case f.Binary:
		return sizeOf(f.Size) + ", binary"
	case f.Size == 0:
		return "empty"
	}
	return fmt.Sprintf("%s of text, %s", count(f.Lines, "line", "lines"), sizeOf(f.Size))
}

type sentences []string

func (s *sentences) add(format string, args ...any) {
	*s = append(*s, fmt.Sprintf(format, args...))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func sizeOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func shortHash(sum string) string {
	if sum == "" {
		return "not read"
	}
	return sum[:12]
}
