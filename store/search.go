package store

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes in bytes.
const (
	headLimit  = 4 << 10  // of each text that is searched
	briefLimit = 64 << 10 // payloads above it get a stand-in for lists
	textLimit  = 512      // of what is searched for
)

// matching turns what a person typed into an FTS4 query that has no syntax of
// theirs: every piece between spaces becomes a quoted phrase of its letters and
// digits, the last word of which may go on. "" means that nothing is left to
// search for.
func matching(typed string) string {
	var phrases []string
	for _, piece := range strings.Fields(strings.ToValidUTF8(clip(typed, textLimit), " ")) {
		words := strings.FieldsFunc(piece, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
		})
		if len(words) > 0 {
			phrases = append(phrases, `"`+strings.Join(words, " ")+`*"`)
		}
	}
	return strings.Join(phrases, " ")
}

// asked is the text of a payload that is searched: whatever of it says what was
// asked for. A payload that is not an object has none.
func asked(payload []byte) string {
	texts := textsOf(payload)
	var found []string
	for _, name := range textNames() {
		if texts[name] != "" {
			found = append(found, texts[name])
		}
	}
	return head(strings.Join(found, "\n"))
}

// brief is a stand-in for a large payload: an object with the beginnings of its
// texts. It is nil where the payload itself is small enough for a list.
func brief(payload []byte) []byte {
	if len(payload) <= briefLimit {
		return nil
	}
	encoded, err := json.Marshal(textsOf(payload))
	if err != nil {
		return []byte("{}") // cannot be: a map of strings
	}
	return encoded
}

// textNames are the fields, over all kinds, that say what was asked for.
func textNames() []string {
	return []string{"command", "cwd", "path", "tool_name", "content"}
}

func textsOf(payload []byte) map[string]string {
	texts := map[string]string{}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return texts
	}
	for _, name := range textNames() {
		var s string
		if json.Unmarshal(fields[name], &s) == nil {
			texts[name] = head(s)
		}
	}
	return texts
}

func head(s string) string { return clip(s, headLimit) }

// clip shortens s to at most limit bytes, at the end of a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
