package ui

import (
	"testing"

	"fyne.io/fyne/v2"

	"countersign/worker"
)

func withdrawn(v worker.View) worker.View {
	v.Decision, v.Words, v.Closed, v.DecisionLeft = worker.Withdrawn, "the session stopped this work", true, 0
	v.Word = v.Hold.Status()
	return v
}

// over takes an item away from those that wait, and says how it ended where ended
// is true.
func over(v worker.View, ended bool) func(*worker.Snapshot) {
	return func(s *worker.Snapshot) {
		s.Waiting, s.Finished = []worker.View{execItem(2, "two")}, nil
		if ended {
			s.Finished = []worker.View{withdrawn(v)}
		}
	}
}

func TestADeclineOfWhatIsOverMeanwhileSaysHowItEnded(t *testing.T) {
	for _, refusal := range []error{worker.ErrNoHold, worker.ErrDecided} {
		st := newStage(t)
		st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
		st.press(fyne.KeyD, ctrl)
		st.desk.mu.Lock()
		st.desk.refuse = refusal
		over(execItem(1, "one"), true)(&st.desk.snap) // not drawn yet
		st.desk.mu.Unlock()
		st.press(fyne.KeyReturn, ctrl)
		st.until("the words", func() bool { return st.shows("Exec #1 is over: Withdrawn. Nothing ran.") })
		if st.shows("no item with this number") || st.shows("already decided") {
			t.Errorf("it is said too: %q", st.texts())
		}
	}
}

func TestADeclineOfWhatIsOverForLongLeadsToTheHistory(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyD, ctrl)
	st.desk.refuse = worker.ErrNoHold
	st.put(over(execItem(1, "one"), false))
	st.press(fyne.KeyReturn, ctrl)
	st.until("the words", func() bool { return st.shows("Exec #1 is over: the history tells how it ended.") })
}

func TestADialogSaysWhenItsItemIsOver(t *testing.T) {
	for name, key := range map[string]fyne.KeyName{"decline": fyne.KeyD, "edit": fyne.KeyE, "always": fyne.KeyL} {
		t.Run(name, func(t *testing.T) {
			st, _ := newStageWithRules(t)
			st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
			st.press(key, ctrl)
			if name == "always" {
				st.until("the rule", st.textIsThere)
			}
			st.wgIdle()
			if st.shows("is over") || name == "decline" && !st.shows("Nothing of exec #1 will run.") {
				t.Errorf("it waits, and the dialog says %q", st.texts())
			}
			st.put(over(execItem(1, "one"), true))
			if !st.shows("Exec #1 is over: Withdrawn. Nothing ran.") || st.shows("Nothing of exec #1 will run") {
				t.Errorf("it is over, and the dialog says %q", st.texts())
			}
			st.picture("over-" + name)
			if !st.window.sheets.open() {
				t.Error("the dialog is gone, and with it what was written")
			}
		})
	}
}

func TestADialogSaysWhenItsItemWasDecidedElsewhere(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.press(fyne.KeyD, ctrl)
	st.put(func(s *worker.Snapshot) {
		s.Waiting, s.Running = s.Waiting[1:], []worker.View{asRunning(execItem(1, "one"))}
	})
	if !st.shows("Exec #1 does not wait for you any more: Running.") {
		t.Errorf("the dialog says %q", st.texts())
	}
}
