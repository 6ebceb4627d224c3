package ui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
)

// inHistory opens the window at the history with n holds.
func inHistory(t *testing.T, n int) *stage {
	t.Helper()
	st := newStage(t)
	st.hist.n = n
	st.show(func(*worker.Snapshot) {})
	st.press(fyne.Key2, ctrl)
	st.until("the first page", func() bool { return n == 0 || st.window.history.pages.length() > 0 })
	return st
}

func (st *stage) search(text string) {
	st.press(fyne.KeyF, ctrl)
	st.window.history.search.SetText(text)
}

func TestTheHistoryShowsTheNewestFirstWithItsCountAndItsDetail(t *testing.T) {
	st := inHistory(t, 1234)
	st.until("the count", func() bool { return st.shows("1,234 items") })
	st.until("the detail", func() bool { return st.shows("exec #1234") && st.shows("Report delivered") })
	if !st.shows("echo item 1234") {
		t.Errorf("the newest is not shown: %q", st.texts())
	}
	st.press(fyne.KeyJ, 0)
	st.until("the next detail", func() bool { return st.shows("exec #1233") })
}

func TestScrollingThroughAHundredThousandRowsHoldsTwentyPages(t *testing.T) {
	const n = 100_000
	st := inHistory(t, n)
	h := st.window.history
	seen := 0
	for seen < n {
		if h.pages.length() < seen {
			t.Fatalf("%d rows are known, after %d were seen", h.pages.length(), seen)
		}
		st.until(fmt.Sprintf("row %d", seen), func() bool {
			r, ok := h.pages.row(seen)
			return ok && r.id == worker.HoldID(n-seen)
		})
		if len(h.pages.kept) > pagesKept {
			t.Fatalf("%d pages are in memory at row %d", len(h.pages.kept), seen)
		}
		seen += pageSize
	}
	st.until("the end", func() bool {
		h.pages.row(n) // the row that says there may be more
		return h.pages.length() == n
	})
	st.until("the first row again", func() bool {
		r, ok := h.pages.row(0)
		return ok && r.id == n
	})
	for _, q := range st.hist.asked() {
		if q.Limit != pageSize {
			t.Fatalf("a page of %d was asked for", q.Limit)
		}
	}
}

func TestScrollingTheListReadsFurtherPages(t *testing.T) {
	st := inHistory(t, 1000)
	h := st.window.history
	for range 5 {
		before := h.pages.rows
		h.list.ScrollTo(h.pages.length() - 1)
		st.until("a further page", func() bool { return h.pages.rows > before })
	}
}

func TestSearchAsksOncePerPauseInTyping(t *testing.T) {
	st := inHistory(t, 10)
	for _, text := range []string{"f", "fa", "fas", "fast"} {
		st.search(text)
	}
	st.until("the answer", func() bool { return st.shows("echo the fast answer") })
	for _, q := range st.hist.asked() {
		if q.Text != "" && q.Text != "fast" {
			t.Errorf("it asked for %q while more was being typed", q.Text)
		}
	}
}

func TestALateAnswerToAnOlderQuestionIsDropped(t *testing.T) {
	st := inHistory(t, 10)
	st.hist.mu.Lock()
	st.hist.block = make(chan struct{})
	st.hist.mu.Unlock()
	st.search("slow")
	st.until("the slow question is asked", func() bool {
		return slices.ContainsFunc(st.hist.asked(), func(q worker.HistoryQuery) bool { return q.Text == "slow" })
	})
	st.search("fast")
	st.until("the fast answer", func() bool { return st.shows("echo the fast answer") })
	close(st.hist.block)
	st.wgIdle()
	st.wgIdle()
	if st.shows("echo the slow answer") {
		t.Error("the late answer replaced the newer one")
	}
}

func TestFiltersRestrictTheSearch(t *testing.T) {
	st := inHistory(t, 10)
	st.window.history.kind.tapped()
	menu := st.window.win.Canvas().Overlays().Top()
	if menu == nil {
		t.Fatal("no menu opened")
	}
	st.press(fyne.KeyEscape, 0)
	st.window.history.query.Kind, st.window.history.query.Status = "read", worker.WordDeclined
	st.window.history.ask(0)
	st.until("the restricted question", func() bool {
		return slices.ContainsFunc(st.hist.asked(), func(q worker.HistoryQuery) bool {
			return q.Kind == "read" && q.Status == worker.WordDeclined
		})
	})
}

