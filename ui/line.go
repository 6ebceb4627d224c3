package ui

import (
	"fmt"
	"slices"

	"countersign/worker"
)

// lineWords says why an approved item has not started; "" where its turn has come.
func lineWords(v worker.View, s worker.Snapshot) string {
	const start = "In line: "
	switch v.Word {
	case worker.WordPaused:
		return start + "Countersign is paused."
	case worker.WordInLine:
	default:
		return ""
	}
	ours := func(o worker.View) bool { return o.Connection == v.Connection && o.ID != v.ID }
	for _, o := range slices.Concat(s.Waiting, s.Running) {
		if !ours(o) || !before(o, v) {
			continue
		}
		words := start + itemName(o.Hold) + " of the same session comes before it"
		if o.Decision == worker.Undecided {
			words += ", and waits for you"
		}
		return words + "."
	}
	n := 0
	for _, o := range s.Running {
		if ours(o) {
			n++
		}
	}
	for _, c := range s.Connections {
		if c.Name != v.Connection || n == 0 || n < c.MaxRunning {
			continue
		}
		run := " run"
		if n == 1 {
			run = " runs"
		}
		return fmt.Sprintf("%s%s of this connection%s, and no more than %d may at once.", start, countWords(n, "item", "items"), run, c.MaxRunning)
	}
	return ""
}

// before reports whether one item comes before another in the order of a session.
func before(a, b worker.View) bool {
	switch {
	case a.Item.SessionID == "" || a.Item.SessionID != b.Item.SessionID:
		return false
	case !a.Item.CreatedAt.Equal(b.Item.CreatedAt):
		return a.Item.CreatedAt.Before(b.Item.CreatedAt)
	}
	return a.ID < b.ID
}
