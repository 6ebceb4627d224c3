// Package harness is the embedded harness: the server half of PROTOCOL.md, for
// a machine that has none, and for tests. It keeps sessions and their work items
// in SQLite, hands items out to workers under a lease, and tells whoever enqueued
// an item what became of it. It runs nothing itself.
package harness

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// DefaultLease is the window a claim is handed out for (PROTOCOL.md §1).
const DefaultLease = 60 * time.Second

// DefaultMaxBody bounds the request bodies that carry payloads and results, in
// bytes.
const DefaultMaxBody = 32 << 20

// Options configure a Harness. Only Path is required.
type Options struct {
	Path            string            // database file, made where it is missing
	Lease           time.Duration     // DefaultLease where zero
	APIKeys         []string          // any one of them opens every route; no key at all: no authentication
	APIKeyHashes    []string          // more of them, each as HashKey writes it
	EnvironmentKeys map[string]string // environment key to the environment it may claim for
	MaxBody         int64             // bytes; DefaultMaxBody where zero
	AnyHost         bool              // serve requests whose Host header is not this machine's loopback
	Generation      Generation        // Newest, unless an older harness is to be imitated
	Now             func() time.Time  // stamps and leases; time.Now where nil. Waits use the runtime's timers
	Log             *slog.Logger      // nil: no log
}

// Harness is an open harness. Its methods are safe for concurrent use.
type Harness struct {
	options  Options
	pools    pools
	ended    string // the terminal session statuses, as SQL text
	hub      *hub
	streams  chan struct{} // one token per open event stream
	stopping chan struct{} // closed once: waits and streams end
	stop     func()
}

// Open opens the database, brings its schema up to date, and returns a harness
// that serves nothing until its Handler is used. Close it.
func Open(ctx context.Context, o Options) (*Harness, error) {
	if o.Path == "" {
		return nil, errors.New("open harness: no database path")
	}
	if o.Lease < 0 || o.MaxBody < 0 {
		return nil, fmt.Errorf("open harness: lease %v and body limit %d must not be negative", o.Lease, o.MaxBody)
	}
	for _, hash := range o.APIKeyHashes {
		if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size {
			return nil, errors.New("open harness: the hash of an API key is not one")
		}
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p, err := openPools(ctx, o.Path)
	if err != nil {
		return nil, fmt.Errorf("open harness %s: %w", o.Path, err)
	}
	h := &Harness{
		options:  o,
		pools:    p,
		ended:    terminalSQL(),
		hub:      newHub(),
		streams:  make(chan struct{}, maxStreams),
		stopping: make(chan struct{}),
	}
	h.stop = sync.OnceFunc(func() { close(h.stopping) })
	return h, nil
}

// Close ends waits and event streams and closes the database. Requests that come
// later are answered 503.
func (h *Harness) Close() error {
	h.stop()
	return h.pools.close()
}

// Serve answers requests on l until ctx ends, then ends waits and streams, gives
// running requests a few seconds, and returns nil. A harness is served once.
func (h *Harness) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           h.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       2 * time.Minute,
		WriteTimeout:      2 * time.Minute, // waits and streams move it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(h.options.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve harness on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	h.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(grace) != nil {
		server.Close()
	}
	<-ended
	return nil
}

// Handler returns the harness's routes. It may be called in-process, without a
// listener.
func (h *Harness) Handler() http.Handler {
	mux := http.NewServeMux()
	h.workerRoutes(mux)
	h.sessionRoutes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.refuse(w, r, notFound("This harness has no route %s %s.", r.Method, r.URL.Path))
	})
	return h.guard(mux)
}

// now is the harness's clock as the database keeps it.
func (h *Harness) now() int64 { return h.options.Now().UnixMilli() }

// leaseFrom is the end of a lease that starts at now.
func (h *Harness) leaseFrom(now int64) int64 {
	return now + h.options.Generation.lease(h.options.Lease).Milliseconds()
}

// write runs fn in one transaction of the one writing connection. It is not ended
// by a client that hangs up: writes are short, and half of one helps nobody.
func (h *Harness) write(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	tx, err := h.pools.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}
