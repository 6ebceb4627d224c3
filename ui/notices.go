package ui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/worker"
)

// Events of one kind that come close together make one notification.
const (
	waitingPause = 2 * time.Second // a session that works asks again soon
	otherPause   = 500 * time.Millisecond
	namesInOne   = 5 // items that one notification names
)

// notices turns events into notifications. Their words are fixed, with counts
// and our own numbers: never a command, a path or anything an agent wrote, which
// some systems would run or cut off.
type notices struct {
	now  func() time.Time
	tell func(kind worker.EventKind, title, text string)
	in   chan worker.Event
}

// group is what is to be told of one kind of event.
type group struct {
	events []worker.Event
	due    time.Time
}

func newNotices(now func() time.Time, tell func(worker.EventKind, string, string)) *notices {
	return &notices{now: now, tell: tell, in: make(chan worker.Event, 256)}
}

// add takes an event. It never blocks: where hundreds are on their way already,
// one more would tell nothing new.
func (n *notices) add(e worker.Event) {
	if title(e.Kind) == "" {
		return
	}
	select {
	case n.in <- e:
	default:
	}
}

func (n *notices) run(ctx context.Context) {
	groups := map[worker.EventKind]*group{}
	for {
		var due <-chan time.Time
		if next, ok := earliest(groups); ok {
			due = time.After(next.Sub(n.now()))
		}
		select {
		case <-ctx.Done():
			return
		case e := <-n.in:
			n.gather(groups, e)
		case <-due:
			n.send(groups)
		}
	}
}

func (n *notices) gather(groups map[worker.EventKind]*group, e worker.Event) {
	g := groups[e.Kind]
	if g == nil {
		pause := otherPause
		if e.Kind == worker.EventWaiting {
			pause = waitingPause
		}
		g = &group{due: n.now().Add(pause)}
		groups[e.Kind] = g
	}
	g.events = append(g.events, e)
}

func (n *notices) send(groups map[worker.EventKind]*group) {
	for kind, g := range groups {
		if !g.due.After(n.now()) {
			delete(groups, kind)
			n.tell(kind, title(kind), noticeText(kind, g.events))
		}
	}
}

func earliest(groups map[worker.EventKind]*group) (time.Time, bool) {
	var first time.Time
	for _, g := range groups {
		if first.IsZero() || g.due.Before(first) {
			first = g.due
		}
	}
	return first, !first.IsZero()
}

// title heads a notification; "" for events that need nobody.
func title(kind worker.EventKind) string {
	switch kind {
	case worker.EventWaiting:
		return "Waiting for you"
	case worker.EventExpiring:
		return "A decision is due"
	case worker.EventAway:
		return "Nobody answered"
	case worker.EventLeaseLost:
		return "Lease lost"
	case worker.EventSessionStopped:
		return "Session stopped"
	case worker.EventUndelivered:
		return "Result not delivered"
	case worker.EventUnconfirmed:
		return "Start not confirmed"
	case worker.EventInterrupted:
		return "Interrupted"
	case worker.EventCredentials:
		return "Credentials rejected"
	case worker.EventUnreachable:
		return "Harness unreachable"
	case worker.EventReachable:
		return "Harness reachable again"
	case worker.EventClaimsRefused:
		return "Work refused"
	case worker.EventCannotAccept:
		return "Harness cannot accept"
	}
	return ""
}

// isAlarm tells the events that the tray shows until they have been looked at.
func isAlarm(kind worker.EventKind) bool {
	switch kind {
	case worker.EventLeaseLost, worker.EventSessionStopped, worker.EventUndelivered,
		worker.EventUnconfirmed, worker.EventInterrupted:
		return true
	}
	return false
}

func noticeText(kind worker.EventKind, events []worker.Event) string {
	if len(events) == 1 {
		return events[0].Text
	}
	if kind == worker.EventWaiting || kind == worker.EventExpiring {
		verb := " wait for you: "
		if kind == worker.EventExpiring {
			verb = " expire within a minute: "
		}
		return fmt.Sprintf("%d tool calls%s%s.", len(events), verb, numbers(events))
	}
	lines := make([]string, 0, len(events))
	for _, e := range events[:min(len(events), namesInOne)] {
		lines = append(lines, e.Text)
	}
	if more := len(events) - namesInOne; more > 0 {
		lines = append(lines, fmt.Sprintf("And %d more.", more))
	}
	return strings.Join(lines, "\n")
}

// numbers names the items of events, the first few.
func numbers(events []worker.Event) string {
	names := make([]string, 0, len(events))
	for _, e := range events[:min(len(events), namesInOne)] {
		names = append(names, fmt.Sprintf("#%d", e.Hold))
	}
	if more := len(events) - namesInOne; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

// plainName is a name with nothing in it that any desktop could take for more.
func plainName(name string) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".:_-", r) {
			return r
		}
		return '_'
	}
	name = strings.Map(plain, name)
	return name[:min(len(name), 40)]
}
