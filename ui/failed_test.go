package ui

import (
	"testing"

	"fyne.io/fyne/v2/theme"

	"countersign/worker"
	"countersign/worker/execute"
)

func TestWhatFailedHasNoTickThoughItsReportArrived(t *testing.T) {
	cases := []struct {
		word    string
		outcome execute.Outcome
	}{
		{"Reported · exit 3", execute.Outcome{How: execute.Ended, Exit: 3}},
		{"Reported · signal SIGSEGV", execute.Outcome{How: execute.Signalled, Signal: "SIGSEGV", Exit: 139}},
		{"Reported · not done", execute.Outcome{How: execute.FileFailed, Reason: "no such file"}},
		{worker.WordTimedOut, execute.Outcome{How: execute.TimedOut, Exit: 124}},
		{worker.WordCouldNotStart, execute.Outcome{How: execute.CouldNotStart, Exit: 127}},
	}
	var views []worker.View
	for i, c := range cases {
		v := asDone(execItem(i+1, "false"))
		v.Outcome = &c.outcome
		if c.outcome.How == execute.CouldNotStart {
			v.Execution = worker.CouldNotStart
		}
		v.Word = v.Hold.Status()
		views = append(views, v)
	}
	st := newStage(t)
	st.show(func(s *worker.Snapshot) { s.Finished = views })
	q := st.window.queue
	for i, c := range cases {
		id := worker.HoldID(i + 1)
		q.selectItem(id)
		inList, inHead := q.face(entry{finished, id}).word, q.detail.word
		if inHistory := newHistoryRow(views[i].Hold).status; inList != c.word || inHead.Text != c.word || inHistory != c.word {
			t.Errorf("%s: %q in the list, %q in the head, %q in the history; want %q",
				c.outcome.How, inList, inHead.Text, inHistory, c.word)
		}
		if icon, tone := statusIcon(inList); icon == theme.ConfirmIcon() || inHead.Color == colour(theme.ColorNameSuccess) {
			t.Errorf("%q has the picture of a success (%s)", inList, tone)
		}
	}
	if done := asDone(execItem(1, "true")); done.Hold.WithFailure(done.Word) != worker.WordReported {
		t.Error("what went well is said to have failed")
	}
}
