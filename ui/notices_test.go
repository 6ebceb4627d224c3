package ui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/worker"
)

type told struct {
	after time.Duration
	kind  worker.EventKind
	text  string
}

// tellAll feeds events to notices over a fake clock.
func tellAll(t *testing.T, during func(n *notices)) []told {
	t.Helper()
	var all []told
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := newNotices(time.Now, func(kind worker.EventKind, title, text string) {
			all = append(all, told{time.Since(start), kind, title + "|" + text})
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.run(ctx) }()
		during(n)
		time.Sleep(time.Minute)
		cancel()
		<-done
	})
	return all
}

func TestSeveralWaitingItemsMakeOneNotification(t *testing.T) {
	all := tellAll(t, func(n *notices) {
		for id := range 7 {
			n.add(worker.Event{Kind: worker.EventWaiting, Hold: worker.HoldID(id + 1), Text: "one"})
			time.Sleep(200 * time.Millisecond)
		}
	})
	want := "Waiting for you|7 tool calls wait for you: #1, #2, #3, #4, #5 and 2 more."
	if len(all) != 1 || all[0].text != want || all[0].after != waitingPause {
		t.Errorf("told %v, want once, after %v: %q", all, waitingPause, want)
	}
}

func TestItemsFarApartMakeANotificationEach(t *testing.T) {
	all := tellAll(t, func(n *notices) {
		for range 3 {
			n.add(worker.Event{Kind: worker.EventWaiting, Hold: 4, Text: "#4: a tool call waits for you."})
			time.Sleep(10 * time.Second)
		}
	})
	if len(all) != 3 || all[0].text != "Waiting for you|#4: a tool call waits for you." {
		t.Errorf("told %v, want three times", all)
	}
}

func TestALostLeaseNamesTheItemAndWhetherItRan(t *testing.T) {
	all := tellAll(t, func(n *notices) {
		n.add(worker.Event{Kind: worker.EventLeaseLost, Hold: 3, Text: "#3: the lease is lost. Nothing ran."})
		n.add(worker.Event{Kind: worker.EventLeaseLost, Hold: 4, Ran: true, Text: "#4: the lease is lost. The command keeps running."})
		n.add(worker.Event{Kind: worker.EventSessionStopped, Hold: 5, Text: "#5: the session stopped. Nothing ran."})
	})
	var texts []string
	for _, a := range all {
		texts = append(texts, a.text)
	}
	slices.Sort(texts)
	want := []string{
		"Lease lost|#3: the lease is lost. Nothing ran.\n#4: the lease is lost. The command keeps running.",
		"Session stopped|#5: the session stopped. Nothing ran.",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("told %q, want %q", texts, want)
	}
}

func TestWhatNeedsNobodyIsNotTold(t *testing.T) {
	all := tellAll(t, func(n *notices) {
		n.add(worker.Event{Kind: worker.EventFinished, Text: "x"})
		n.add(worker.Event{Kind: worker.EventLeaseAtRisk, Text: "x"})
	})
	if len(all) != 0 {
		t.Errorf("told %v", all)
	}
}

func TestAddNeverBlocks(t *testing.T) {
	n := newNotices(time.Now, nil)
	for range 10_000 { // nobody reads
		n.add(worker.Event{Kind: worker.EventWaiting})
	}
}

type fakeNotifier struct {
	mu   sync.Mutex
	said []string
	err  error
}

func (f *fakeNotifier) Notify(title, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, title+"|"+text)
	return f.err
}

func (f *fakeNotifier) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.said, "\n")
}

func TestWithoutANotificationServiceTheBannerSaysIt(t *testing.T) {
	n := &fakeNotifier{err: errors.New("no service")}
	st := newStage(t, func(o *Options) { o.Notifier = n })
	st.show(func(*worker.Snapshot) {})
	st.tell(worker.EventLeaseLost, "Lease lost", "#3: the lease is lost. Nothing ran.")
	st.pump()
	if !st.shows("Lease lost. #3: the lease is lost. Nothing ran.") {
		t.Errorf("the banner does not say it: %q", st.texts())
	}
}

func TestAnEventBecomesANotification(t *testing.T) {
	n := &fakeNotifier{}
	st := newStage(t, func(o *Options) { o.Notifier = n; o.Now = time.Now })
	st.Happened(worker.Event{Kind: worker.EventSessionStopped, Hold: 5, Text: "#5: the session stopped. Nothing ran."})
	st.until("the notification", func() bool {
		return n.all() == "Session stopped|#5: the session stopped. Nothing ran."
	})
}

func TestAnItemBeforeTheOperatorsEyesIsNotNotifiedOf(t *testing.T) {
	n := &fakeNotifier{}
	st := newStage(t, func(o *Options) { o.Notifier = n })
	st.show(func(*worker.Snapshot) {})
	st.tell(worker.EventWaiting, "Waiting for you", "#1")
	st.tell(worker.EventLeaseLost, "Lease lost", "#1")
	st.watched.Store(false)
	st.tell(worker.EventWaiting, "Waiting for you", "#2")
	if want := "Lease lost|#1\nWaiting for you|#2"; n.all() != want {
		t.Errorf("told %q, want %q", n.all(), want)
	}
}

func TestAHangingNotificationServiceCostsABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		b := NewBeeep()
		b.ready = func() bool { return true }
		b.send = func(string, string) error { <-hang; return nil }
		start := time.Now()
		if err := b.Notify("a", "b"); !errors.Is(err, errNotifyTimeout) {
			t.Errorf("error %v, want %v", err, errNotifyTimeout)
		}
		if d := time.Since(start); d != notifyLimit {
			t.Errorf("took %v, want %v", d, notifyLimit)
		}
		if err := b.Notify("a", "b"); !errors.Is(err, errNotifyTimeout) || time.Since(start) != notifyLimit {
			t.Error("a second call waited behind one that hangs")
		}
		close(hang)
		synctest.Wait()
		b.send = func(string, string) error { return nil }
		if err := b.Notify("a", "b"); err != nil {
			t.Errorf("after it answered: %v", err)
		}
	})
}

func TestWithoutASessionBusNoNotificationIsTried(t *testing.T) {
	b := NewBeeep()
	b.ready = func() bool { return false }
	b.send = func(string, string) error { t.Error("tried"); return nil }
	if err := b.Notify("a", "b"); !errors.Is(err, errNoNotifications) {
		t.Errorf("error %v, want %v", err, errNoNotifications)
	}
}
