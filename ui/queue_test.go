package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
)

func TestABurstOfItemsDoesNotMoveTheOneBeingRead(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Waiting = []worker.View{execItem(5, "five"), execItem(6, "six")}
		s.Finished = []worker.View{asDone(execItem(2, "two"))}
	})
	st.press(fyne.KeyJ, 0)
	for n := range 12 {
		st.put(func(s *worker.Snapshot) {
			s.Waiting = append([]worker.View{execItem(100+n, "an older one")}, s.Waiting...)
			s.Waiting = append(s.Waiting, execItem(200+n, "a newer one"))
			s.Running = append(s.Running, asRunning(execItem(300+n, "running")))
		})
		if st.window.queue.selected != 6 || st.window.queue.detail.view.ID != 6 {
			t.Fatalf("after %d bursts item %d is selected and %d shown, want 6",
				n+1, st.window.queue.selected, st.window.queue.detail.view.ID)
		}
	}
	q := st.window.queue
	if row := q.entries[q.index()]; row.id != 6 {
		t.Errorf("the marked row is item %d, want 6", row.id)
	}
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 6 digest6 by operator")
}

func TestAnItemThatLeavesIsFollowedByTheFirstThatWaits(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(5, "five"), execItem(6, "six"), execItem(7, "seven")))
	st.press(fyne.KeyJ, 0)
	st.put(waitingItems(execItem(5, "five"), execItem(7, "seven")))
	if st.window.queue.selected != 5 {
		t.Errorf("item %d is selected, want 5", st.window.queue.selected)
	}
	st.press(fyne.KeyReturn, ctrl) // at once: nobody can have read it
	st.didNothing()
}

func TestAnItemNobodyChoseGivesWayToTheFirstThatWaits(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{asDone(execItem(2, "two"))} })
	if st.window.queue.selected != 2 {
		t.Fatalf("item %d is selected, want 2", st.window.queue.selected)
	}
	st.put(waitingItems(execItem(3, "three")))
	if st.window.queue.selected != 3 {
		t.Errorf("item %d is selected, want 3", st.window.queue.selected)
	}
}

func TestARowShowsItsStatusSessionAgeAndCountdown(t *testing.T) {
	st := newStage(t)
	v := execItem(1, "make test")
	v.DecisionLeft = 72 * time.Second
	st.show(waitingItems(v))
	for _, want := range []string{"make test", worker.WordWaiting, "sess_A · 1 min", "1:12", "expires in 1:12"} {
		if !st.shows(want) {
			t.Errorf("%q is not shown in %q", want, st.texts())
		}
	}
}

func TestEveryAcceptStatusHasItsWordAndIcon(t *testing.T) {
	words := []string{
		worker.WordWaiting, worker.WordInLine, worker.WordPaused, worker.WordAsking, worker.WordAccepted,
		worker.WordRunning, worker.WordStopping, worker.WordAtRisk, worker.WordSessionStopped, worker.WordLapsed,
		worker.WordNotOurs, worker.WordUnknown, worker.WordRefused, worker.WordCannotAccept, worker.WordNotConfirmed,
		worker.WordDeclined, worker.WordExpired, worker.WordWithdrawn, worker.WordReleased, worker.WordReturned,
		worker.WordCouldNotStart, worker.WordTimedOut, worker.WordStopped, worker.WordDelivering,
		worker.WordReported, worker.WordNotRecorded, worker.WordUnconfirmed, worker.WordUndelivered,
		worker.WordInterrupted,
	}
	st := newStage(t)
	for i, w := range words {
		v := execItem(i+1, "true")
		v.Word = w
		st.show(waitingItems(v))
		if !st.shows(w) {
			t.Errorf("%q is not shown", w)
		}
		if icon, _ := statusIcon(w); icon == nil {
			t.Errorf("%q has no icon", w)
		}
	}
}

// hostile is text that would hide, colour, move or end what is drawn.
const hostile = "ls\x1b[2K\x1b[1Acat\u202Eexe.gnp\u202C\u200B\u2028x\r\x00\u2066 ‹ESC›"

