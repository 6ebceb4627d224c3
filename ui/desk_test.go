package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// fakeDesk records intents.
type fakeDesk struct {
	mu        sync.Mutex
	snap      worker.Snapshot
	did       []string
	refuse    error
	snapshots int

	refuseApproval error
	grants         []policy.Grant
	previews       map[worker.HoldID]execute.Preview
	previewWaits   chan struct{} // nil, or what a preview waits for
}

func (d *fakeDesk) Snapshot() worker.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshots++
	s := d.snap
	s.Waiting, s.Running, s.Finished = slices.Clone(s.Waiting), slices.Clone(s.Running), slices.Clone(s.Finished)
	return s
}

func (d *fakeDesk) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, fmt.Sprintf(format, args...))
	return d.refuse
}

func (d *fakeDesk) intents() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.did)
}

func (d *fakeDesk) Approve(id worker.HoldID, digest, by string) error {
	if d.refuseApproval != nil {
		return d.refuseApproval
	}
	return d.note("approve %d %s by %s", id, digest, by)
}

func (d *fakeDesk) ApproveForSession(id worker.HoldID, digest, by string) error {
	return d.note("approve %d %s for the session by %s", id, digest, by)
}

func (d *fakeDesk) AllowReads(id worker.HoldID, digest, dir string, within time.Duration, by string) error {
	return d.note("allow reads under %s for %v with %d %s by %s", dir, within, id, digest, by)
}

func (d *fakeDesk) ApproveEdited(id worker.HoldID, digest string, payload json.RawMessage, by string) error {
	return d.note("approve %d %s as %s by %s", id, digest, payload, by)
}

func (d *fakeDesk) NarrowRule(id worker.HoldID) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("[[rule]]\nname = \"like #%d\"\n", id), d.refuse
}

func (d *fakeDesk) Preview(ctx context.Context, id worker.HoldID) (execute.Preview, error) {
	d.mu.Lock()
	p, wait := d.previews[id], d.previewWaits
	d.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	return p, nil
}

func (d *fakeDesk) Decline(id worker.HoldID, digest, words, by string) error {
	return d.note("decline %d %s %q by %s", id, digest, words, by)
}

func (d *fakeDesk) Release(id worker.HoldID) error { return d.note("release %d", id) }
func (d *fakeDesk) Stop(id worker.HoldID) error    { return d.note("stop %d", id) }
func (d *fakeDesk) StopEverything()                { d.note("stop everything") }

func (d *fakeDesk) Pause(until time.Time) {
	if until.IsZero() {
		d.note("pause")
	} else {
		d.note("pause until %s", until.Format(time.RFC3339))
	}
}

func (d *fakeDesk) Grants() []policy.Grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.grants)
}

func (d *fakeDesk) Revoke(grant string) error { return d.note("revoke %s", grant) }
func (d *fakeDesk) Resume()                   { d.note("resume") }
func (d *fakeDesk) Present()                  { d.note("present") }

func execItem(id int, command string) worker.View {
	return view(id, "exec", map[string]any{"command": command})
}

func view(id int, kind string, payload map[string]any) worker.View {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	h := worker.Hold{
		ID: worker.HoldID(id), Connection: "demo", WorkDir: "/work",
		Item:   worker.Item{ID: fmt.Sprintf("work_%d", id), SessionID: "sess_A", Kind: kind, Payload: data},
		Digest: fmt.Sprintf("digest%d", id),
		Facts: worker.Facts{
			Decision: worker.Undecided, Acceptance: worker.NotAsked,
			Execution: worker.NotStarted, Delivery: worker.NothingToDeliver,
		},
	}
	return worker.View{
		Hold: h, Word: h.Status(), Age: time.Minute, Lease: 40 * time.Second, LeaseWindow: time.Minute,
		DecisionLeft: 3 * time.Minute,
		Steps:        []worker.Entry{{Hold: h.ID, Step: worker.StepClaimed}},
	}
}

func asRunning(v worker.View) worker.View {
	v.Decision, v.Acceptance, v.Execution = worker.Approved, worker.Accepted, worker.Running
	v.Word, v.DecisionLeft = worker.WordRunning, 0
	return v
}

func asDone(v worker.View) worker.View {
	v = asRunning(v)
	v.Execution, v.Delivery = worker.Finished, worker.Delivered
	v.Outcome = &execute.Outcome{How: execute.Ended, StdoutBytes: 1}
	v.Word = v.Hold.Status()
	return v
}

func waitingItems(views ...worker.View) func(*worker.Snapshot) {
	return func(s *worker.Snapshot) { s.Waiting = views }
}

// fakeTranscript is a transcript in memory.
type fakeTranscript struct {
	mu    sync.Mutex
	lines []execute.Line
}

func (f *fakeTranscript) print(stderr bool, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range lines {
		f.lines = append(f.lines, execute.Line{Text: []byte(l), Stderr: stderr})
	}
}

func (f *fakeTranscript) Count() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lines), nil
}

func (f *fakeTranscript) Lines(from, n int) ([]execute.Line, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines[from : from+n]), nil
}

func (f *fakeTranscript) Close() error { return nil }

// fakeHistory is a history of holds numbered 1 to n.
type fakeHistory struct {
	mu      sync.Mutex
	n       int
	queries []worker.HistoryQuery
	block   chan struct{} // Find of "slow" waits for it
	kept    map[worker.HoldID]worker.Hold
}

func (h *fakeHistory) hold(id worker.HoldID) worker.Hold {
	if kept, ok := h.kept[id]; ok {
		return kept
	}
	v := asDone(execItem(int(id), fmt.Sprintf("echo item %d", id)))
	v.Closed = true
	return v.Hold
}

func (h *fakeHistory) Find(ctx context.Context, q worker.HistoryQuery) ([]worker.Hold, error) {
	h.mu.Lock()
	h.queries = append(h.queries, q)
	n, block := h.n, h.block
	h.mu.Unlock()
	if q.Text == "slow" {
		<-block
		return []worker.Hold{execItem(7, "echo the slow answer").Hold}, nil
	}
	if q.Text == "fast" {
		return []worker.Hold{execItem(8, "echo the fast answer").Hold}, nil
	}
	before := q.Before
	if before == 0 {
		before = worker.HoldID(n + 1)
	}
	var holds []worker.Hold
	for id := before - 1; id > 0 && len(holds) < q.Limit; id-- {
		holds = append(holds, h.hold(id))
	}
	return holds, nil
}

func (h *fakeHistory) asked() []worker.HistoryQuery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.queries)
}

func (h *fakeHistory) Count(context.Context, worker.HistoryQuery) (int, error) { return h.n, nil }

func (h *fakeHistory) Hold(_ context.Context, id worker.HoldID) (worker.Hold, error) {
	return h.hold(id), nil
}

func (h *fakeHistory) Entries(_ context.Context, id worker.HoldID) ([]worker.Entry, error) {
	return []worker.Entry{
		{Hold: id, Step: worker.StepClaimed},
		{Hold: id, Step: worker.StepDelivered, Facts: h.hold(id).Facts},
	}, nil
}
