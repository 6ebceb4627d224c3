package ui

import (
	"errors"

	"countersign/worker"
)

// What waits for an answer can end before it comes: it expires, its session stops,
// a rule or another window decides. Then it is said how it ended.

// isOver says that an item is over, and how it ended.
type isOver string

func (e isOver) Error() string { return string(e) }

// became says how an item ended, in the place of an error by which the engines only
// say that it does not wait. It may be called from any goroutine.
func (q *queue) became(h worker.Hold, err error) error {
	gone := errors.Is(err, worker.ErrNoHold)
	if !gone && !errors.Is(err, worker.ErrDecided) {
		return err
	}
	for _, v := range q.u.Desk.Snapshot().Finished {
		if v.ID == h.ID {
			return isOver(goneWords(v, true))
		}
	}
	if gone {
		return isOver(capital(itemName(h)) + " is over: the history tells how it ended.")
	}
	return err
}

// goneWords says what became of an item that does not wait for a decision any more.
func goneWords(v worker.View, over bool) string {
	name, word := capital(itemName(v.Hold)), v.Hold.WithFailure(v.Word)
	if !over {
		return name + " does not wait for you any more: " + word + "."
	}
	words := name + " is over: " + word + "."
	if end := endWords(v.Hold); end != "" {
		words += " " + sentence(end)
	}
	return words
}

// aboutItem is an open dialog about an item that waits. gone says in it that it does
// not any more.
type aboutItem struct {
	hold worker.Hold
	gone func(why string)
}

// tellDialog says in the dialog, once, that its item does not wait any more.
func (q *queue) tellDialog() {
	if q.dialog == nil {
		return
	}
	h, gone := q.dialog.hold, q.dialog.gone
	v, there := q.views[h.ID]
	s := q.sectionOf(h.ID)
	switch {
	case !q.u.window.sheets.open():
		q.dialog = nil
	case there && s == waiting:
	case there:
		q.dialog = nil
		gone(goneWords(v, s == finished))
	default:
		q.dialog = nil
		gone(capital(itemName(h)) + " does not wait for you any more.")
	}
}
