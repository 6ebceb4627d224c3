package ui

import (
	"context"
	"sync/atomic"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/safetext"
)

// typingPause is how long to wait for the next letter before searching.
const typingPause = 150 * time.Millisecond

// history is the place where everything that was ever held is found again. The
// database is asked in the background; an answer to an older question than the
// newest is dropped.
type history struct {
	u      *UI
	root   *fyne.Container
	search *field
	kind   *button
	status *button
	count  *widget.Label
	list   *rowList
	detail *detail
	empty  *widget.Label

	query    worker.HistoryQuery
	pages    *pages
	question context.CancelFunc // ends the newest question
	selected worker.HoldID
	settling bool
	stale    atomic.Bool // something ended since the list was read
}

func newHistory(u *UI, k *keys) *history {
	h := &history{u: u, pages: &pages{}}
	h.search = newField(k, "Search commands, paths, output, sessions", 1)
	h.search.OnChanged = func(text string) {
		h.query.Text = text
		h.ask(typingPause)
	}
	h.kind = newButton("Any kind", "", theme.MenuDropDownIcon(), h.chooseKind)
	h.status = newButton("Any status", "", theme.MenuDropDownIcon(), h.chooseStatus)
	h.count = caption("")
	h.list = &rowList{keys: k}
	h.list.Length = func() int { return h.pages.length() }
	h.list.CreateItem = func() fyne.CanvasObject { return newRow() }
	h.list.UpdateItem = h.drawRow
	h.list.OnSelected = h.picked
	h.list.HideSeparators = true
	h.list.ExtendBaseWidget(h.list)
	h.empty = widget.NewLabel("")
	h.empty.Alignment = fyne.TextAlignCenter
	h.detail = newDetail(u, k, h.onScreen, nil)
	top := container.NewBorder(nil, nil, nil, container.NewHBox(h.kind, h.status, container.NewCenter(h.count)), h.search)
	split := container.NewHSplit(container.NewStack(
		container.NewThemeOverride(h.list, dense{NewTheme(), 3, 3, false}), container.NewCenter(h.empty)), h.detail.root)
	split.SetOffset(0.42)
	h.root = container.NewBorder(container.NewPadded(top), nil, nil, nil, split)
	h.root.Hide()
	return h
}

func (h *history) onScreen() bool { return h.u.visible.Load() && h.root.Visible() }

// enter is called when the place is gone to.
func (h *history) enter() { h.ask(0) }

// draw looks for what ended meanwhile, unless the operator has scrolled down:
// rows under the eyes do not move.
func (h *history) draw() {
	if h.atTop() && h.stale.Swap(false) {
		h.renew(time.Second, h.atTop)
	}
}

func (h *history) atTop() bool { return h.list.GetScrollOffset() == 0 }

// ask asks for the first page and the count anew, after a pause.
func (h *history) ask(pause time.Duration) { h.renew(pause, func() bool { return true }) }

// renew asks anew and shows the answer if it is welcome by then. The question
// before it is dropped.
func (h *history) renew(pause time.Duration, welcome func() bool) {
	if h.question != nil {
		h.question()
	}
	ctx, cancel := context.WithCancel(h.u.ctx)
	h.question = cancel
	q := h.query
	if h.pages.length() == 0 {
		setText(h.empty, "Loading…")
	}
	fresh := newPages(func(cursor worker.HoldID, page int) { h.load(ctx, q, cursor, page) })
	h.u.start(func(context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		holds, err := h.u.History.Find(ctx, withPage(q, 0))
		h.answer(ctx, err, func() {
			if !welcome() {
				h.stale.Store(true)
				return
			}
			h.pages = fresh
			h.pages.put(0, holds)
			h.list.ScrollToOffset(0)
			h.refresh()
		})
		n, err := h.u.History.Count(ctx, q)
		h.answer(ctx, err, func() { h.counted(n) })
	})
}

// load reads a further page.
func (h *history) load(ctx context.Context, q worker.HistoryQuery, cursor worker.HoldID, page int) {
	h.u.start(func(context.Context) {
		holds, err := h.u.History.Find(ctx, withPage(q, cursor))
		h.answer(ctx, err, func() {
			h.pages.put(page, holds)
			h.list.Refresh()
		})
	})
}

func withPage(q worker.HistoryQuery, before worker.HoldID) worker.HistoryQuery {
	q.Before, q.Limit = before, pageSize
	return q
}

