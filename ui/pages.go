package ui

import (
	"time"

	"countersign/worker"
	"countersign/worker/safetext"
)

const (
	pageSize  = 100
	pagesKept = 20 // pages in memory: scrolling through a million rows holds 2000
)

// historyRow is what a row of the history draws. It leaves the payload behind,
// which may be megabytes.
type historyRow struct {
	id                          worker.HoldID
	kind, summary, status, rest string
	at                          time.Time
}

// pages is the part of a search's answer that is in memory. Pages are read one
// after another as rows are asked for, and forgotten again when they have not
// been drawn for long; where each begins is remembered. UI thread only.
type pages struct {
	load   func(before worker.HoldID, page int)
	kept   map[int][]historyRow
	asked  map[int]bool
	starts []worker.HoldID // starts[n] is the Before of page n; page 0 begins at 0
	rows   int             // known so far, over all pages
	ended  bool            // there is no further page
	used   map[int]int     // when each page was last drawn, counted in uses
	uses   int
}

func newPages(load func(worker.HoldID, int)) *pages {
	return &pages{load: load, kept: map[int][]historyRow{}, asked: map[int]bool{}, used: map[int]int{}, starts: []worker.HoldID{0}}
}

// put takes in a page that was read.
func (p *pages) put(n int, holds []worker.Hold) {
	delete(p.asked, n)
	rows := make([]historyRow, len(holds))
	for i, h := range holds {
		rows[i] = newHistoryRow(h)
	}
	p.kept[n] = rows
	p.use(n)
	if n == len(p.starts)-1 && !p.ended {
		p.rows += len(rows)
		if len(rows) < pageSize {
			p.ended = true
		} else {
			p.starts = append(p.starts, rows[len(rows)-1].id)
		}
	}
	p.forget()
}

// forget drops the pages that were not drawn for longest.
func (p *pages) forget() {
	for len(p.kept) > pagesKept {
		oldest, when := 0, p.uses+1
		for n := range p.kept {
			if p.used[n] < when {
				oldest, when = n, p.used[n]
			}
		}
		delete(p.kept, oldest)
		delete(p.used, oldest)
	}
}

func (p *pages) use(n int) {
	p.uses++
	p.used[n] = p.uses
}

// length is how many rows there are to scroll through: those known, and one more
// as long as there may be more.
func (p *pages) length() int {
	if p.kept == nil || p.ended || p.rows == 0 {
		return p.rows
	}
	return p.rows + 1
}

// row returns a row that is in memory. For any other it starts to read its page
// and reports false.
func (p *pages) row(i int) (historyRow, bool) {
	if i < 0 || i >= p.length() {
		return historyRow{}, false
	}
	n := i / pageSize
	if rows, ok := p.kept[n]; ok {
		p.use(n)
		if i%pageSize < len(rows) {
			return rows[i%pageSize], true
		}
		return historyRow{}, false
	}
	if n < len(p.starts) && !p.asked[n] {
		p.asked[n] = true
		p.load(p.starts[n], n)
	}
	return historyRow{}, false
}

// find returns where a hold is, if it is in memory.
func (p *pages) find(id worker.HoldID) (int, bool) {
	for n, rows := range p.kept {
		for i, r := range rows {
			if r.id == id {
				return n*pageSize + i, true
			}
		}
	}
	return 0, false
}

func newHistoryRow(h worker.Hold) historyRow {
	r := historyRow{
		id: h.ID, kind: h.Item.Kind, summary: summary(h.Item), status: h.WithFailure(h.Status()), at: h.OpenedAt,
		rest: rowRest(h, safetext.Clip(h.Item.SessionID, 60)),
	}
	return r
}
