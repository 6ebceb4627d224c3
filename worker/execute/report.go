package execute

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ends keeps the beginning and the end of a stream, each in at most half of a
// limit, whatever comes.
type ends struct {
	limit int
	total int64  // bytes written
	head  []byte // the first ones
	tail  ring   // the last ones, after head
}

func newEnds(limit int) *ends {
	// The extra bytes tell a whole character at the cut from half of one.
	return &ends{limit: limit, tail: ring{size: limit - limit/2 + utf8.UTFMax}}
}

func (e *ends) write(p []byte) {
	e.total += int64(len(p))
	n := min(len(p), e.limit/2-len(e.head))
	e.head = append(e.head, p[:n]...)
	e.tail.write(p[n:])
}

// text returns the stream as valid UTF-8 of at most limit bytes beside the line
// that tells of a cut, and how many printed bytes it leaves out.
func (e *ends) text() (text string, cut int64) {
	last := e.tail.bytes()
	if e.total == int64(len(e.head)+len(last)) {
		all := append(e.head, last...)
		if size := validLen(all); size <= e.limit {
			return each(all), 0
		}
		// Replaced bytes grew: cut the text as if the middle had been missed.
		e.head, last = all, all
	}
	head := wholePrefix(e.head, e.limit/2)
	tail := wholeSuffix(last, e.limit-e.limit/2)
	cut = e.total - int64(len(head)+len(tail))
	return each(head) + cutLine(cut) + each(tail), cut
}

func cutLine(n int64) string { return fmt.Sprintf("\n… %d bytes cut …\n", n) }

// each returns p with every byte that is not part of a UTF-8 character replaced
// by U+FFFD, one for one, so that lengths can be foretold. NULs stay.
func each(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	var b strings.Builder
	b.Grow(validLen(p))
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		b.WriteRune(r)
		p = p[size:]
	}
	return b.String()
}

// validLen is len(each(p)).
func validLen(p []byte) (n int) {
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		n += utf8.RuneLen(r)
		p = p[size:]
	}
	return n
}

// wholePrefix returns the longest beginning of p that ends with a whole
// character and is at most limit bytes long once made valid. A character that
// p itself cuts in two is left out.
func wholePrefix(p []byte, limit int) []byte {
	n := 0
	for rest := p; len(rest) > 0 && utf8.FullRune(rest); {
		r, size := utf8.DecodeRune(rest)
		if limit -= utf8.RuneLen(r); limit < 0 {
			break
		}
		n += size
		rest = rest[size:]
	}
	return p[:n]
}

// wholeSuffix is wholePrefix for the end of p. The beginning of p may be the
// rest of a character; limit is to leave it out.
func wholeSuffix(p []byte, limit int) []byte {
	n := len(p)
	for n > 0 {
		r, size := utf8.DecodeLastRune(p[:n])
		if limit -= utf8.RuneLen(r); limit < 0 {
			break
		}
		n -= size
	}
	return p[n:]
}

// validPrefix is the beginning of p as valid UTF-8 of at most limit bytes.
func validPrefix(p []byte, limit int) string { return each(wholePrefix(p, limit)) }

// ring keeps the last size bytes written to it. It grows as it is needed.
type ring struct {
	size int
	buf  []byte
	next int // where the oldest byte is once buf is full
}

func (r *ring) write(p []byte) {
	if len(p) > r.size {
		p = p[len(p)-r.size:]
	}
	if grow := min(len(p), r.size-len(r.buf)); grow > 0 {
		r.buf = append(r.buf, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % len(r.buf)
		p = p[n:]
	}
}

// bytes returns the bytes in the order in which they came.
func (r *ring) bytes() []byte {
	return append(append(make([]byte, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}
