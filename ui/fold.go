package ui

import (
	"fmt"
	"path"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// fold is reads and lists that one rule or one grant let run, as one row: a
// search of an agent's is a list and then a read for each file. What waits for
// the operator is never folded.
type fold struct {
	id      worker.HoldID // below 0, so that it is no item's
	section section
	views   []worker.View // in the order of the section
}

// leastFolded is how many items are worth a fold.
const leastFolded = 2

// foldKey names the fold that an item belongs to; "" for none.
func foldKey(v worker.View, s section) string {
	byPerson := v.DecidedBy == "" || strings.HasPrefix(v.DecidedBy, byOperator)
	kind := v.Item.Kind
	if s == waiting || s == inLine || byPerson || v.Decision != worker.Approved || kind != wire.KindRead && kind != wire.KindList {
		return ""
	}
	switch v.Word {
	case worker.WordAsking, worker.WordAccepted, worker.WordRunning, worker.WordDelivering, worker.WordReported:
		return fmt.Sprint(s, "\x00", v.Connection, "\x00", v.Item.SessionID, "\x00", v.DecidedBy)
	}
	return "" // what went wrong stands by itself
}

// foldSection makes the rows of a section.
func (q *queue) foldSection(s section, views []worker.View) {
	count := map[string]int{}
	for _, v := range views {
		count[foldKey(v, s)]++
	}
	for _, v := range views {
		key := foldKey(v, s)
		if key == "" || count[key] < leastFolded {
			q.entries = append(q.entries, entry{s, v.ID})
			q.views[v.ID] = v
			continue
		}
		id, known := q.foldIDs[key]
		if !known {
			id = -worker.HoldID(len(q.foldIDs) + 1)
			q.foldIDs[key] = id
		}
		f := q.folds[id]
		if f == nil {
			f = &fold{id: id, section: s}
			q.folds[id] = f
			q.entries = append(q.entries, entry{s, id})
		}
		f.views = append(f.views, v)
		q.foldOf[v.ID] = id
	}
}

// title says what is in the fold, who let it run, and below which directory.
func (f *fold) title() string {
	return fmt.Sprintf("%s by %s · %s", f.counted(), decider(f.views[0].DecidedBy), f.below())
}

func (f *fold) counted() string {
	reads, lists := 0, 0
	for _, v := range f.views {
		if v.Item.Kind == wire.KindList {
			lists++
		} else {
			reads++
		}
	}
	switch {
	case lists == 0:
		return countWords(reads, "read", "reads")
	case reads == 0:
		return countWords(lists, "list", "lists")
	}
	return countWords(reads, "read", "reads") + " and " + countWords(lists, "list", "lists")
}

// decider is who let something run, without what tells apart grants and versions
// of the rules.
func decider(by string) string {
	if strings.HasPrefix(by, "grant ") {
		return "a grant"
	}
	if at := strings.LastIndex(by, " ("); at > 0 && strings.HasPrefix(by, "rule ") {
		by = by[:at]
	}
	return safetext.Clip(by, 80)
}

// below is the directory that all of them are about.
func (f *fold) below() string {
	common := ""
	for i, v := range f.views {
		dir := readsUnder(v.Item.Kind, askedPath(v))
		for i > 0 && common != "." && dir != common && !strings.HasPrefix(dir, common+"/") {
			common = path.Dir(common)
		}
		if i == 0 {
			common = dir
		}
	}
	if common == "." {
		return "…"
	}
	return safetext.Clip(common, 100) + "/…"
}

// askedPath is the path of a read or a list.
func askedPath(v worker.View) string {
	task, err := execute.Decode(v.Item.Kind, v.Item.Payload)
	if err != nil {
		return ""
	}
	return task.Path
}

// failed is how many of them were not done.
func (f *fold) failed() int {
	n := 0
	for _, v := range f.views {
		if v.Outcome != nil && v.Outcome.How != execute.Ended {
			n++
		}
	}
	return n
}

func (f *fold) face() face {
	newest := f.views[0]
	c := face{kind: newest.Item.Kind, summary: f.title(), word: newest.Word}
	c.rest = safetext.Clip(newest.Item.SessionID, 60) + " · " + recently(newest.Age)
	switch n := f.failed(); {
	case n == 0:
	case c.word == worker.WordReported:
		c.word += worker.FailureMark + grouped(n) + " not done"
	default:
		c.rest += worker.FailureMark + grouped(n) + " not done"
	}
	return c
}

// lines lists what is in the fold: paths, each with the number of its item, and
// below a path what is special about it.
func (f *fold) lines() []textLine {
	lines := make([]textLine, 0, len(f.views)+1)
	lines = append(lines, textLine{Text: "Each is in the history by itself", Style: note})
	for _, v := range f.views {
		safe := safetext.Line(askedPath(v))
		lines = append(lines, textLine{Text: safe, Style: body, Number: int(v.ID), Inks: markInks(safe)})
		if v.Item.Kind == wire.KindList {
			lines = append(lines, textLine{Text: "a list of everything below it", Style: aside, Indent: 2})
		}
		if v.Outcome != nil && v.Outcome.How != execute.Ended {
			lines = append(lines, textLine{Text: endWords(v.Hold), Style: aside, Indent: 2})
		}
	}
	return lines
}

// foldView shows what is in a fold, in the place of the detail.
type foldView struct {
	root  *fyne.Container
	title *widget.Label
	list  *textView
	drawn string
}

func newFoldView(k *keys) *foldView {
	f := &foldView{title: widget.NewLabel(""), list: newTextView()}
	f.title.TextStyle.Bold, f.title.SizeName, f.title.Wrapping = true, theme.SizeNameSubHeadingText, fyne.TextWrapWord
	f.list.keys = k
	f.root = container.NewBorder(container.NewPadded(f.title), nil, nil, nil, f.list.themed())
	f.root.Hide()
	return f
}

// show draws a fold, if it is another one or has others in it now.
func (f *foldView) show(c *fold) {
	drawn := fmt.Sprint(c.id)
	for _, v := range c.views {
		drawn += fmt.Sprint(" ", v.ID, v.Word)
	}
	f.root.Show()
	if drawn == f.drawn {
		return
	}
	if before, _, _ := strings.Cut(f.drawn, " "); before != fmt.Sprint(c.id) {
		f.list.ScrollToOffset(0)
	}
	f.drawn = drawn
	f.title.SetText(c.title())
	f.list.setLines(c.lines(), nil)
	f.root.Refresh()
}

// scroll moves through the list.
func (f *foldView) scroll(a action) {
	switch a {
	case doPageDown:
		f.list.page(1)
	case doPageUp:
		f.list.page(-1)
	case doTop:
		f.list.page(-1 << 20)
	case doEnd:
		f.list.page(1 << 20)
	}
}
