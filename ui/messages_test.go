package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"

	"countersign/worker"
)

// tellNow says something that no notification service took.
func (st *stage) tellNow(kind worker.EventKind, title, text string) {
	st.t.Helper()
	st.tell(kind, title, text)
	st.pump()
}

func TestAlarmsDoNotReplaceEachOther(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	st.tellNow(worker.EventLeaseLost, "Lease lost", "#4")
	st.tellNow(worker.EventSessionStopped, "Session stopped", "#3")
	st.tellNow(worker.EventUndelivered, "Result not delivered", "#2")
	for _, want := range []string{"Result not delivered. #2", "Session stopped. #3", "Lease lost. #4"} {
		if !st.shows(want) {
			t.Fatalf("%q is not shown in %q", want, st.texts())
		}
		test.Tap(st.window.messages.dismiss)
	}
	if st.window.messages.box().Visible() {
		t.Error("the banner stays though everything was dismissed")
	}
}

func TestTheBannerCountsWhatElseThereIsAndDismissesItAtOnce(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	st.tellNow(worker.EventLeaseLost, "Lease lost", "#1")
	if st.shows("more") || st.shows("Dismiss all") {
		t.Error("a single message is counted")
	}
	for n := range 3 {
		st.tellNow(worker.EventLeaseLost, "Lease lost", fmt.Sprintf("#%d", n+2))
	}
	if !st.shows("Lease lost. #4") || !st.shows("+3 more") {
		t.Errorf("the count is not shown: %q", st.texts())
	}
	test.Tap(st.window.messages.dismissAll)
	if st.window.messages.box().Visible() {
		t.Error("the banner stays")
	}
}

func TestTheBannerKeepsABoundedNumberOfMessages(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	for n := range 500 {
		st.tellNow(worker.EventLeaseLost, "Lease lost", fmt.Sprintf("#%d", n))
	}
	if n := len(st.window.messages.all); n != messagesKept {
		t.Errorf("%d messages are kept, want %d", n, messagesKept)
	}
	if !st.shows("Lease lost. #499") {
		t.Errorf("the newest is not shown: %q", st.texts())
	}
}

func TestWhatWaitsDoesNotReplaceAnAlarm(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	st.watched.Store(false)
	st.tellNow(worker.EventLeaseLost, "Lease lost", "#4")
	st.Banner("A word of welcome.")
	st.tellNow(worker.EventWaiting, "Waiting for you", "#5")
	st.tellNow(worker.EventWaiting, "Waiting for you", "#6")
	if !st.shows("Lease lost. #4") || !st.shows("+2 more") {
		t.Fatalf("the alarm is not in front, or what waits is said twice: %q", st.texts())
	}
	test.Tap(st.window.messages.dismiss)
	if !st.shows("Waiting for you. #6") {
		t.Errorf("the newest that waits is not next: %q", st.texts())
	}
}

func TestTheSameWordsAreSaidOnce(t *testing.T) {
	st := newStage(t)
	st.show(func(*worker.Snapshot) {})
	st.tellNow(worker.EventUnreachable, "Harness unreachable", "x")
	st.tellNow(worker.EventLeaseLost, "Lease lost", "#4")
	st.tellNow(worker.EventUnreachable, "Harness unreachable", "x")
	if !st.shows("Harness unreachable. x") || !st.shows("+1 more") {
		t.Errorf("%q", st.texts())
	}
}

func TestTroubleWithAConnectionNamesItWhenThereAreSeveral(t *testing.T) {
	n := &fakeNotifier{}
	st := newStage(t, func(o *Options) { o.Notifier = n; o.Now = time.Now })
	st.put(func(*worker.Snapshot) {})
	st.Happened(worker.Event{Kind: worker.EventCannotAccept, Connection: "demo", Text: "It cannot."})
	st.until("the notification", func() bool { return strings.HasSuffix(n.all(), "|It cannot.") })
	st.put(func(s *worker.Snapshot) {
		s.Connections = append(s.Connections, worker.ConnectionView{Name: "stage $(x)"})
	})
	st.Happened(worker.Event{Kind: worker.EventCredentials, Connection: "demo", Text: "Rejected."})
	st.Happened(worker.Event{Kind: worker.EventCredentials, Connection: "stage $(x)", Text: "Rejected."})
	st.Happened(worker.Event{Kind: worker.EventLeaseLost, Connection: "demo", Hold: 3, Text: "#3: lost."})
	st.until("the notifications", func() bool {
		return strings.Contains(n.all(), "Credentials rejected|Connection demo: Rejected.\nConnection stage___x_: Rejected.") &&
			strings.Contains(n.all(), "Lease lost|#3: lost.")
	})
}