// answer hands an answer to the UI thread, unless its question is not the newest
// any more.
func (h *history) answer(ctx context.Context, err error, use func()) {
	h.u.OnUI(func() {
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if h.pages.length() == 0 {
				setText(h.empty, "The history cannot be read.")
			}
			h.u.window.say("The history cannot be read: " + safetext.Clip(err.Error(), 300))
		default:
			use()
		}
	})
}

func (h *history) counted(n int) {
	words := countWords(n, "item", "items")
	if h.query.Text != "" || h.query.Kind != "" || h.query.Status != "" {
		words += " found"
	}
	h.count.SetText(words)
}

func (h *history) refresh() {
	words := ""
	if h.pages.length() == 0 {
		words = "Nothing has been held yet."
		if h.query.Text != "" || h.query.Kind != "" || h.query.Status != "" {
			words = "Nothing is found."
		}
	}
	setText(h.empty, words)
	if _, ok := h.pages.find(h.selected); !ok {
		h.selected = 0
		if first, ok := h.pages.row(0); ok {
			h.selected = first.id
		}
		h.open()
	}
	h.mark()
	h.list.Refresh()
}

func (h *history) drawRow(i int, o fyne.CanvasObject) {
	r, ok := h.pages.row(i)
	if !ok {
		o.(*row).set(face{title: "Reading…"})
		return
	}
	o.(*row).set(face{
		kind: r.kind, summary: r.summary, word: r.status, right: when(r.at, h.u.Now()),
		rest: r.rest,
	})
}

func (h *history) mark() {
	h.settling = true
	defer func() { h.settling = false }()
	if i, ok := h.pages.find(h.selected); ok {
		h.list.Select(i)
	} else {
		h.list.UnselectAll()
	}
}

func (h *history) picked(i int) {
	if r, ok := h.pages.row(i); ok && !h.settling {
		h.selected = r.id
		h.open()
	}
}

// open reads the selected item whole and shows it.
func (h *history) open() {
	id := h.selected
	if id == 0 {
		h.detail.clear()
		return
	}
	h.u.start(func(ctx context.Context) {
		hold, err := h.u.History.Hold(ctx, id)
		var entries []worker.Entry
		if err == nil {
			entries, err = h.u.History.Entries(ctx, id)
		}
		h.answer(ctx, err, func() {
			if h.selected == id {
				h.detail.show(worker.View{Hold: hold, Word: hold.Status(), Steps: entries}, finished)
			}
		})
	})
}

func (h *history) do(a action) {
	switch a {
	case doNext, doPrevious:
		i, ok := h.pages.find(h.selected)
		if !ok {
			return
		}
		if a == doNext {
			i++
		} else {
			i--
		}
		if r, ok := h.pages.row(i); ok {
			h.selected = r.id
			h.mark()
			h.open()
		}
	default:
		h.detail.scroll(a)
	}
}

func (h *history) chooseKind() {
	h.choose(h.kind, "Any kind", []string{wire.KindExec, wire.KindRead, wire.KindWrite, wire.KindList}, &h.query.Kind)
}

func (h *history) chooseStatus() {
	h.choose(h.status, "Any status", []string{
		worker.WordReported, worker.WordDeclined, worker.WordExpired, worker.WordReleased, worker.WordWithdrawn,
		worker.WordStopped, worker.WordTimedOut, worker.WordCouldNotStart, worker.WordSessionStopped,
		worker.WordLapsed, worker.WordNotOurs, worker.WordUnknown, worker.WordRefused, worker.WordCannotAccept,
		worker.WordNotConfirmed, worker.WordNotRecorded, worker.WordUnconfirmed, worker.WordUndelivered,
		worker.WordInterrupted,
	}, &h.query.Status)
}

// choose opens a menu that restricts the search, under its button.
func (h *history) choose(b *button, all string, values []string, to *string) {
	item := func(label, value string) *fyne.MenuItem {
		m := fyne.NewMenuItem(label, func() {
			*to = value
			b.choose(value != "")
			b.set(label, true)
			h.root.Refresh()
			h.ask(0)
		})
		m.Checked = *to == value
		return m
	}
	items := []*fyne.MenuItem{item(all, "")}
	for _, v := range values {
		items = append(items, item(v, v))
	}
	c := h.u.window.win.Canvas()
	at := fyne.CurrentApp().Driver().AbsolutePositionForObject(b)
	widget.ShowPopUpMenuAtPosition(fyne.NewMenu("", items...), c, at.AddXY(0, b.Size().Height))
}
