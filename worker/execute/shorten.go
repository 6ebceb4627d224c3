package execute

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"countersign/worker/api/wire"
)

// Shorten returns a result of the same kind as o's that is at most about limit
// bytes long as JSON and says that it was cut, for a harness that found the
// whole one too large (PROTOCOL.md §3, 413). A result that fits is returned as
// it is.
func Shorten(o Outcome, limit int) json.RawMessage {
	if len(o.Result) <= limit {
		return o.Result
	}
	var (
		text string
		list []string
		exec wire.ExecResult
		fail wire.Failure
	)
	switch {
	case json.Unmarshal(o.Result, &text) == nil:
		return shrink(limit, func(size int) any { return cutMiddle(text, size) })
	case json.Unmarshal(o.Result, &list) == nil:
		return shrink(limit, func(size int) any { return cutList(list, size) })
	case o.Failed && json.Unmarshal(o.Result, &fail) == nil:
		return shrink(limit, func(size int) any { return wire.Failure{Message: cutMiddle(fail.Message, size)} })
	case json.Unmarshal(o.Result, &exec) == nil:
		return shrink(limit, func(size int) any {
			short := exec
			short.Stdout, short.Stderr = cutBoth(exec.Stdout, exec.Stderr, size)
			return short
		})
	}
	return o.Result
}

// shrink encodes what make returns for smaller and smaller sizes until it fits,
// because the length of JSON is known only once it is made.
func shrink(limit int, make func(size int) any) json.RawMessage {
	for size := limit; ; size = size * 3 / 4 {
		if result := encode(make(size)); len(result) <= limit || size == 0 {
			return result
		}
	}
}

// cutBoth cuts two texts to a common size; what one does not need the other
// may have.
func cutBoth(a, b string, size int) (string, string) {
	forA := max(size/2, size-len(b))
	a = cutMiddle(a, forA)
	return a, cutMiddle(b, max(0, size-min(len(a), forA)))
}

// cutMiddle keeps the head and the tail of a text, size bytes in all.
func cutMiddle(text string, size int) string {
	if len(text) <= size {
		return text
	}
	head, tail := size/2, len(text)-(size-size/2)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + cutLine(int64(tail-head)) + text[tail:]
}

// cutList keeps the first entries, size bytes of them, and says in a last one
// how many there were more.
func cutList(list []string, size int) []string {
	n := 0
	for n < len(list) && size >= len(list[n])+3 {
		size -= len(list[n]) + 3
		n++
	}
	if n == len(list) {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("… %d more entries cut …", len(list)-n))
}
