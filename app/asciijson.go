package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// writeASCII writes a value as one line of JSON in printable ASCII. JSON's own
// escapes leave characters that some terminals obey, such as U+009B, or that
// reorder a line, such as U+202E.
func writeASCII(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	_, err = fmt.Fprintln(w, b.String())
	return err
}
