package execute

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// newTranscript returns a writer with a limit, and a reader of the same file.
// The file is there, as if something had been printed, so that both see it grow.
func newTranscript(t testing.TB, limit int64) (*transcriptWriter, *Transcript, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dir", "transcript")
	w := newTranscriptWriter(path, limit)
	var err error
	if w.file, err = createPrivate(path); err != nil {
		t.Fatal(err)
	}
	r, err := OpenTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return w, r, path
}

func closeWriter(t testing.TB, w *transcriptWriter) {
	t.Helper()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}

// allLines reads all lines as "o:text", "e:text" or "c:text", asking in pieces.
func allLines(t testing.TB, r *Transcript, piece int) (lines []string) {
	t.Helper()
	n, err := r.Count()
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; ; from += piece {
		got, err := r.Lines(from, piece)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range got {
			kind := "o:"
			if l.Stderr {
				kind = "e:"
			} else if l.Note {
				kind = "c:"
			}
			lines = append(lines, kind+string(l.Text))
		}
		if len(got) < piece {
			break
		}
	}
	if len(lines) != n {
		t.Fatalf("Count() = %d, and there are %d lines", n, len(lines))
	}
	return lines
}

func TestATranscriptKeepsBytesOrderAndStreams(t *testing.T) {
	w, r, path := newTranscript(t, 1<<20)
	w.write(stdout, []byte("one\ntw"))
	w.write(stderr, []byte("warn\nhalf"))
	w.write(stdout, []byte("o\n\n\xff\x00"))
	closeWriter(t, w)
	if got, _ := os.ReadFile(path); string(got) != "one\ntwwarn\nhalfo\n\n\xff\x00" {
		t.Errorf("on disk: %q", got)
	}
	want := []string{"o:one", "o:tw", "e:warn", "e:half", "o:o", "o:", "o:\xff\x00"}
	if got := allLines(t, r, 2); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	var copied bytes.Buffer
	if err := r.CopyTo(&copied); err != nil || copied.String() != "one\ntwwarn\nhalfo\n\n\xff\x00" {
		t.Errorf("copied %q, %v", copied.String(), err)
	}
}

func TestATranscriptIsReadWhileItGrows(t *testing.T) {
	w, r, _ := newTranscript(t, 1<<20)
	if got := allLines(t, r, 10); got != nil {
		t.Errorf("lines %q before anything was printed", got)
	}
	for _, step := range []struct {
		s    stream
		text string
		want string
	}{
		{stdout, "a", "[o:a]"},
		{stdout, "b", "[o:ab]"},
		{stderr, "c\n", "[o:ab e:c]"},
		{stderr, "d", "[o:ab e:c e:d]"},
		{stdout, "\n", "[o:ab e:c e:d o:]"},
		{stdout, "x\ny\n", "[o:ab e:c e:d o: o:x o:y]"},
	} {
		w.write(step.s, []byte(step.text))
		if got := fmt.Sprint(allLines(t, r, 10)); got != step.want {
			t.Errorf("after %q: %s, want %s", step.text, got, step.want)
		}
	}
	closeWriter(t, w)
}

func TestATranscriptOfBoundedSizeKeepsHeadAndTailAndSaysSo(t *testing.T) {
	w, r, path := newTranscript(t, 1000)
	for i := range 500 {
		w.write(stream(i%2), fmt.Appendf(nil, "line %d\n", i))
	}
	closeWriter(t, w)
	data, _ := os.ReadFile(path)
	if len(data) > 1000 || len(data) < 900 {
		t.Errorf("%d bytes on disk", len(data))
	}
	lines := allLines(t, r, 7)
	if lines[0] != "o:line 0" || lines[1] != "e:line 1" || lines[len(lines)-1] != "e:line 499" || lines[len(lines)-2] != "o:line 498" {
		t.Errorf("lines %q", lines)
	}
	notes := 0
	for _, l := range lines {
		if text, ok := strings.CutPrefix(l, "c:"); ok {
			notes++
			var cut, total int
			fmt.Sscanf(text, "… %d bytes not kept …", &cut)
			for i := range 500 {
				total += len(fmt.Sprintf("line %d\n", i))
			}
			kept := len(data) - len(text) - 1
			if kept+cut != total && kept+cut != total+1 { // a line feed of ours before the note
				t.Errorf("kept %d + cut %d is not %d", kept, cut, total)
			}
		}
	}
	if notes != 1 {
		t.Errorf("%d notes in %q", notes, lines)
	}
}

