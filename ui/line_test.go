package ui

import (
	"slices"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
)

func asInLine(v worker.View) worker.View {
	v.Decision, v.DecidedBy, v.Word, v.DecisionLeft = worker.Approved, byOperator, worker.WordInLine, 0
	return v
}

// ofSession gives an item a session of its own, or one that it shares.
func ofSession(v worker.View, session string, asked time.Time) worker.View {
	v.Item.SessionID, v.Item.CreatedAt = session, asked
	return v
}

func TestWhatIsApprovedAndInLineDoesNotStandUnderWaitingForYou(t *testing.T) {
	st := newStage(t)
	st.show(func(s *worker.Snapshot) {
		s.Connections[0].MaxRunning = 2
		s.Waiting = []worker.View{asInLine(ofSession(execItem(3, "three"), "c", st.clock))}
		s.Running = []worker.View{asRunning(ofSession(execItem(1, "one"), "a", st.clock)), asRunning(ofSession(execItem(2, "two"), "b", st.clock))}
	})
	if st.shows("Waiting for you") || !st.shows("0 waiting · 1 in line · 2 running") {
		t.Errorf("nothing waits, and the window says %q", st.texts())
	}
	q := st.window.queue
	want := []entry{{section: inLine}, {inLine, 3}, {section: running}, {running, 1}, {running, 2}}
	if !slices.Equal(q.entries, want) {
		t.Errorf("the list is %v, want %v", q.entries, want)
	}
	q.selectItem(3)
	if !st.shows("In line: 2 items of this connection run, and no more than 2 may at once.") {
		t.Errorf("it is not said why it waits: %q", q.detail.outcome.Text)
	}
	st.picture("in-line")
	if q.detail.release.Hidden || q.detail.release.disabled {
		t.Error("it cannot be released")
	}
	st.press(fyne.KeyR, ctrl)
	st.did("release 3")
	st.put(func(s *worker.Snapshot) { s.Waiting = append(s.Waiting, execItem(4, "four")) })
	if e := q.entries; e[0].section != waiting || e[1].id != 4 || e[3].id != 3 {
		t.Errorf("what waits does not come first: %v", e)
	}
}

func TestWhyAnApprovedItemIsInLineIsSaid(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	third := asInLine(ofSession(execItem(3, "three"), "s", at.Add(time.Second)))
	for name, c := range map[string]struct {
		snap worker.Snapshot
		want string
	}{
		"the one before it runs": {
			worker.Snapshot{Running: []worker.View{asRunning(ofSession(execItem(4, "four"), "s", at))}},
			"In line: exec #4 of the same session comes before it.",
		},
		"the one before it waits": {
			worker.Snapshot{Waiting: []worker.View{ofSession(execItem(1, "one"), "s", at), third}},
			"In line: exec #1 of the same session comes before it, and waits for you.",
		},
		"the one behind it runs": {
			worker.Snapshot{Running: []worker.View{asRunning(ofSession(execItem(4, "four"), "s", at.Add(time.Minute)))}}, "",
		},
		"one of another connection runs": {
			worker.Snapshot{Running: []worker.View{elsewhere(asRunning(ofSession(execItem(1, "one"), "s", at)))},
				Connections: []worker.ConnectionView{{Name: "demo", MaxRunning: 1}}}, "",
		},
		"there is no place": {
			worker.Snapshot{Running: []worker.View{asRunning(ofSession(execItem(1, "one"), "t", at))},
				Connections: []worker.ConnectionView{{Name: "demo", MaxRunning: 1}}},
			"In line: 1 item of this connection runs, and no more than 1 may at once.",
		},
		"nothing is before it": {worker.Snapshot{Connections: []worker.ConnectionView{{Name: "demo", MaxRunning: 1}}}, ""},
	} {
		if got := lineWords(third, c.snap); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	third.Word = worker.WordPaused
	if got := lineWords(third, worker.Snapshot{Paused: true}); got != "In line: Countersign is paused." {
		t.Errorf("paused: %q", got)
	}
	if got := lineWords(asRunning(third), worker.Snapshot{}); got != "" {
		t.Errorf("it runs: %q", got)
	}
}

func elsewhere(v worker.View) worker.View {
	v.Connection = "other"
	return v
}

func TestThatSomethingWaitsIsNotDrawnWhenNothingDoesAnyMore(t *testing.T) {
	st := newStage(t)
	one := execItem(1, "one")
	st.show(func(s *worker.Snapshot) {
		s.Waiting, s.Finished = []worker.View{execItem(2, "two")}, []worker.View{asDone(one)}
	})
	st.window.queue.selectItem(1)
	if !st.shows("1 waiting – press N") {
		t.Fatalf("it is not pointed at what waits: %q", st.texts())
	}
	st.put(waitingItems())
	if st.shows("press N") {
		t.Errorf("nothing waits, and it says %q", st.texts())
	}
}
