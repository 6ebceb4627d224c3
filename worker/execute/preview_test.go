//go:build unix

package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/worker/api/wire"
)

func write(path, content string) Task {
	return Task{Kind: wire.KindWrite, Path: path, Content: content}
}

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// told is what a preview says, one sentence after the other.
func told(p Preview) string { return strings.Join(p.Words(), " ") }

// spelled is a diff as diff -U prints it, without its names.
func spelled(d Diff) string {
	var b strings.Builder
	for _, h := range d.Hunks {
		fmt.Fprintf(&b, "@ %d %d\n", h.OldLine, h.NewLine)
		for _, l := range h.Lines {
			fmt.Fprintf(&b, "%c%s", l.Op, l.Text)
			if l.Open {
				b.WriteString("⊣")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestAWriteIsComparedWithWhatIsThere(t *testing.T) {
	r := newRunner(t)
	for _, c := range []struct{ name, old, content, want, words string }{
		{"one line", "a\nb\nc\nd\ne\nf\ng\nh\ni\n", "a\nb\nc\nd\nE\nf\ng\nh\ni\n",
			"@ 2 2\n b\n c\n d\n-e\n+E\n f\n g\n h\n", "Changes a file: 1 line removed, 1 added (18 bytes to 18 bytes)."},
		{"two places, near", "1\n2\n3\n4\n5\n6\n7\n8\n", "0\n1\n2\n3\n4\n5\n6\n7\n",
			"@ 1 1\n+0\n 1\n 2\n 3\n@ 5 6\n 5\n 6\n 7\n-8\n", "1 line removed, 1 added"},
		{"two places that meet", "1\n2\n3\n4\n5\n6\n", "1\nx\n2\n3\n4\n5\ny\n6\n",
			"@ 1 1\n 1\n+x\n 2\n 3\n 4\n 5\n+y\n 6\n", "0 lines removed, 2 added"},
		{"the same", "a\n", "a\n", "", "No change: the file has this content already."},
		{"what it was is empty", "", "a\nb", "@ 1 1\n+a\n+b⊣\n", "0 lines removed, 2 added"},
		{"what it will be is empty", "a\n", "", "@ 1 1\n-a\n", "1 line removed, 0 added"},
		{"an end that goes", "a\nb\n", "a\nb", "@ 1 1\n a\n-b\n+b⊣\n", "The last line is no longer ended by a line feed."},
		{"an end that comes", "a\nb", "a\nb\n", "@ 1 1\n a\n-b⊣\n+b\n", "The last line is now ended by a line feed."},
		{"line ends", "a\nb\n", "a\r\nb\r\n", "@ 1 1\n-a\n-b\n+a\r\n+b\r\n", "Line ends change from LF to CR LF."},
		{"one line end", "a\r\nb\r\n", "a\r\nb\n", "@ 1 1\n a\r\n-b\r\n+b\n", "Line ends change from CR LF to a mixture of LF and CR LF."},
		{"binary now", "a\x00b", "text\n", "", "Replaces a file whole: 3 bytes, binary to 1 line of text, 5 bytes. SHA-256 " + sumOf("a\x00b")[:12] + " to " + sumOf("text\n")[:12] + "."},
		{"binary then", "text\n", "a\x00b", "", "to 3 bytes, binary."},
		{"not UTF-8 now", "caf\xe9\n", "café\n", "", "5 bytes, binary to"},
	} {
		in := filepath.Join(r.Dir(), "f")
		if err := os.WriteFile(in, []byte(c.old), 0o644); err != nil {
			t.Fatal(err)
		}
		p := r.Preview(t.Context(), write("f", c.content))
		if got := spelled(p.Diff); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		if !strings.Contains(told(p), c.words) || p.Fails != "" || p.Cut != "" {
			t.Errorf("%s: %s (%+v)", c.name, told(p), p)
		}
		if p.Old.SHA256 != sumOf(c.old) || p.New.SHA256 != sumOf(c.content) {
			t.Errorf("%s: other hashes", c.name)
		}
		if content(t, in) != c.old {
			t.Fatalf("%s: the preview changed the file", c.name)
		}
	}
}

func TestAPreviewOfAWriteSaysWhatTheWriteThenDoes(t *testing.T) {
	r, outside := tree(t)
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	os.WriteFile(in("tool"), []byte("#!/bin/sh\n"), 0o750)
	os.WriteFile(in("twin"), []byte("x\n"), 0o644)
	os.Link(in("twin"), in("dir/twin"))
	os.Symlink("missing", in("dir/nowhere"))
	for _, c := range []struct{ path, fails, words string }{
		{"new", "", "Makes a new file: 1 line of text, 3 bytes."},
		{"p/q/new", "", `Makes 2 directories: "p", "p/q".`},
		{"dir/file", "", "Changes a file: 1 line removed, 1 added (6 bytes to 3 bytes)."},
		{"link", "", `Its path leads through a link to "dir/file".`},
		{"link-dir/new", "", `Its path leads through a link to "dir/sub/new".`},
		{"dangling", "", `Makes a new file: 1 line of text, 3 bytes. Its path leads through a link to "dangling-target".`},
		{"dangling-deep", "", `Makes 3 directories: "no", "no/such", "no/such/dir".`},
		{"tool", "", "The file is executable, and stays so (mode 0750)."},
		{"twin", "", "The file has 2 names (hard links); the others keep the old content."},
		{"dir", "is a directory", ""},
		{"dir/", "is a directory", ""},
		{"fifo", "is a named pipe, not a regular file", ""},
		{"device", "leads outside", ""},
		{"absolute-out", "leads outside", ""},
		{"absolute-dir/x", "leads outside", ""},
		{"relative-out", "leads outside", ""},
		{"../x", "leads outside", ""},
		{"loop-a", "too many links", ""},
		{"dir/file/x/y", "", "it would fail"},
		{"fifo/x", "", "it would fail"},
		{"dir/nowhere/x", "its directory is a link that leads nowhere", ""},
	} {
		p := r.Preview(t.Context(), write(c.path, "new"))
		if !strings.Contains(p.Fails, c.fails) || !strings.Contains(told(p), c.words) {
			t.Errorf("%s: %s", c.path, told(p))
		}
		var mode os.FileMode
		if info, err := os.Stat(in(c.path)); err == nil {
			mode = info.Mode()
		}
		o := do(t, r, write(c.path, "new"))
		if o.Failed != (p.Fails != "") {
			t.Errorf("%s: the preview says %q, the write %q", c.path, p.Fails, o.Reason)
		}
		if info, err := os.Stat(in(c.path)); err == nil && mode != 0 && info.Mode() != mode {
			t.Errorf("%s: mode %v became %v", c.path, mode, info.Mode())
		}
		if c.path == "twin" && !strings.Contains(o.Reason, "2 names") {
			t.Errorf("the outcome says %q", o.Reason)
		}
	}
	if content(t, filepath.Join(outside, "file")) != "outside" {
		t.Error("a file outside was changed")
	}
	noTemporaryFiles(t, r.Dir())
}

func TestAPreviewMakesNothing(t *testing.T) {
	r, _ := tree(t)
	before := do(t, r, Task{Kind: wire.KindList, Path: "."})
	for _, task := range []Task{write("a/b/c", "x"), write("dir/file", "x"), write("dangling", "x"), {Kind: wire.KindRead, Path: "dir/file"},
		{Kind: wire.KindRead, Path: "missing"}, {Kind: wire.KindList, Path: "missing"}, sh("touch made"), {Kind: "custom_tool"}} {
		r.Preview(t.Context(), task)
	}
	if after := do(t, r, Task{Kind: wire.KindList, Path: "."}); string(after.Result) != string(before.Result) {
		t.Errorf("files: %s", after.Result)
	}
	if content(t, filepath.Join(r.Dir(), "dir/file")) != "inside" {
		t.Error("a file was changed")
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), "a")); err == nil {
		t.Error("a directory was made")
	}
}

func TestAPreviewOfAReadSaysWhatIsRead(t *testing.T) {
	r, _ := tree(t, func(o *Options) { o.ReadLimit = 10 })
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	os.WriteFile(in("large"), make([]byte, 11), 0o644)
	os.WriteFile(in("binary"), []byte{0, 1}, 0o644)
	for path, want := range map[string]string{
		"dir/file":     "Reads 1 line of text, 6 bytes.",
		"link":         `Reads 1 line of text, 6 bytes. Its path leads through a link to "dir/file".`,
		"binary":       "Reads 2 bytes, binary.",
		"large":        "As things are now it would fail: it has 11 bytes, and at most 10 can be read at once. Reads 11 bytes.",
		"missing":      "As things are now it would fail: it does not exist.",
		"dir":          "it is a directory",
		"fifo":         "it is a named pipe, not a regular file",
		"device":       "leads outside",
		"absolute-out": "leads outside",
	} {
		p := r.Preview(t.Context(), Task{Kind: wire.KindRead, Path: path})
		if !strings.Contains(told(p), want) {
			t.Errorf("%s: %s, want %s", path, told(p), want)
		}
		if o := do(t, r, Task{Kind: wire.KindRead, Path: path}); o.Failed != (p.Fails != "") {
			t.Errorf("%s: the preview says %q, the read %q", path, p.Fails, o.Reason)
		}
		if p.Fails == "" && len(p.Old.SHA256) != 64 {
			t.Errorf("%s: no hash", path)
		}
	}
}

func TestAPreviewOfAListCountsAndGivesUpInTime(t *testing.T) {
	r, _ := tree(t, func(o *Options) {
		o.ListLimit = 5
		o.Hidden = func(_ Task, rel string) bool { return rel == "dir/sub" }
	})
	for path, want := range map[string]string{
		"dir":      "Lists 2 files. The rules leave out 1 file or directory below it.",
		"link-dir": `Lists 1 file. Its path leads through a link to "dir/sub".`,
		"missing":  "Lists 0 files.",
		"../x":     "leads outside",
	} {
		if p := r.Preview(t.Context(), Task{Kind: wire.KindList, Path: path}); !strings.Contains(told(p), want) {
			t.Errorf("%s: %s, want %s", path, told(p), want)
		}
	}
	for i := range 7 {
		os.WriteFile(filepath.Join(r.Dir(), fmt.Sprint(i)), nil, 0o644)
	}
	p := r.Preview(t.Context(), Task{Kind: wire.KindList, Path: "."})
	if !strings.Contains(p.Fails, "more files or directories below it than can be listed") || p.Files > 6 {
		t.Errorf("%+v", p)
	}
}

func TestAPreviewOfACommandIsAboutItsDirectory(t *testing.T) {
	r, _ := tree(t)
	for cwd, want := range map[string]string{"": "", "dir": "", "link-dir": `Its path leads through a link to "dir/sub".`,
		"missing": `cannot be started: the directory "missing" does not exist`, "absolute-dir": "leads outside"} {
		task := sh("true")
		task.Cwd = cwd
		if p := r.Preview(t.Context(), task); !strings.Contains(told(p), want) || want == "" && told(p) != "" {
			t.Errorf("%q: %s, want %s", cwd, told(p), want)
		}
	}
	os.RemoveAll(r.Dir())
	if p := r.Preview(t.Context(), sh("true")); !strings.Contains(p.Fails, "the work directory does not exist") {
		t.Errorf("%+v", p)
	}
}

func TestAStoppedPreviewSaysThatItIsNotWhole(t *testing.T) {
	r, _ := tree(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("another item was chosen"))
	for _, task := range []Task{write("dir/file", "x"), {Kind: wire.KindRead, Path: "dir/file"}, {Kind: wire.KindList, Path: "."}} {
		p := r.Preview(ctx, task)
		if !strings.Contains(told(p), "not looked at to the end: another item was chosen") || len(p.Diff.Hunks) > 0 {
			t.Errorf("%s: %s", task.Kind, told(p))
		}
	}
}

func TestWhatIsTooLargeToCompareIsReplacedWhole(t *testing.T) {
	r := newRunner(t)
	in := filepath.Join(r.Dir(), "f")
	for name, c := range map[string]struct{ old, content, words string }{
		"large":      {strings.Repeat("x", maxCompared+1), "y\n", "too large to be compared"},
		"many lines": {strings.Repeat("a\n", maxLines+1), "y\n", fmt.Sprintf("Replaces a file whole: %d lines of text, %d bytes to 1 line of text, 2 bytes.", maxLines+1, 2*maxLines+2)},
	} {
		os.WriteFile(in, []byte(c.old), 0o644)
		p := r.Preview(t.Context(), write("f", c.content))
		if p.Diff.Shape != ShapeWhole || !strings.Contains(told(p), c.words) || p.Old.SHA256 != sumOf(c.old) {
			t.Errorf("%s: %s", name, told(p))
		}
	}
}

// numberedLines is a text of n different lines with some of them changed.
func numberedLines(n int, change func(i int) bool) string {
	var b strings.Builder
	for i := range n {
		if change(i) {
			fmt.Fprintf(&b, "changed %07d\n", i)
		} else {
			fmt.Fprintf(&b, "the line %07d\n", i)
		}
		if i%3 == 0 {
			b.WriteString("}\n")
		}
	}
	return b.String()
}

func TestManyChangesInALargeFileAreToldOneByOne(t *testing.T) {
	r := newRunner(t)
	const lines = 290_000 // 5 MB
	old := numberedLines(lines, func(int) bool { return false })
	after := numberedLines(lines, func(i int) bool { return i%100 == 50 })
	os.WriteFile(filepath.Join(r.Dir(), "f"), []byte(old), 0o644)
	p := r.Preview(t.Context(), write("f", after))
	if p.Diff.Removed != lines/100 || p.Diff.Added != lines/100 || len(p.Diff.Hunks) != lines/100 {
		t.Errorf("%d removed, %d added, in %d hunks", p.Diff.Removed, p.Diff.Added, len(p.Diff.Hunks))
	}
}

// applied does to a what edits say, with the lines of b.
func applied(d Diff, before string) string {
	a := trimEmpty(strings.SplitAfter(before, "\n"))
	var b strings.Builder
	at := 0
	for _, h := range d.Hunks {
		for ; at < h.OldLine-1; at++ {
			b.WriteString(a[at])
		}
		for _, l := range h.Lines {
			text := l.Text
			if !l.Open {
				text += "\n"
			}
			if l.Op != Added {
				if at >= len(a) || a[at] != text {
					return fmt.Sprintf("line %d is not %q", at+1, text)
				}
				at++
			}
			if l.Op != Removed {
				b.WriteString(text)
			}
		}
	}
	return b.String() + strings.Join(a[at:], "")
}

func FuzzADiffTellsTheWholeChange(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nd\n")
	f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n5\n4\n6\n7\n9\n9\n")
	f.Add("", "\n")
	f.Add(strings.Repeat("a\nb\n", 100), strings.Repeat("b\na\nc\n", 90))
	f.Fuzz(func(t *testing.T, before, after string) {
		was, will := &File{}, &File{}
		d := compare(t.Context(), was, will, before, after)
		if d.Shape == ShapeSame {
			return
		}
		if d.Shape != ShapeLines {
			t.Fatalf("%+v", d)
		}
		if got := applied(d, before); got != after {
			t.Fatalf("%q → %q: the hunks make %q\n%s", before, after, got, spelled(d))
		}
		line := 0
		for _, h := range d.Hunks {
			if h.OldLine < line {
				t.Fatalf("hunks overlap:\n%s", spelled(d))
			}
			line = h.OldLine + len(slices.DeleteFunc(slices.Clone(h.Lines), func(l DiffLine) bool { return l.Op == Added }))
		}
	})
}

func BenchmarkDiffOfFiveMegabytes(b *testing.B) {
	const lines = 290_000
	old := numberedLines(lines, func(int) bool { return false })
	var repeated strings.Builder
	for i := range 340_000 {
		fmt.Fprintf(&repeated, "line number %d\n", i*i%17)
	}
	for name, after := range map[string]string{
		"one line":       numberedLines(lines, func(i int) bool { return i == lines/2 }),
		"each 100th":     numberedLines(lines, func(i int) bool { return i%100 == 50 }),
		"each 2nd":       numberedLines(lines, func(i int) bool { return i%2 == 1 }),
		"nothing stays":  strings.ReplaceAll(old, "line", "word"),
		"other repeated": repeated.String(),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(old) + len(after)))
			b.ReportAllocs()
			was, will := &File{}, &File{}
			for b.Loop() {
				if d := compare(b.Context(), was, will, old, after); d.Shape != ShapeLines {
					b.Fatal(d.Shape)
				}
			}
		})
	}
	b.Run("the same 17 lines in another order", func(b *testing.B) {
		before, after := repeated.String(), strings.Repeat("line number 4\nline number 9\nline number 13\n", 110_000)
		b.SetBytes(int64(len(before) + len(after)))
		for b.Loop() {
			compare(b.Context(), &File{}, &File{}, before, after)
		}
	})
}