func TestATranscriptThatFitsHasNoNote(t *testing.T) {
	w, r, path := newTranscript(t, 1000)
	text := strings.Repeat("0123456\n", 117) // 936 bytes: head and tail without a gap
	w.write(stdout, []byte(text))
	closeWriter(t, w)
	if data, _ := os.ReadFile(path); string(data) != text {
		t.Errorf("on disk: %q", data)
	}
	if n, err := r.Count(); n != 117 || err != nil {
		t.Errorf("Count() = %d, %v", n, err)
	}
}

func TestALongLineIsClippedAtACharacter(t *testing.T) {
	w, r, _ := newTranscript(t, 8<<20)
	long := strings.Repeat("€", 1<<20)
	w.write(stdout, []byte("before\n"+long+"\nafter\n"+long))
	closeWriter(t, w)
	lines, err := r.Lines(0, 10)
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, i := range []int{1, 3} {
		l := lines[i]
		if len(l.Text) > 4096 || len(l.Text) < 4090 || !utf8.Valid(l.Text) || int64(len(l.Text))+l.Clipped != int64(len(long)) {
			t.Errorf("line %d: %d bytes of text, %d clipped", i, len(l.Text), l.Clipped)
		}
	}
	if after, err := r.Lines(2, 1); err != nil || string(after[0].Text) != "after" || after[0].Clipped != 0 {
		t.Errorf("line 2: %v, %v", after, err)
	}
}

func TestTheIndexFindsEveryLineAndStaysSmall(t *testing.T) {
	w, r, _ := newTranscript(t, 64<<20)
	random := rand.New(rand.NewPCG(1, 2))
	type line struct {
		s    stream
		text string
	}
	var want []line
	for range 20_000 {
		l := line{stream(random.IntN(2)), ""}
		switch random.IntN(100) {
		case 0:
			l.text = strings.Repeat("z", random.IntN(3*blockSize))
		default:
			l.text = strings.Repeat("a", random.IntN(60))
		}
		want = append(want, l)
		w.write(l.s, []byte(l.text+"\n"))
		if random.IntN(500) == 0 {
			if _, err := r.Count(); err != nil { // in the middle, as a window does
				t.Fatal(err)
			}
		}
	}
	closeWriter(t, w)
	if n, err := r.Count(); n != len(want) || err != nil {
		t.Fatalf("Count() = %d, %v, want %d", n, err, len(want))
	}
	for range 3000 {
		i := random.IntN(len(want))
		got, err := r.Lines(i, 3)
		if err != nil || len(got) != min(3, len(want)-i) {
			t.Fatalf("Lines(%d, 3): %d lines, %v", i, len(got), err)
		}
		for j, l := range got {
			w := want[i+j]
			if int64(len(l.Text))+l.Clipped != int64(len(w.text)) || l.Stderr != (w.s == stderr) || !strings.HasPrefix(w.text, string(l.Text)) {
				t.Fatalf("line %d: %d+%d bytes, stderr %v, want %d, %v", i+j, len(l.Text), l.Clipped, l.Stderr, len(w.text), w.s == stderr)
			}
		}
	}
	if len(r.blocks) > int(r.end/blockSize)+1 {
		t.Errorf("%d index entries for %d bytes", len(r.blocks), r.end)
	}
}

func TestLinesOutsideTheTranscriptAreNone(t *testing.T) {
	w, r, _ := newTranscript(t, 1000)
	w.write(stdout, []byte("a\n"))
	closeWriter(t, w)
	for _, from := range []int{-1, 1, 99} {
		if got, err := r.Lines(from, 1); len(got) != 0 || err != nil {
			t.Errorf("Lines(%d) = %v, %v", from, got, err)
		}
	}
}

func TestStreamChangesWithoutEndAreBoundedOnDisk(t *testing.T) {
	w, r, path := newTranscript(t, 1<<20)
	for i := range maxMarks + 5000 {
		w.write(stream(i%2), []byte("x"))
	}
	closeWriter(t, w)
	info, err := os.Stat(path + marksEnding)
	if err != nil || info.Size() > maxMarks*10 {
		t.Errorf("marks: %v bytes, %v", info.Size(), err)
	}
	if n, err := r.Count(); err != nil || n != maxMarks+1 {
		t.Errorf("Count() = %d, %v", n, err)
	}
}

func TestOnlyTheUserCanReadATranscript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "transcript")
	w := newTranscriptWriter(path, 1000)
	w.write(stderr, []byte("a"))
	closeWriter(t, w)
	for name, want := range map[string]os.FileMode{path: 0o600, path + marksEnding: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v, want %v", filepath.Base(name), info.Mode(), err, want)
		}
	}
}

