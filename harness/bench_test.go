package harness

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

// BenchmarkWholeLife is an item enqueued, waited for, claimed, accepted, renewed
// and completed over HTTP, 4 at once. It states items per second, and that an item
// costs six round trips.
func BenchmarkWholeLife(b *testing.B) {
	s := serve(b, Options{Now: time.Now})
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	b.Cleanup(transport.CloseIdleConnections)
	s.client = NewClient(s.url, "", &http.Client{Transport: transport})
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	b.ResetTimer()
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for left.Add(-1) >= 0 {
				s.live(transport)
			}
		}()
	}
	for range 4 {
		<-done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(6, "roundtrips/item")
}

// live sees one item through. Which one it gets does not matter: each finishes
// what it claimed, and waits for what it enqueued.
func (s *served) live(t http.RoundTripper) {
	c := s.client
	item, err := c.Enqueue(context.Background(), "sess_1", wire.KindExec, wire.Exec{Command: "true"})
	if err != nil {
		s.t.Error(err)
		return
	}
	var mine wire.Item
	steps := []func() error{
		func() error {
			return c.exchange(context.Background(), http.MethodPost, wire.ClaimPath, wire.ClaimRequest{WorkerID: "w"}, &mine)
		},
		func() error { return c.hold(wire.AcceptPath, mine.ID) },
		func() error { return c.hold(wire.HeartbeatPath, mine.ID) },
		func() error {
			report := wire.CompleteRequest{ID: mine.ID, WorkerID: "w", Result: json.RawMessage(`{"exitCode":0}`)}
			return c.exchange(context.Background(), http.MethodPost, wire.CompletePath, report, &wire.OK{})
		},
		func() error { _, err := c.Await(context.Background(), item.ID, time.Minute); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			s.t.Error(err)
			return
		}
	}
}

func (c *Client) hold(path, id string) error {
	return c.exchange(context.Background(), http.MethodPost, path, wire.HoldRequest{ID: id, WorkerID: "w"}, &wire.OK{})
}

// BenchmarkClaim is an item enqueued, claimed and completed, without HTTP, beside 0 and 100 000 finished
// items, and beside 10 000 that wait for another environment. The three must cost
// about the same.
func BenchmarkClaim(b *testing.B) {
	for name, history := range map[string]string{
		"empty":           ``,
		"100000 finished": `'env_a', 'applied', 1, 1, 1 FROM n WHERE i <= 100000`,
		"10000 elsewhere": `'env_b', 'queued', NULL, NULL, NULL FROM n WHERE i <= 10000`,
	} {
		b.Run(name, func(b *testing.B) {
			s := serve(b, Options{Now: time.Now})
			if history != "" {
				_, err := s.pools.writer.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 100000)
					INSERT INTO work_items (id, session_id, kind, created_at, payload, environment_id, status, claimed_at, lease_until, completed_at)
					SELECT 'work_' || i, 'sess_' || (i % 50), 'exec', i, '{}', ` + history)
				if err != nil {
					b.Fatal(err)
				}
			}
			s.makes("sess_a", "env_a")
			for b.Loop() {
				s.enqueueDirect(b)
				item, found, err := s.claim(context.Background(), "w", scope{environment: "env_a"})
				if err != nil || !found {
					b.Fatal(found, err)
				}
				if err := s.complete(context.Background(), item.ID, "w", json.RawMessage(`null`), false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func (s *served) enqueueDirect(b *testing.B) {
	if _, err := s.enqueue(context.Background(), "sess_a", Work{Kind: wire.KindExec}); err != nil {
		b.Fatal(err)
	}
}
