package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// sizes are those that the window is looked at in: a small laptop's, and its own.
var sizes = []fyne.Size{fyne.NewSize(1024, 700), fyne.NewSize(1180, 760)}

// atSizes runs a test in a window of each size.
func atSizes(t *testing.T, test func(t *testing.T, st *stage)) {
	for _, s := range sizes {
		t.Run(fmt.Sprintf("%.0fx%.0f", s.Width, s.Height), func(t *testing.T) {
			st := newStage(t)
			st.window.win.Resize(s)
			test(t, st)
		})
	}
}

// named gives an item names as long as a harness's are.
func named(v worker.View) worker.View {
	v.Item.ID = fmt.Sprintf("work_01HZX3V9Q4T7YB2M8K5N6P0R%02d", v.ID)
	v.Item.SessionID = "sesn_01HZX3V9Q4T7YB2M8K5N6P0RSA"
	v.Environment = "env_01HZX3V9Q4T7YB2M8K5N6P0RSA"
	v.Digest = fmt.Sprintf("%08d%056d", v.ID, 0)
	v.WorkDir = "/home/somebody/projects/a-service/checkout"
	return v
}

func TestNothingThatIsKnownOfAnItemIsCutWhereThereIsRoom(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		withdrawn := named(execItem(4, "date"))
		withdrawn.Decision, withdrawn.Words = worker.Withdrawn, "not ours any more"
		withdrawn.Word = withdrawn.Hold.Status()
		failed := named(asDone(execItem(5, "make")))
		failed.Outcome.Exit = 2
		failed.OutputPath = "out"
		st.files["out"] = &fakeTranscript{}
		st.files["out"].print(false, strings.Split(strings.Repeat("a line\n", 60), "\n")...)
		st.show(func(s *worker.Snapshot) {
			s.Waiting = []worker.View{execItem(1, "date"), named(execItem(2, "date")), execItem(3, "date")}
			s.Finished = []worker.View{withdrawn, failed}
		})
		d := st.window.queue.detail
		for _, id := range []worker.HoldID{1, 2, 3, 2, 4, 1, 4, 5, 4, 2} {
			st.window.queue.selectItem(id)
			if id == 5 {
				st.until("the output", func() bool { return d.out.root.Visible() })
			}
			for _, o := range d.sheet.about {
				c := o.(*container.Scroll)
				if need := c.Content.MinSize().Height; c.Visible() && c.Content.Visible() && c.Size().Height < need {
					t.Errorf("item %d: %.0f of %.0f are to be seen", id, c.Size().Height, need)
				}
			}
			if got := d.facts.code.Text; got != policy.Code(d.view.Digest) {
				t.Errorf("item %d: the code is given as %q", id, got)
			}
			if w := d.facts.code.MinSize().Width; d.facts.code.Size().Width < w {
				t.Errorf("item %d: the code has %.0f of the %.0f that it needs", id, d.facts.code.Size().Width, w)
			}
		}
	})
}

func TestWhatIsAboveEachOtherEndsWithWholeRowsAndTheOutputHasMostOfIt(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		v := named(asDone(execItem(1, strings.Repeat("echo one two three; ", 40))))
		v = explained(t, v)
		v.OutputPath, v.Outcome = "out", &execute.Outcome{How: execute.Ended, StdoutBytes: 1}
		for _, s := range []worker.Step{worker.StepDecided, worker.StepAsking, worker.StepAccepted, worker.StepStarting,
			worker.StepFinished, worker.StepDelivering, worker.StepDelivered} {
			v.Steps = append(v.Steps, worker.Entry{Step: s, Facts: v.Facts})
		}
		st.files["out"] = &fakeTranscript{}
		st.files["out"].print(false, strings.Split(strings.Repeat("a line\n", 100), "\n")...)
		st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
		d := st.window.queue.detail
		st.until("the output", func() bool { return d.out.root.Visible() })
		st.pass(time.Second)
		st.wgIdle()
		shown := func(v *textView) float32 { return v.Size().Height / v.rowHeight() }
		for name, v := range map[string]*textView{"why": d.why, "command": d.doc, "steps": d.steps, "output": d.out.view} {
			if rows := shown(v); rows-floor(rows) > 0.2 || rows < 2 {
				t.Errorf("%s: %.2f rows are to be seen", name, rows)
			}
		}
		if !d.steps.atEnd() {
			t.Error("the last step is not to be seen")
		}
		if out, steps := shown(d.out.view), shown(d.steps); out < 2*steps || out < 7 {
			t.Errorf("%.1f rows of the output and %.1f of the steps are to be seen", out, steps)
		}
	})
}