func TestATranscriptWithBrokenOrMissingMarksIsStillRead(t *testing.T) {
	w, r, path := newTranscript(t, 1000)
	w.write(stderr, []byte("a\nb\n"))
	closeWriter(t, w)
	if err := os.WriteFile(path+marksEnding, []byte("0 e\n2 o\nnonsense\n3 e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(allLines(t, r, 5)); got != "[e:a o:b]" {
		t.Errorf("lines %s", got)
	}
	os.Remove(path + marksEnding)
	plain, err := OpenTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if got := fmt.Sprint(allLines(t, plain, 5)); got != "[o:a o:b]" {
		t.Errorf("lines %s", got)
	}
}

func TestATranscriptsFilesAreMadeWhenThereIsSomethingForThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript")
	w := newTranscriptWriter(path, 1000)
	is := func(when string, file, marks bool) {
		t.Helper()
		for name, want := range map[string]bool{path: file, path + marksEnding: marks} {
			if _, err := os.Stat(name); (err == nil) != want {
				t.Errorf("%s: %s: %v", when, filepath.Base(name), err)
			}
		}
	}
	is("at first", false, false)
	w.write(stdout, nil)
	is("before anything is printed", false, false)
	w.write(stdout, []byte("a\n"))
	is("with standard output alone", true, false)
	r, err := OpenTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := fmt.Sprint(allLines(t, r, 5)); got != "[o:a]" {
		t.Errorf("lines %s", got)
	}
	w.write(stderr, []byte("b\n"))
	is("with errors", true, true)
	closeWriter(t, w)
	if got := fmt.Sprint(allLines(t, r, 5)); got != "[o:a e:b]" {
		t.Errorf("lines %s", got)
	}
	silent := newTranscriptWriter(path+"2", 1000)
	closeWriter(t, silent)
	if _, err := os.Stat(path + "2"); !os.IsNotExist(err) {
		t.Errorf("nothing was printed: %v", err)
	}
}

func TestAMissingTranscriptIsAnError(t *testing.T) {
	if _, err := OpenTranscript(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("OpenTranscript = %v", err)
	}
}

func FuzzATranscriptsLinesAreItsBytes(f *testing.F) {
	f.Add([]byte("a\nb"), []byte("c\n"), []byte("\n\nd"), int64(200))
	f.Fuzz(func(t *testing.T, a, b, c []byte, limit int64) {
		w, r, path := newTranscript(t, max(100, limit%100_000))
		for i, p := range [][]byte{a, b, c} {
			w.write(stream(i%2), p)
			if _, err := r.Count(); err != nil {
				t.Fatal(err)
			}
		}
		closeWriter(t, w)
		fresh, err := OpenTranscript(path)
		if err != nil {
			t.Fatal(err)
		}
		defer fresh.Close()
		grown, whole := allLines(t, r, 3), allLines(t, fresh, 100)
		if fmt.Sprint(grown) != fmt.Sprint(whole) {
			t.Fatalf("read while growing %q, afterwards %q", grown, whole)
		}
	})
}

// What is written here often ends, or changes its stream, where the index has an
// entry, and a byte beside that.
func TestATranscriptsLinesAreItsBytesAroundTheIndexsEntries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		w := newTranscriptWriter(filepath.Join(dir, "transcript"), rapid.SampledFrom([]int64{1 << 20, 3 * blockSize, 1000}).Draw(rt, "limit"))
		var r *Transcript
		written := 0
		for range rapid.IntRange(1, 8).Draw(rt, "writes") {
			n := rapid.SampledFrom([]int{1, 2, 100, blockSize - 1, blockSize, blockSize + 1,
				blockSize - written%blockSize, max(1, blockSize-written%blockSize-1), blockSize - written%blockSize + 1}).Draw(rt, "size")
			p := bytes.Repeat([]byte{'x'}, n)
			for _, at := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 4).Draw(rt, "line feeds") {
				p[at] = '\n'
			}
			if rapid.Bool().Draw(rt, "ends a line") {
				p[n-1] = '\n'
			}
			w.write(stream(rapid.IntRange(0, 1).Draw(rt, "stream")), p)
			written += n
			if r == nil {
				var err error
				if r, err = OpenTranscript(w.path); err != nil {
					rt.Fatal(err)
				}
				defer r.Close()
			}
			if rapid.Bool().Draw(rt, "looked at") {
				allLines(t, r, 3)
			}
		}
		closeWriter(t, w)
		fresh, err := OpenTranscript(w.path)
		if err != nil {
			rt.Fatal(err)
		}
		defer fresh.Close()
		if grown, whole := allLines(t, r, 3), allLines(t, fresh, 100); !slices.Equal(grown, whole) {
			rt.Fatalf("%d lines while growing, %d afterwards", len(grown), len(whole))
		}
	})
}
