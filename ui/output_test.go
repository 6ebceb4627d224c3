package ui

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"fyne.io/fyne/v2"

	"countersign/worker"
	"countersign/worker/execute"
)

// running shows a running item with output in a file.
func withOutput(t *testing.T, lines int) (*stage, *fakeTranscript, *output) {
	t.Helper()
	st := newStage(t)
	f := &fakeTranscript{}
	st.files["out"] = f
	for i := range lines {
		f.print(false, fmt.Sprintf("line %d", i+1))
	}
	v := asRunning(execItem(1, "make"))
	v.OutputPath = "out"
	st.show(func(s *worker.Snapshot) { s.Running = []worker.View{v} })
	out := st.window.queue.detail.out
	st.until("the output", func() bool { return out.count == lines })
	return st, f, out
}

func lastLine(o *output) string { return o.view.lines[len(o.view.lines)-1].Text }

func TestOutputOfARunningCommandIsFollowed(t *testing.T) {
	st, f, out := withOutput(t, 200)
	if !out.view.atEnd() {
		t.Error("the end is not on screen")
	}
	f.print(true, "something went wrong")
	st.until("the new line", func() bool { return lastLine(out) == "something went wrong" })
	if !out.view.atEnd() {
		t.Error("the new line is not on screen")
	}
	if l := out.view.lines[200]; l.Style != stderr || l.Number != 201 {
		t.Errorf("line %+v, want number 201 of stderr", l)
	}
	if !st.shows("err 201") || !st.shows("something went wrong") {
		t.Errorf("stderr is not marked: %q", st.texts())
	}
}

func TestScrolledUpTheOutputStandsStill(t *testing.T) {
	st, f, out := withOutput(t, 3000)
	st.press(fyne.KeyPageUp, 0)
	st.press(fyne.KeyPageUp, 0)
	at, first := out.view.GetScrollOffset(), out.view.lines[0].Text
	f.print(false, make([]string, 500)...)
	st.until("it knows of the new lines", func() bool { return out.count == 3500 })
	if out.view.GetScrollOffset() != at || out.view.lines[0].Text != first {
		t.Errorf("it moved from %v in %q to %v in %q", at, first, out.view.GetScrollOffset(), out.view.lines[0].Text)
	}
	st.press(fyne.KeyEnd, 0)
}

func TestOnlyAStretchOfALongOutputIsInMemoryAndAllOfItCanBeReached(t *testing.T) {
	st, _, out := withOutput(t, 5000)
	if len(out.view.lines) > outputLines {
		t.Fatalf("%d lines in memory", len(out.view.lines))
	}
	seen := map[string]bool{}
	note := func() {
		for _, l := range out.view.lines {
			seen[l.Text] = true
		}
		if len(out.view.lines) > outputLines {
			t.Fatalf("%d lines in memory", len(out.view.lines))
		}
	}
	note()
	for out.from > 0 {
		from := out.from
		out.turn(-1)
		st.until("the stretch before", func() bool { return out.from < from })
		note()
	}
	if len(seen) != 5000 {
		t.Errorf("%d of 5000 lines could be reached", len(seen))
	}
	for !out.later.Hidden {
		from := out.from
		out.turn(1)
		st.until("the stretch behind", func() bool { return out.from > from })
	}
	if lastLine(out) != "line 5000" {
		t.Errorf("the last stretch ends with %q", lastLine(out))
	}
}

func TestALastLineThatGrowsIsShown(t *testing.T) {
	st, f, out := withOutput(t, 1)
	f.mu.Lock()
	f.lines[0].Text = []byte("line 1, and more")
	f.mu.Unlock()
	st.until("the longer line", func() bool { return lastLine(out) == "line 1, and more" })
}

func TestWhatALineLeavesOutIsSaid(t *testing.T) {
	st, f, out := withOutput(t, 1)
	f.mu.Lock()
	f.lines[0].Clipped = 5_000_000
	f.mu.Unlock()
	st.until("the note", func() bool { return strings.Contains(lastLine(out), "5000 kB of this line") })
}

func TestAMissingTranscriptOfAnEndedItemIsSaid(t *testing.T) {
	st := newStage(t)
	v := asDone(execItem(1, "make"))
	v.OutputPath = "gone"
	st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
	st.until("the words", func() bool { return st.shows("The output cannot be read: no such transcript") })
}

func TestACommandThatPrintedNothingHasNoTranscriptToMiss(t *testing.T) {
	st := newStage(t)
	v := asDone(execItem(1, "mkdir a"))
	v.OutputPath, v.Outcome.StdoutBytes = "never made", 0
	st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
	st.wgIdle()
	if st.window.queue.detail.out.reader != nil || st.shows("cannot be read") {
		t.Errorf("it is looked for: %q", st.texts())
	}
}

func TestOutputIsIndentedAndAlignedByTabs(t *testing.T) {
	st, f, _ := withOutput(t, 1)
	f.print(false, "\tok\t0.1s")
	st.until("the output", func() bool { return st.shows("⇥   ok⇥ 0.1s") })
}

func TestAnotherItemsOutputNeverAppearsUnderThisOne(t *testing.T) {
	st, f, out := withOutput(t, 10)
	st.put(waitingItems(execItem(2, "two")))
	st.window.queue.selectItem(2)
	f.print(false, "late")
	st.wgIdle()
	st.wgIdle()
	if len(out.view.lines) != 0 || st.shows("line 1") {
		t.Errorf("the output of another item is shown: %q", st.texts())
	}
}

func TestWhatWasReportedOfAReadIsShown(t *testing.T) {
	st := newStage(t)
	v := asDone(view(1, "read", map[string]any{"path": "README.md"}))
	v.OutputPath = "never made"
	v.Outcome.Head = "# Shop\nsells \x1b[1mthings"
	waits := view(2, "read", map[string]any{"path": "b"})
	waits.OutputPath = "never made"
	st.show(func(s *worker.Snapshot) { s.Waiting, s.Finished = []worker.View{waits}, []worker.View{v} })
	if st.shows("Reported, as far") || st.shows("cannot be read") {
		t.Errorf("an item that has not run has output: %q", st.texts())
	}
	st.window.queue.selectItem(1)
	if !st.shows("# Shop") || !st.shows("sells ‹ESC›[1mthings") {
		t.Errorf("what was read is not shown: %q", st.texts())
	}
}

func TestTheOutputOfAnInterruptedCommandIsShownAsFarAsItIsOnDisk(t *testing.T) {
	looked := make(chan struct{})
	st := newStage(t, func(o *Options) {
		open := o.OpenTranscript
		o.OpenTranscript = func(path string) (Transcript, error) {
			if path == "none" {
				close(looked)
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return open(path)
		}
	})
	st.files["out"] = &fakeTranscript{}
	st.files["out"].print(false, "so far it came")
	lost := func(id int, path string) worker.View {
		v := asDone(execItem(id, "make"))
		v.Execution, v.OutputPath = worker.Interrupted, path
		v.Outcome = &execute.Outcome{How: execute.Lost, Exit: 125, Reason: "interrupted"}
		v.Word = v.Hold.Status()
		return v
	}
	st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{lost(1, "out"), lost(2, "none")} })
	st.until("the output", func() bool { return st.shows("so far it came") })
	st.window.queue.selectItem(2)
	<-looked
	st.Close() // so that what it would say of that is here
	st.pump()
	if st.shows("The output cannot be read") || st.shows("so far it came") {
		t.Errorf("an interrupted command that printed nothing shows %q", st.texts())
	}
}
