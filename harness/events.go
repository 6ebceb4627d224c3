package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxStreams   = 64               // event streams open at once
	streamBuffer = 256              // events that a slow reader may be behind
	keepAlive    = 15 * time.Second // a comment is sent this often, so that a dead reader is noticed
)

// hub tells waits and streams of changes. Publishing never blocks.
type hub struct {
	mu   sync.Mutex
	subs map[string]map[*subscription]bool // by topic
}

// subscription is one listener. Events that its buffer has no room for are lost,
// and lagged says so: a wait only needs to know that something changed.
type subscription struct {
	topic  string
	events chan Event
	lagged atomic.Bool
}

func newHub() *hub { return &hub{subs: map[string]map[*subscription]bool{}} }

func itemTopic(id string) string    { return "item " + id }
func sessionTopic(id string) string { return "session " + id }

func (b *hub) subscribe(topic string, buffer int) *subscription {
	s := &subscription{topic: topic, events: make(chan Event, buffer)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[topic] == nil {
		b.subs[topic] = map[*subscription]bool{}
	}
	b.subs[topic][s] = true
	return s
}

func (b *hub) unsubscribe(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs[s.topic], s)
	if len(b.subs[s.topic]) == 0 {
		delete(b.subs, s.topic)
	}
}

// publish tells the listeners of the event's session, and of its item.
func (b *hub) publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, topic := range []string{sessionTopic(e.SessionID), itemTopic(e.ItemID)} {
		for s := range b.subs[topic] {
			select {
			case s.events <- e:
			default:
				s.lagged.Store(true)
			}
		}
	}
}

func sessionEvent(s Session) Event {
	return Event{Type: EventSession, SessionID: s.ID, Status: s.Status}
}

// changed tells that an item was committed with this status.
func (h *Harness) changed(session, item, status string) {
	h.hub.publish(Event{Type: EventWorkItem, SessionID: session, ItemID: item, Status: status})
}

// handleEvents streams a session's changes as server-sent events, its status
// first, until the client leaves, falls too far behind, or the harness closes.
func (h *Harness) handleEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		h.refuse(w, r, unavailable("Too many event streams are open."))
		return
	}
	changes := h.hub.subscribe(sessionTopic(r.PathValue("id")), streamBuffer)
	defer h.hub.unsubscribe(changes)
	s, err := h.session(r.Context(), r.PathValue("id"))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := &stream{w: w, control: http.NewResponseController(w)}
	out.event(sessionEvent(s))
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for out.err == nil && !changes.lagged.Load() {
		select {
		case e := <-changes.events:
			out.event(e)
		case <-tick.C:
			out.send(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-h.stopping:
			return
		}
	}
}

// stream writes server-sent events and keeps the first error.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) event(e Event) {
	data, err := json.Marshal(e)
	if err != nil {
		s.err = err
		return
	}
	s.send(fmt.Sprintf("event: %s\ndata: %s\n\n", e.Type, data))
}

func (s *stream) send(text string) {
	// A reader that takes nothing for this long is gone. Not every ResponseWriter
	// has a deadline to move.
	_ = s.control.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}