func TestWhatAnAgentWroteIsDrawnAsMarksAndNeverAsItIs(t *testing.T) {
	st := newStage(t)
	st.files["out"] = &fakeTranscript{}
	st.files["out"].print(true, hostile)
	v := asRunning(view(1, "exec", map[string]any{
		"command": strings.ReplaceAll(hostile, "\x00", ""), "cwd": "a\u202Eb", "env": map[string]any{"A\u200B": "\x1b[31m"},
	}))
	v.Item.SessionID = hostile
	v.OutputPath = "out"
	v.Words = hostile
	v.Steps = []worker.Entry{{Step: worker.StepDecided, Reason: hostile, Facts: worker.Facts{DecidedBy: hostile}}}
	w := view(2, "write", map[string]any{"path": "x\u202Ey", "content": hostile})
	unknown := view(3, "\x1b]0;kind\x07", map[string]any{})
	broken := view(4, "exec", nil)
	broken.Item.Payload = []byte("{\"command\": \"\x1b[31m\u202E")
	st.show(func(s *worker.Snapshot) {
		s.Running, s.Waiting = []worker.View{v}, []worker.View{w, unknown, broken}
		s.Connections[0].Environment = hostile
		s.Connections[0].State, s.Connections[0].Detail = worker.CannotAccept, hostile
	})
	for _, id := range []worker.HoldID{2, 3, 4, 1} {
		st.window.queue.selectItem(id)
		if id == 1 {
			st.until("the output", func() bool { return len(st.window.queue.detail.out.view.lines) > 0 })
		}
		st.put(func(*worker.Snapshot) {})
		for _, text := range st.texts() {
			if i := strings.IndexFunc(text, forbidden); i >= 0 {
				t.Errorf("item %d: %q is drawn as it is", id, text)
			}
		}
	}
	if !st.shows("ls‹ESC›[2K‹ESC›[1Acat‹U+202E›exe.gnp") {
		t.Errorf("the marks are not shown: %q", st.texts())
	}
}

func forbidden(r rune) bool {
	return r < ' ' && r != '\n' || r == 0x7f || r >= 0x200B && r <= 0x200F || r >= 0x2028 && r <= 0x202E ||
		r >= 0x2066 && r <= 0x2069
}

func TestTheDecisionViewShowsTheCommandWholeAndWhatBelongsToIt(t *testing.T) {
	st := newStage(t)
	long := strings.Repeat("0123456789", 400)
	v := view(1, "exec", map[string]any{
		"command": "first line\n" + long + "\nlast line", "cwd": "services/api",
		"env": map[string]any{"CI": "1"}, "timeout": 600000,
	})
	st.show(waitingItems(v))
	doc := st.window.queue.detail.doc
	var all strings.Builder
	for _, l := range doc.lines {
		all.WriteString(l.Text + "\n")
	}
	for _, want := range []string{"first line\n" + long + "\nlast line\n", "In directory\nservices/api\n", "Environment additions\nCI=1\n"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%.60q… is not in what is shown", want)
		}
	}
	for _, want := range []string{"/work", "10 minutes", "digest1", "sess_A"} {
		if !st.shows(want) {
			t.Errorf("%q is not shown", want)
		}
	}
}

func TestApproveSaysHowManyLinesWereNotSeenAndTheJournalIsTold(t *testing.T) {
	st := newStage(t)
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "step %d\n", i)
	}
	st.show(waitingItems(execItem(1, b.String()+"end")))
	d := st.window.queue.detail
	if !strings.HasPrefix(d.approve.label, "Approve with ") || d.doc.unseen() < 200 {
		t.Fatalf("label %q with %d rows unseen", d.approve.label, d.doc.unseen())
	}
	for range 40 {
		st.press(fyne.KeyPageDown, 0)
	}
	if d.approve.label != "Approve" {
		t.Errorf("after all was scrolled through: %q", d.approve.label)
	}
	st.put(waitingItems(execItem(2, b.String())))
	st.pass(time.Second)
	n := d.doc.unseen()
	st.press(fyne.KeyReturn, ctrl)
	st.did(fmt.Sprintf("approve 2 digest2 by operator, %d rows unseen", n))
}

