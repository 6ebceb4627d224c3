package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// proxy stands between a worker and its harness and does to their talk what
// networks do.
type proxy struct {
	harness string // its origin
	lease   time.Duration
	server  *http.Server
	on      net.Listener
	through *http.Client

	mu      sync.Mutex
	chance  *rand.Rand
	bad     bool
	outages time.Time // the next one begins
	back    time.Time // it ends
	faults  map[fault]int
	asked   chan struct{} // closed by the next request
}

// fault is what happens to one request.
type fault string

const (
	none        fault = ""
	dropBefore  fault = "dropped before"
	dropAfter   fault = "dropped after"
	delayBefore fault = "delayed before"
	delayAfter  fault = "delayed after"
	unavailable fault = "503"
	garbage     fault = "garbage"
	swallowed   fault = "swallowed" // no answer until the worker gives up
	outage      fault = "outage"
)

// often is how many of a thousand requests each fault gets.
var often = []struct {
	fault
	of1000 int
}{
	{dropBefore, 25}, {dropAfter, 25}, {delayBefore, 25}, {delayAfter, 25}, {unavailable, 15}, {garbage, 15}, {swallowed, 1},
}

func newProxy(harness string, chance *rand.Rand, lease time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{harness: harness, lease: lease, on: l, chance: chance, faults: map[fault]int{}, asked: make(chan struct{})}
	p.through = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(l)
	return p, nil
}

func (p *proxy) origin() string { return "http://" + p.on.Addr().String() }

func (p *proxy) Close() {
	_ = p.server.Close()
	p.through.CloseIdleConnections()
}

func (p *proxy) misbehave(bad bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = bad
	p.outages = time.Now().Add(p.lease)
}

// nextRequest is closed when the next request comes.
func (p *proxy) nextRequest() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// next decides what happens to a request, and for how long where it is delayed.
func (p *proxy) next() (f fault, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.asked)
	p.asked = make(chan struct{})
	if !p.bad {
		return none, 0
	}
	now := time.Now()
	if now.After(p.outages) { // up to one and a half leases
		p.back = now.Add(time.Duration(p.chance.Float64() * 1.5 * float64(p.lease)))
		p.outages = p.back.Add(time.Duration(p.chance.ExpFloat64() * 5 * float64(p.lease)))
	}
	defer func() { p.faults[f]++ }()
	if now.Before(p.back) {
		return outage, 0
	}
	d = time.Duration(p.chance.Int64N(int64(400 * time.Millisecond)))
	roll := p.chance.IntN(1000)
	for _, o := range often {
		if roll -= o.of1000; roll < 0 {
			return o.fault, d
		}
	}
	return none, 0
}

// suffered is how often each fault happened.
func (p *proxy) suffered() map[fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[fault]int{}
	for f, n := range p.faults {
		if f != none {
			counts[f] = n
		}
	}
	return counts
}

// ServeHTTP passes one request on, or does not.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, d := p.next()
	p.serve(w, r, f, d)
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request, f fault, d time.Duration) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch f {
	case dropBefore, outage:
		hangUp(w)
		return
	case swallowed:
		<-r.Context().Done()
		return
	case delayBefore:
		time.Sleep(d)
	case unavailable:
		http.Error(w, "upstream is down", http.StatusServiceUnavailable)
		return
	case garbage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><title>Sign in to the network</title></html>")
		return
	}
	p.pass(w, r, body, func() bool {
		if f == delayAfter {
			time.Sleep(d)
		}
		return f != dropAfter
	})
}

// pass asks the harness, whatever the worker does meanwhile, and hands its answer
// back where it may.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, mayAnswer func() bool) {
	ask, err := http.NewRequest(r.Method, p.harness+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		http.Error(w, "bad request", http.StatusBadGateway)
		return
	}
	ask.Header = r.Header.Clone()
	answer, err := p.through.Do(ask)
	if err != nil {
		http.Error(w, "upstream is down", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || !mayAnswer() {
		hangUp(w)
		return
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(content)
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if c, _, err := h.Hijack(); err == nil {
			_ = c.Close()
		}
	}
}
