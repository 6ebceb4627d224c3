package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

// fault is what happens to one request on its way, or to its answer.
type fault struct {
	kind  string
	route string // "": any
	d     time.Duration
}

var faults = []string{
	"refused",       // no connection
	"lost request",  // no answer, and it never arrived
	"lost answer",   // it arrived, and no answer came
	"broken answer", // it arrived, and the connection broke
	"slow request",  // it arrives late; nothing does once the worker gave up
	"slow answer",   // it arrives at once, its answer late
	"late request",  // it arrives whatever the worker does meanwhile
	"503", "502 after",
	"page", "page after", // a proxy's, instead of the answer
	"401", "404",
	"replay", // a claim is answered with what was handed out before
	"altered",
}

// altered is what an untrue claim answer has behind the command.
const altered = " altered"

var errLink = errors.New("connection reset")

func (m *machine) fails(f fault, requests int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range requests {
		m.faults = append(m.faults, f)
	}
}

func (m *machine) heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults, m.badDisk, m.slowDisk = nil, 0, 0
}

// nextFault is what happens to a request, used up.
func (m *machine) nextFault(path string) (f fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, f := range m.faults {
		if strings.HasSuffix(path, f.route) {
			m.faults = slices.Delete(m.faults, i, i+1)
			return f
		}
	}
	return fault{}
}

// RoundTrip makes a life the transport of its own requests.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if !l.reaches("before a request") {
		return nil, errKilled
	}
	m, path, sent := l.m, r.URL.Path, l.m.w.clock.Boot()
	var request wire.CompleteRequest
	_ = json.Unmarshal(body, &request)
	if path == wire.CompletePath {
		m.checkReport(request)
	}
	f := m.nextFault(path)
	if f.kind != "" {
		m.w.note("%s: %s %s: %s %v", m.name, path, request.ID, f.kind, f.d)
	}
	status, answer, err := m.carry(r.Context(), f, path, body)
	if !l.reaches("after an answer") {
		return nil, errKilled
	}
	if err != nil {
		return nil, err
	}
	m.heard(path, request.ID, status, answer, sent)
	if path == wire.CompletePath && status == http.StatusNotFound {
		m.w.settled(request.ID, m.name, status)
	}
	contentType := "application/json"
	if strings.HasPrefix(string(answer), "<") {
		contentType = "text/html"
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(bytes.NewReader(answer)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

const page = "<html>sign in</html>"

// carry brings a request to the harness and its answer back, as the fault lets it.
func (m *machine) carry(ctx context.Context, f fault, path string, body []byte) (status int, answer []byte, err error) {
	w := m.w
	givenUp := func() (int, []byte, error) { <-ctx.Done(); return 0, nil, ctx.Err() }
	switch f.kind {
	case "refused":
		return 0, nil, errLink
	case "lost request":
		return givenUp()
	case "late request":
		w.late.Go(func() { time.Sleep(f.d); w.serve(path, body) })
		return givenUp()
	case "slow request":
		if !sleepIn(ctx, f.d) {
			return 0, nil, ctx.Err()
		}
	case "503":
		return http.StatusServiceUnavailable, []byte(`{"error":{"type":"unavailable","message":"later"}}`), nil
	case "401":
		return http.StatusUnauthorized, []byte(`{"error":{"type":"auth","message":"no"}}`), nil
	case "404": // of a gateway that speaks JSON
		return http.StatusNotFound, []byte(`{"error":{"type":"not_found","message":"no such service"}}`), nil
	case "page":
		return http.StatusOK, []byte(page), nil
	case "replay":
		if again := m.lastClaimed(f.d); path == wire.ClaimPath && again != nil {
			return http.StatusOK, again, nil
		}
	}
	status, answer = w.serve(path, body)
	switch f.kind {
	case "lost answer":
		return givenUp()
	case "broken answer":
		return 0, nil, errLink
	case "slow answer":
		if !sleepIn(ctx, f.d) {
			return 0, nil, ctx.Err()
		}
	case "502 after":
		return http.StatusBadGateway, []byte(page), nil
	case "page after":
		return http.StatusOK, []byte(page), nil
	case "altered":
		if path == wire.ClaimPath {
			answer = bytes.Replace(answer, []byte(`"}`), []byte(altered+`"}`), 1)
		}
	}
	return status, answer, nil
}

// lastClaimed is the answer to an earlier claim, or nil.
func (m *machine) lastClaimed(which time.Duration) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.claimed) == 0 {
		return nil
	}
	return m.claimed[int(which.Seconds())%len(m.claimed)]
}

// checkReport sees that a completion that is sent is honest, and that an outcome
// that was written down is reported as it was.
func (m *machine) checkReport(c wire.CompleteRequest) {
	it := m.w.item(c.ID)
	if it == nil {
		m.w.breach("%s reports %q, which nobody enqueued", m.name, c.ID)
		return
	}
	m.w.checkHonest(it, m.name, c)
	last, known, err := m.store.Last(context.Background(), origin, c.ID)
	if err != nil || !known {
		m.w.breach("%s reports %s, which its journal does not know: %v", m.name, c.ID, err)
	}
	if last.Outcome != nil && !isOfOtherWork(c.Result) && string(last.Outcome.Result) != string(c.Result) {
		m.w.breach("%s reports %s of %s; the journal has %s", m.name, clip(c.Result), c.ID, clip(last.Outcome.Result))
	}
}

// sleepIn is a sleep that ends early with the context.
func sleepIn(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