func TestLinesScrolledThroughOutOfSightAreNotSeen(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, strings.Repeat("x\n", 300))))
	before := st.window.queue.detail.doc.unseen()
	st.press(fyne.Key2, ctrl)
	st.window.queue.detail.doc.page(1 << 20)
	st.wgIdle()
	if n := st.window.queue.detail.doc.unseen(); n != before {
		t.Errorf("%d rows unseen, %d before the place was left", n, before)
	}
}

func TestButtonsFollowTheState(t *testing.T) {
	inLine := execItem(3, "three")
	inLine.Decision, inLine.Word, inLine.DecisionLeft = worker.Approved, worker.WordInLine, 0
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Waiting = []worker.View{execItem(1, "one"), inLine}
		s.Running = []worker.View{asRunning(execItem(2, "two"))}
		s.Finished = []worker.View{asDone(execItem(4, "four"))}
	})
	d := st.window.queue.detail
	for _, c := range []struct {
		id                              worker.HoldID
		approve, decline, release, stop bool
	}{
		{1, true, true, true, false}, {3, false, false, true, false}, {2, false, false, false, true}, {4, false, false, false, false},
	} {
		st.window.queue.selectItem(c.id)
		got := [...]bool{!d.approve.disabled, !d.decline.disabled, !d.release.disabled, !d.stop.disabled}
		if want := [...]bool{c.approve, c.decline, c.release, c.stop}; got != want {
			t.Errorf("item %d: approve, decline, release, stop = %v, want %v", c.id, got, want)
		}
		for _, b := range []*button{d.session, d.editing, d.marking} {
			if b.Visible() != c.approve {
				t.Errorf("item %d: %q is there: %v", c.id, b.label, b.Visible())
			}
		}
	}
}

func TestTheWindowSaysWhyNothingCanCome(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Connections[0].State = worker.CannotAccept
		s.Connections[0].Detail = "This harness cannot accept a start, so nothing is claimed."
		s.ApproveAll = true
		s.Away = true
	})
	for _, want := range []string{"This harness cannot accept a start", "approved without asking", "Nobody answered twice", "cannot accept"} {
		if !st.shows(want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if title := st.window.win.Title(); !strings.Contains(title, "approving everything") {
		t.Errorf("the title %q does not say that everything is approved", title)
	}
	st.press(fyne.KeyK, 0)
	st.did("present")
}

func TestPauseIsSwitchedBackAndForth(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	test.Tap(st.window.pause)
	st.did("pause")
	st.put(func(s *worker.Snapshot) { s.Paused = true })
	if st.window.pause.label != "Resume" || !st.shows("Paused · 0 waiting") || !strings.Contains(st.window.win.Title(), "paused") {
		t.Errorf("the window does not say that it is paused: %q", st.texts())
	}
	test.Tap(st.window.pause)
	st.did("resume")
	test.Tap(st.window.stopAll)
	st.did("stop everything")
}

func TestCopyTakesTheCommandByteForByte(t *testing.T) {
	st := newStage(t)
	command := "printf '\u202Ex\t‹ESC›'\n"
	st.show(waitingItems(execItem(1, command)))
	st.press(fyne.KeyC, ctrlShift)
	if got := st.App.Clipboard().Content(); got != command {
		t.Errorf("copied %q, want %q", got, command)
	}
}

func TestTheWindowIsDrawn(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "go test ./...")))
	img := st.window.win.Canvas().Capture()
	if b := img.Bounds(); b.Dx() < 1000 || b.Dy() < 600 {
		t.Fatalf("the picture is %v", b)
	}
	seen := map[uint32]bool{}
	for x := range 1000 {
		r, _, _, _ := img.At(x, 90).RGBA()
		seen[r] = true
	}
	if len(seen) < 3 {
		t.Error("nothing is drawn")
	}
}

