package execute

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sort"
	"sync"
	"unicode/utf8"
)

// Line is one line of a transcript, as it was printed: text for safetext. A
// line ends at a line feed, and where the other stream comes in between.
type Line struct {
	Text    []byte // without its line feed, at most 4 KB
	Stderr  bool
	Note    bool  // ours: tells how much was not kept here
	Clipped int64 // bytes of the line that Text leaves out
}

// maxLineText is what is drawn of one line, in bytes.
const maxLineText = 4 << 10

// blockSize is the distance of the index's entries, in bytes: what has to be
// scanned to find one line.
const blockSize = 64 << 10

// Transcript reads what a command has printed so far. The file may still grow:
// Count and Lines see what was added. Memory is bounded by a small index, not
// by the file. It is safe for concurrent use.
type Transcript struct {
	mu        sync.Mutex
	file      *os.File
	path      string
	marksFile *os.File // nil while there is none
	marksSize int64    // bytes read of it
	marks     []mark   // in order of their offsets
	blocks    []place  // where the scan was at each multiple of blockSize
	at        place    // where the scan is
	end       int64    // and how far it has come
	cache     []byte   // one block, while it is looked at line by line
	cached    int64    // its offset
}

// mark says that bytes from offset on are of a kind.
type mark struct {
	offset int64
	kind   kind
}

// place is the line that an offset belongs to, and where that line starts.
type place struct {
	line  int
	start int64
}

// OpenTranscript opens the transcript that Run writes, or wrote, at path. There
// is none, and fs.ErrNotExist is returned, before something was printed.
func OpenTranscript(path string) (*Transcript, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &Transcript{file: file, path: path}, nil
}

// Close closes the files.
func (t *Transcript) Close() error {
	if t.marksFile != nil {
		t.marksFile.Close()
	}
	return t.file.Close()
}

// CopyTo writes the whole transcript as it is now to w: the output byte for
// byte, with a line of ours where some of it was not kept.
func (t *Transcript) CopyTo(w io.Writer) error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(t.file, 0, info.Size()))
	return err
}

// Count returns the number of lines so far. The last one may be unfinished.
func (t *Transcript) Count() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.grow()
	return t.count(), err
}

func (t *Transcript) count() int {
	if t.end > t.at.start {
		return t.at.line + 1
	}
	return t.at.line
}

// Lines returns at most n lines, beginning with line number from (the first is
// 0). It returns fewer where the transcript ends.
func (t *Transcript) Lines(from, n int) ([]Line, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.grow(); err != nil {
		return nil, err
	}
	if from < 0 || from >= t.count() {
		return nil, nil
	}
	at, err := t.find(from)
	var lines []Line
	for ; err == nil && n > 0 && at.start < t.end; n-- {
		var end int64
		if end, err = t.endOf(at); err != nil {
			break
		}
		var l Line
		if l, err = t.read(at.start, end); err == nil {
			lines = append(lines, l)
		}
		at = place{at.line + 1, end}
	}
	return lines, err
}

// grow takes in what was added since the last time. The size comes first: the
// marks for all that it covers are then on disk.
func (t *Transcript) grow() error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= t.end {
		return nil
	}
	if err := t.readMarks(); err != nil {
		return err
	}
	buf := make([]byte, blockSize)
	for size := info.Size(); t.end < size; {
		if t.end%blockSize == 0 {
			t.blocks = append(t.blocks, t.at)
		}
		part := buf[:min(size-t.end, blockSize-t.end%blockSize)]
		if _, err := t.file.ReadAt(part, t.end); err != nil {
			return err
		}
		for p := part; ; {
			end, ok := t.nextEnd(p, t.end, t.at.start)
			if !ok {
				t.end += int64(len(p))
				break
			}
			p = p[end-t.end:]
			t.end, t.at = end, place{t.at.line + 1, end}
		}
	}
	return nil
}