func TestTheListOfKeysIsNotUnderItsScrollBar(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		st.show(waitingItems(execItem(1, "date")))
		st.press(fyne.KeyF1, 0)
		long := st.window.sheets.long
		at := func(o fyne.CanvasObject) float32 { return st.App.Driver().AbsolutePositionForObject(o).X }
		end, words := at(long)+long.Size().Width, float32(0)
		var keys []*widget.Label
		walk(long.Content, func(o fyne.CanvasObject) {
			l, ok := o.(*widget.Label)
			switch {
			case !ok:
			case l.TextStyle.Bold:
				keys = append(keys, l)
			default:
				words = at(l)
				if right := words + l.MinSize().Width; right > end-12 {
					t.Errorf("%q ends at %.0f, the bar at %.0f", l.Text, right, end)
				}
			}
		})
		for _, l := range keys {
			if right := at(l) + l.MinSize().Width; right > words-8 {
				t.Errorf("%q ends at %.0f, the words begin at %.0f", l.Text, right, words)
			}
		}
		if len(keys) == 0 {
			t.Error("no keys are listed")
		}
	})
}

func TestInASmallWindowNoWordsOfTheHeadLieOnOthers(t *testing.T) {
	for _, size := range append(sizes, fyne.NewSize(640, 480)) {
		st := newStage(t)
		st.window.win.Resize(size)
		st.show(func(s *worker.Snapshot) {
			s.Waiting = []worker.View{execItem(1, "date"), execItem(2, "date")}
			failed := asDone(execItem(3, "date"))
			failed.Outcome.Exit = 1
			s.Finished = []worker.View{failed}
		})
		st.window.queue.selectItem(3)
		d := st.window.queue.detail
		pos := st.App.Driver().AbsolutePositionForObject
		end := pos(d.word).X + d.word.MinSize().Width
		if at := pos(d.left); d.left.Text == "" || at.X < end && at.Y < pos(d.word).Y+d.word.MinSize().Height {
			t.Errorf("%v: %q at %v lies on %q, which ends at %.0f", size, d.left.Text, at, d.word.Text, end)
		}
		if bottom := pos(d.left).Y + d.left.MinSize().Height; bottom > pos(d.facts.box).Y+4 {
			t.Errorf("%v: %q ends at %.0f, the facts begin at %.0f", size, d.left.Text, bottom, pos(d.facts.box).Y)
		}
	}
}

func TestTheBarOfALeaseIsNamedWhereThereIsRoom(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		st.show(waitingItems(execItem(1, "date")))
		if !st.shows("lease") {
			t.Errorf("the bar has no name: %q", st.texts())
		}
	})
}

func TestWhatAShortOutputLeavesGoesToTheRest(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		v := explained(t, named(asDone(execItem(1, strings.Repeat("echo one two three; ", 20)))))
		v.Shown.Explanation.Parts = nil
		v.OutputPath = "out"
		st.files["out"] = &fakeTranscript{}
		st.files["out"].print(false, "one", "two")
		st.show(func(s *worker.Snapshot) { s.Finished = []worker.View{v} })
		d := st.window.queue.detail
		st.until("the output", func() bool { return d.out.root.Visible() })
		for name, v := range map[string]*textView{"why": d.why, "command": d.doc, "steps": d.steps, "output": d.out.view} {
			if v.Size().Height < v.fit()-1 {
				t.Errorf("%s: %.0f of %.0f are to be seen, and there is room", name, v.Size().Height, v.fit())
			}
		}
	})
}