func TestButtonsLeaveOutTheirKeysBeforeOneIsCutOff(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	d := st.window.queue.detail
	row := d.box.Objects[0].(*fyne.Container)
	for _, width := range []float32{700, 420} {
		row.Resize(fyne.NewSize(width, 40))
		if end := d.release.Position().X + d.release.Size().Width; end > width {
			t.Errorf("in %.0f the row ends at %.0f", width, end)
		}
		if d.approve.short != (width == 420) {
			t.Errorf("in %.0f the keys are left out: %v", width, d.approve.short)
		}
	}
}

func TestANewItemIsPointedAtWhileADecidedOneIsShown(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one")))
	if st.shows("press N") {
		t.Error("it points at the item that is shown")
	}
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 1 digest1 by operator")
	st.put(func(s *worker.Snapshot) { s.Waiting, s.Finished = nil, []worker.View{asDone(execItem(1, "one"))} })
	st.put(waitingItems(execItem(2, "two"), execItem(3, "three")))
	if st.window.queue.detail.view.ID != 1 || !st.shows("2 waiting – press N") {
		t.Fatalf("item %d is shown: %q", st.window.queue.detail.view.ID, st.texts())
	}
	st.press(fyne.KeyN, 0)
	if st.window.queue.detail.view.ID != 2 || st.shows("press N") {
		t.Errorf("item %d is shown: %q", st.window.queue.detail.view.ID, st.texts())
	}
}

func TestTheButtonsStayInALowWindow(t *testing.T) {
	st := newStage(t)
	for n := range 3 {
		st.tellNow(worker.EventLeaseLost, "Lease lost", fmt.Sprintf("#%d: the lease is lost.", n))
	}
	st.show(waitingItems(execItem(1, strings.Repeat("make\n", 50))))
	if m := st.window.win.Content().MinSize(); m.Height > 500 || m.Width > 800 {
		t.Errorf("the window needs %v", m)
	}
	st.window.win.Resize(fyne.NewSize(800, 500))
	st.wgIdle()
	d := st.window.queue.detail
	b := st.App.Driver().AbsolutePositionForObject(d.approve)
	if end := b.Y + d.approve.Size().Height; end > 500 {
		t.Errorf("the buttons end at %.0f of 500", end)
	}
	doc := st.App.Driver().AbsolutePositionForObject(d.doc)
	if d.doc.Size().Height < 40 || doc.Y+d.doc.Size().Height > b.Y {
		t.Errorf("the command has %.0f from %.0f on, the buttons begin at %.0f", d.doc.Size().Height, doc.Y, b.Y)
	}
}

func TestWhatDoesNotChangeIsNotDrawnAgain(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		v := execItem(1, "one")
		v.DecisionLeft, v.LeaseWindow, v.Lease, v.Age = 9*time.Minute+30*time.Second, 5*time.Minute, 4*time.Minute+5*time.Second, 30*time.Second
		s.Waiting, s.Finished = []worker.View{v}, []worker.View{asDone(execItem(2, "two"))}
	})
	st.wgIdle()
	updates, list := 0, st.window.queue.list
	update := list.UpdateItem
	list.UpdateItem = func(i int, o fyne.CanvasObject) { updates++; update(i, o) }
	before := st.texts()
	st.put(func(s *worker.Snapshot) {
		s.Waiting[0].DecisionLeft -= time.Second
		s.Waiting[0].Lease -= time.Second
		s.Waiting[0].Age += time.Second
	})
	if after := st.texts(); updates > 0 || !slices.Equal(before, after) {
		t.Errorf("a second later %d rows were drawn again, and %q became %q", updates, before, after)
	}
	st.put(func(s *worker.Snapshot) { s.Waiting[0].DecisionLeft = 72 * time.Second })
	if !st.shows("expires in 1:12") || !st.shows("1:12") {
		t.Errorf("the countdown stands still: %q", st.texts())
	}
}