func (t *Transcript) readMarks() error {
	if len(t.marks) > maxMarks {
		return nil
	}
	if t.marksFile == nil {
		marks, err := os.Open(t.path + marksEnding)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // standard output alone, so far
		}
		if err != nil {
			return err
		}
		t.marksFile = marks
	}
	info, err := t.marksFile.Stat()
	if err != nil {
		return err
	}
	const longest = 24 // bytes of one mark
	data := make([]byte, min(max(0, info.Size()-t.marksSize), maxMarks*longest))
	n, err := t.marksFile.ReadAt(data, t.marksSize)
	if err != nil && err != io.EOF {
		return err
	}
	marks, read := parseMarks(data[:n])
	t.marks = append(t.marks, marks...)
	t.marksSize += int64(read)
	return nil
}

// nextEnd returns the end of the line that starts at start, if it is in p, the
// bytes from offset on: after a line feed, or where the kind changes.
func (t *Transcript) nextEnd(p []byte, offset, start int64) (end int64, ok bool) {
	end = offset + int64(len(p)) + 1
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		end = offset + int64(i) + 1
	}
	if n := len(t.marks); n == 0 || t.marks[n-1].offset <= start {
		return end, end <= offset+int64(len(p))
	}
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].offset > start })
	if t.marks[i].offset >= offset {
		end = min(end, t.marks[i].offset)
	}
	return end, end <= offset+int64(len(p))
}

// find returns where a line starts.
func (t *Transcript) find(line int) (place, error) {
	// The first block in which the line is known already, or the last before it.
	i := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].line >= line })
	if i < len(t.blocks) && t.blocks[i].line == line {
		return t.blocks[i], nil
	}
	i--
	at, offset := t.blocks[i], int64(i)*blockSize
	p, err := t.block(offset)
	for err == nil && at.line < line {
		end, ok := t.nextEnd(p, offset, at.start)
		if !ok {
			return at, io.ErrUnexpectedEOF
		}
		p, offset, at = p[end-offset:], end, place{at.line + 1, end}
	}
	return at, err
}

// endOf returns where a line ends. A long one is passed over in the index.
func (t *Transcript) endOf(at place) (int64, error) {
	i := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].line > at.line }) - 1
	from := int64(i) * blockSize
	p, err := t.block(from)
	if err != nil {
		return 0, err
	}
	offset := max(from, at.start)
	if end, ok := t.nextEnd(p[offset-from:], offset, at.start); ok {
		return end, nil
	}
	return t.end, nil // unfinished
}

// block returns what is known of the block at offset.
func (t *Transcript) block(offset int64) ([]byte, error) {
	size := int(min(blockSize, t.end-offset))
	if t.cached != offset || len(t.cache) != size {
		t.cache = make([]byte, size)
		t.cached = offset
		if _, err := t.file.ReadAt(t.cache, offset); err != nil {
			t.cache = nil
			return nil, err
		}
	}
	return t.cache, nil
}

// read returns the line between two offsets.
func (t *Transcript) read(start, end int64) (Line, error) {
	text := make([]byte, min(end-start, maxLineText+1))
	if _, err := t.file.ReadAt(text, start); err != nil {
		return Line{}, err
	}
	var last [1]byte
	if _, err := t.file.ReadAt(last[:], end-1); err != nil {
		return Line{}, err
	}
	if last[0] == '\n' {
		end--
	}
	text = text[:min(int64(len(text)), end-start)]
	if len(text) > maxLineText {
		text = wholeCharacters(text[:maxLineText])
	}
	l := Line{Text: text, Clipped: end - start - int64(len(text))}
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].offset > start }) - 1
	if i >= 0 {
		l.Stderr = t.marks[i].kind == kindStderr
		l.Note = t.marks[i].kind == kindNote
	}
	return l, nil
}

// wholeCharacters leaves out the beginning of a character at the end of p.
func wholeCharacters(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}