func TestAnEmptyHistorySaysSo(t *testing.T) {
	st := inHistory(t, 0)
	st.until("the words", func() bool { return st.shows("Nothing has been held yet") })
}

func TestTheHistoryFollowsWhatEnds(t *testing.T) {
	st := inHistory(t, 5)
	st.hist.mu.Lock()
	st.hist.n = 6
	st.hist.mu.Unlock()
	st.Happened(worker.Event{Kind: worker.EventFinished, Hold: 6})
	st.until("the new row", func() bool { return st.shows("echo item 6") })
	if st.window.history.selected != 5 {
		t.Errorf("item %d is selected, want 5, which was being read", st.window.history.selected)
	}
}

func TestTheHistorysDetailHasNoButtons(t *testing.T) {
	st := inHistory(t, 3)
	st.until("the detail", func() bool { return st.shows("exec #3") })
	if st.shows("Approve") || st.shows("Release") {
		t.Errorf("buttons are offered: %q", st.texts())
	}
	st.pass(time.Minute)
	st.press(fyne.KeyReturn, ctrl)
	st.press(fyne.KeyD, ctrl)
	st.didNothing()
}

func TestWhatTheHistorySaysOfAnOutcome(t *testing.T) {
	v := asDone(execItem(1, "x"))
	v.Outcome.Exit = 3
	if got := deedWords(v.Hold); got != "Exit 3" {
		t.Errorf("%q, want Exit 3", got)
	}
	v.Item.Kind = "read"
	if got := deedWords(v.Hold); got != "Done" {
		t.Errorf("%q, want Done", got)
	}
	v.Outcome.Reason, v.Outcome.How = "missing\x1b[1m", "failed"
	if got := deedWords(v.Hold); !strings.HasPrefix(got, "Not done: missing‹ESC›") {
		t.Errorf("%q", got)
	}
}

func TestTheHistorySaysThatItLoads(t *testing.T) {
	st := newStage(t)
	st.hist.n = 3
	st.show(func(*worker.Snapshot) {})
	st.window.goTo(st.window.railHistory) // an answer waits for the UI thread, which is here
	if !st.shows("Loading…") {
		t.Errorf("%q", st.texts())
	}
	st.until("the first page", func() bool { return st.shows("echo item 3") })
	if st.shows("Loading…") {
		t.Error("it still loads")
	}
}

func TestTheHistoryShowsAnItemAsItWasShownAndWhatRanInstead(t *testing.T) {
	v := asDone(explained(t, execItem(1, "ls -l && make $(cat list)")))
	v.Closed, v.DecidedBy = true, "operator, edited"
	v.Edited = []byte(`{"command":"ls -l # \u202e"}`)
	kept, err := json.Marshal(v.Shown) // as the journal keeps it
	if err != nil {
		t.Fatal(err)
	}
	v.Shown = worker.Shown{}
	if err := json.Unmarshal(kept, &v.Shown); err != nil {
		t.Fatal(err)
	}
	st := newStage(t)
	st.hist.n, st.hist.kept = 1, map[worker.HoldID]worker.Hold{1: v.Hold}
	st.show(func(*worker.Snapshot) {})
	st.press(fyne.Key2, ctrl)
	d := st.window.history.detail
	st.until("the detail", func() bool { return d.view.ID == 1 })
	doc, why := linesOf(d.doc.lines), linesOf(d.why.lines)
	if want := "Ran instead, as the operator changed it\nls -l # ‹U+202E›\nAsked\nCommand\nls -l && make $(cat list)\n"; doc != want {
		t.Errorf("it shows\n%swant\n%s", doc, want)
	}
	for _, want := range []string{"Why it was asked\n", "allow ls -l\n  rule \"look around\" allows it\n", "ask make $(cat list)\n", "ask     cat list\n"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q is not in the reasons\n%s", want, why)
		}
	}
	if d.box.Visible() {
		t.Error("there are buttons for what is over")
	}
	st.picture("history-edited")
}
