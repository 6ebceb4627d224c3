package execute

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// A transcript is two files. The one at its path has what the command printed,
// byte for byte and in the order in which it arrived. The one beside it, with
// the ending .marks, says what is what: one line "offset kind" for each place
// where the kind changes; it begins as standard output. Each is made when there
// is something to write to it: many commands print nothing, and most no errors.
const marksEnding = ".marks"

// kind says whose bytes follow a mark.
type kind byte

const (
	kindStdout kind = 'o'
	kindStderr kind = 'e'
	kindMixed  kind = 'x' // of both: there were too many changes to note
	kindNote   kind = 'c' // ours: a line that tells how much was not kept here
)

func (s stream) kind() kind {
	if s == stderr {
		return kindStderr
	}
	return kindStdout
}

const (
	// maxMarks bounds the marks file and a reader's memory.
	maxMarks = 100_000

	// maxTail bounds the part after a cut, which waits in memory.
	maxTail = 256 << 10

	noteRoom = 64 // bytes: what a note may need
)

// transcriptWriter writes a transcript of bounded size: its beginning as it
// comes and, when it is closed, a note of what was not kept and its end.
type transcriptWriter struct {
	path        string
	file, marks *os.File // nil until there is something to write
	headRoom    int64    // bytes that may still be written as they come
	tail        tail
	size        int64 // bytes in file
	last        kind  // of the last byte
	newline     bool  // the last byte is a line feed
	count       int   // marks, with the first, which goes without saying
	lost        int64 // bytes that could not be written
	err         error // why: nothing is written after the first
}

func newTranscriptWriter(path string, limit int64) *transcriptWriter {
	tailSize := min(limit/4, maxTail)
	return &transcriptWriter{path: path, last: kindStdout, count: 1,
		headRoom: max(0, limit-tailSize-noteRoom), tail: tail{ring: ring{size: int(tailSize)}}}
}

func (w *transcriptWriter) write(s stream, p []byte) {
	n := min(int64(len(p)), w.headRoom)
	w.headRoom -= n
	w.put(s.kind(), p[:n])
	w.tail.write(s.kind(), p[n:])
}

// close writes the end and reports why the transcript is incomplete, if it is
// so for another reason than its limit.
func (w *transcriptWriter) close() error {
	kept := w.tail.ring.bytes()
	if cut := w.tail.total - int64(len(kept)); cut > 0 {
		w.note(cut)
	}
	for _, part := range w.tail.parts {
		w.put(part.kind, kept[:part.n])
		kept = kept[part.n:]
	}
	err := w.err
	if w.lost > 0 {
		w.err = nil // there may be room again
		w.note(w.lost)
	}
	for _, f := range []*os.File{w.marks, w.file} {
		if f == nil {
			continue
		}
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	return err
}

func (w *transcriptWriter) note(missing int64) {
	if w.size > 0 && !w.newline {
		w.put(w.last, []byte{'\n'})
	}
	w.put(kindNote, fmt.Appendf(nil, "… %d bytes not kept …\n", missing))
}

// put appends p. Marks go to disk before what they are about, so that a reader
// never takes one kind for another.
func (w *transcriptWriter) put(k kind, p []byte) {
	if len(p) == 0 {
		return
	}
	if w.err == nil {
		w.mark(k)
	}
	if w.err == nil && w.file == nil {
		w.file, w.err = createPrivate(w.path)
	}
	if w.err != nil {
		w.lost += int64(len(p))
		return
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	if n > 0 {
		w.newline = p[n-1] == '\n'
	}
	if err != nil {
		w.err, w.lost = err, w.lost+int64(len(p)-n)
	}
}

func (w *transcriptWriter) mark(k kind) {
	if k != kindNote && w.count >= maxMarks {
		k = kindMixed
	}
	if k == w.last {
		return
	}
	if w.marks == nil {
		if w.marks, w.err = createPrivate(w.path + marksEnding); w.err != nil {
			return
		}
	}
	line := strconv.AppendInt(nil, w.size, 10)
	line = append(line, ' ', byte(k), '\n')
	if _, err := w.marks.Write(line); err != nil {
		w.err = err
		return
	}
	w.last = k
	w.count++
}

// tail keeps the last bytes of what comes after the head, and their kinds.
type tail struct {
	ring  ring
	total int64 // bytes written
	parts []part
	kept  int // sum of the parts' lengths: what ring holds
}

type part struct {
	kind kind
	n    int
}

func (t *tail) write(k kind, p []byte) {
	if len(p) == 0 {
		return
	}
	t.total += int64(len(p))
	t.ring.write(p)
	if last := len(t.parts) - 1; last >= 0 && t.parts[last].kind == k {
		t.parts[last].n += len(p)
	} else {
		t.parts = append(t.parts, part{k, len(p)})
	}
	t.kept += len(p)
	for t.kept > t.ring.size {
		n := min(t.parts[0].n, t.kept-t.ring.size)
		t.kept -= n
		if t.parts[0].n -= n; t.parts[0].n == 0 {
			t.parts = t.parts[1:]
		}
	}
}

// parseMarks reads whole lines of a marks file and returns how many bytes they
// were. A line that makes no sense ends it.
func parseMarks(data []byte) (marks []mark, read int) {
	for {
		line, rest, whole := bytes.Cut(data[read:], []byte{'\n'})
		if !whole {
			return marks, read
		}
		at, k, ok := bytes.Cut(line, []byte{' '})
		offset, err := strconv.ParseInt(string(at), 10, 64)
		if !ok || err != nil || len(k) != 1 {
			return marks, read
		}
		marks = append(marks, mark{offset, kind(k[0])})
		read = len(data) - len(rest)
	}
}
