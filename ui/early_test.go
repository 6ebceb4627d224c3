package ui

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
)

func TestADecisionThatComesTooEarlyIsAnsweredWithAWordAtTheButtons(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		const early = "A moment: read it first"
		st.Show()
		st.put(waitingItems(execItem(1, "one"), execItem(2, "two")))
		st.press(fyne.KeyReturn, ctrl) // at once
		st.didNothing()
		if !st.shows(early) {
			t.Fatalf("nothing says why nothing happened: %q", st.texts())
		}
		d := st.window.queue.detail
		pos := st.App.Driver().AbsolutePositionForObject
		if gap := pos(d.approve).Y - pos(d.early).Y - d.early.Size().Height; gap < 0 || gap > 20 {
			t.Errorf("the word is %.0f away from the buttons", gap)
		}
		st.pass(3 * time.Second)
		st.wgIdle()
		if st.shows(early) {
			t.Error("the word stays")
		}
		st.press(fyne.KeyReturn, ctrl)
		st.did("approve 1 digest1 by operator")
	})
}

func TestTheWordThatADecisionCameTooEarlyGoesWithTheDecision(t *testing.T) {
	st := newStage(t)
	st.Show()
	st.put(waitingItems(execItem(1, "one")))
	st.press(fyne.KeyReturn, ctrl)
	st.put(func(s *worker.Snapshot) { s.Waiting, s.Finished = nil, []worker.View{asDone(execItem(1, "one"))} })
	if st.shows("A moment") {
		t.Error("the word stays with what is done")
	}
}

func TestWhatIsRefusedNamesItsItem(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	st.desk.refuseApproval = worker.ErrDecided
	st.press(fyne.KeyReturn, ctrl)
	st.until("the words", func() bool { return st.shows("Exec #1: this item is already decided.") })
}

func TestNoSecondAnswerIsSentWhileTheFirstIsOnItsWay(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, "one"), execItem(2, "two")))
	under := make(chan struct{})
	end := sync.OnceFunc(func() { close(under) })
	t.Cleanup(end) // before the window waits for it
	st.window.queue.answer(execItem(1, "one"), func() error { <-under; return nil }, nil)
	st.press(fyne.KeyReturn, ctrl)
	st.didNothing()
	end()
	st.until("the answer", func() bool { return !st.window.queue.answering[1] })
	st.window.queue.answer(execItem(1, "one"), func() error { return errors.New("no") }, nil)
	st.until("a later answer", func() bool { return st.shows("Exec #1: no.") })
}

func TestXChangesWhatIsTriedOnlyWhereThatIsSelected(t *testing.T) {
	st, _ := newStageOfRules(t, inForce())
	r := st.window.rules
	kind := func() string { return r.try.kind.label }
	if kind() != "Kind: a command (X)" || r.try.kind.keys != "" {
		t.Errorf("the kind is given as %q %q", kind(), r.try.kind.keys)
	}
	for _, e := range r.entries {
		if e.what == aTitle || e.what == aTry {
			continue
		}
		r.selectEntry(e.id)
		st.press(fyne.KeyX, 0)
		if kind() != "Kind: a command (X)" {
			t.Errorf("X on %s makes it %q", e.id, kind())
		}
	}
	r.selectEntry(tryEntry)
	st.press(fyne.KeyX, 0)
	if kind() != "Kind: reading a file (X)" {
		t.Errorf("X on the tester makes it %q", kind())
	}
}

func TestARuleIsNotSaidToBeUnusedWhenOnlyItsCountIsNew(t *testing.T) {
	loaded := inForce()
	loaded.Counts = nil
	st, _ := newStageOfRules(t, loaded)
	all := strings.Join(st.texts(), "\n")
	if strings.Contains(all, "not used yet") || !strings.Contains(all, "no use since loaded") {
		t.Errorf("it is said in %q", all)
	}
}
