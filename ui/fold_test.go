package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
	"countersign/worker/execute"
)

func byRule(v worker.View, by string) worker.View {
	v = asDone(v)
	v.DecidedBy = by
	return v
}

// titles is what stands in the rows of the queue.
func (st *stage) titles() []string {
	var all []string
	for _, e := range st.window.queue.entries {
		f := st.window.queue.face(e)
		all = append(all, f.title+f.summary)
	}
	return all
}

func TestReadsThatARuleLetRunAreOneRow(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Waiting = []worker.View{readItem(90, "src/x"), readItem(91, "src/y")}
		for i := range 47 {
			s.Finished = append(s.Finished, byRule(readItem(60-i, fmt.Sprintf("src/sub%d/a\u202e.go", i%3)), `rule "look around" (0123456789ab)`))
		}
		s.Finished = append(s.Finished, byRule(view(5, "list", map[string]any{"path": "src"}), "grant ABC"), byRule(readItem(4, "src/b"), "grant ABC"),
			byRule(readItem(3, "docs/a"), "operator"), byRule(readItem(2, "docs/b"), "operator"),
			byRule(execItem(1, "ls"), `rule "look around" (0123456789ab)`))
	})
	want := []string{"Waiting for you", "src/x", "src/y", "Just finished", `47 reads by rule "look around" · src/…`,
		"1 read and 1 list by a grant · src/…", "docs/a", "docs/b", "ls"}
	if got := st.titles(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for range 2 {
		st.press(fyne.KeyJ, 0)
	}
	q := st.window.queue
	if q.folds[q.selected] == nil || !q.foldView.root.Visible() || q.detail.page.Visible() {
		t.Fatalf("the fold is not shown: %d is selected", q.selected)
	}
	got := linesOf(q.foldView.list.lines)
	if strings.Count(got, "src/sub") != 47 || !strings.Contains(got, "src/sub2/a‹U+202E›.go\n") {
		t.Errorf("the fold lists\n%s", got)
	}
	st.picture("fold")
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.press(fyne.KeyPageDown, 0)
	st.didNothing()
	if q.foldView.list.GetScrollOffset() == 0 {
		t.Error("Page Down does not scroll the list")
	}
	st.press(fyne.KeyJ, 0)
	if got := linesOf(q.foldView.list.lines); !strings.Contains(got, "src\n  a list of everything below it\n") {
		t.Errorf("the next fold lists\n%s", got)
	}
	st.press(fyne.KeyJ, 0)
	if q.selected != 3 || q.foldView.root.Visible() {
		t.Errorf("%d is selected, and the fold shown: %v", q.selected, q.foldView.root.Visible())
	}
}

func TestAReadThatWentWrongStandsByItself(t *testing.T) {
	st := newStage(t)
	const rule = `rule "r" (0)`
	lost := byRule(readItem(1, "a"), rule)
	lost.Delivery = worker.Undelivered
	lost.Word = lost.Hold.Status()
	missing := byRule(readItem(2, "b"), rule)
	missing.Outcome = &execute.Outcome{How: execute.FileFailed, Reason: "no such file"}
	st.show(func(s *worker.Snapshot) {
		s.Finished = []worker.View{byRule(readItem(3, "c"), rule), missing, lost}
	})
	got := strings.Join(st.titles(), "\n")
	if got != "Just finished\n2 reads by rule \"r\" · …\na" {
		t.Errorf("the rows are\n%s", got)
	}
	if !st.shows("1 not done") || !strings.Contains(linesOf(st.window.queue.foldView.list.lines), "b\n  Not done: no such file\n") {
		t.Errorf("the fold does not say what was not done: %q", st.texts())
	}
}

func TestASelectedReadIsFollowedIntoItsFold(t *testing.T) {
	st := newStage(t)
	const rule = `rule "r" (0)`
	one := asRunning(readItem(1, "a"))
	one.DecidedBy = rule
	st.show(func(s *worker.Snapshot) { s.Running = []worker.View{one} })
	st.window.queue.selectItem(1)
	st.put(func(s *worker.Snapshot) {
		s.Running, s.Finished = nil, []worker.View{byRule(readItem(2, "b"), rule), byRule(readItem(1, "a"), rule)}
		s.Waiting = []worker.View{execItem(3, "ls")}
	})
	if q := st.window.queue; q.folds[q.selected] == nil || !q.foldView.root.Visible() {
		t.Errorf("%d is selected", q.selected)
	}
	st.put(func(s *worker.Snapshot) { s.Finished = nil })
	if q := st.window.queue; q.selected != 3 || q.detail.view.ID != 3 {
		t.Errorf("%d is selected after the fold went", q.selected)
	}
}
