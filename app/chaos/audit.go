package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"countersign/harness"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
)

// Figures are what became of the items.
type Figures struct {
	Seed    uint64
	Took    time.Duration
	Items   int
	Kills   int
	Holds   int
	Refused int // starts of the worker, by the lock of the one killed before

	Starts      int // items that the journal knows as started
	Effects     int // items that left a mark
	Interrupted int // started, and the worker was killed before it knew the end
	Delivered   int
	Unconfirmed int // of deliveries: an earlier try may have been recorded
	NotRecorded int // refused by the harness
	Undelivered int
	Lapsed      int // interrupted and left to become unknown

	Recorded int // by the harness, with a result
	Unknown  int // to the harness: work_outcome_unknown
	Other    int // any other end at the harness

	Duplicates []string // more than one mark, or started by more than one hold
	Losses     []string // an outcome in the journal, and no end of its delivery; or an open hold
	Untrue     []string // what was reported, recorded or journalled is not what happened

	Faults map[fault]int
}

// String is a table, one figure a line.
func (f Figures) String() string {
	var b strings.Builder
	for _, line := range []struct {
		name  string
		value any
	}{
		{"seed", f.Seed}, {"took", f.Took.Round(time.Millisecond)}, {"kills", f.Kills}, {"refused starts", f.Refused}, {"items", f.Items}, {"holds", f.Holds},
		{"starts", f.Starts}, {"effects", f.Effects}, {"interrupted", f.Interrupted},
		{"delivered", f.Delivered}, {"delivery unconfirmed", f.Unconfirmed}, {"not recorded", f.NotRecorded},
		{"undelivered", f.Undelivered}, {"left to lapse", f.Lapsed},
		{"harness: results", f.Recorded}, {"harness: unknown", f.Unknown}, {"harness: other", f.Other},
		{"duplicates", len(f.Duplicates)}, {"losses", len(f.Losses)}, {"untrue", len(f.Untrue)}, {"faults", fmt.Sprint(f.Faults)},
	} {
		fmt.Fprintf(&b, "%-21s %v\n", line.name, line.value)
	}
	return b.String()
}

// Breach is nil where nothing ran twice, nothing was lost and nothing untrue told.
func (f Figures) Breach() error {
	var all []error
	for what, names := range map[string][]string{"ran twice": f.Duplicates, "lost": f.Losses, "untrue": f.Untrue} {
		if len(names) > 0 {
			all = append(all, fmt.Errorf("%s: %s", what, strings.Join(names, "; ")))
		}
	}
	return errors.Join(all...)
}

// audit compares what the files, the journal and the harness say of each item.
func (p *place) audit(ctx context.Context, took time.Duration) (Figures, error) {
	f := Figures{Seed: p.Seed, Took: took, Items: p.Items, Kills: p.kills, Refused: p.refused, Faults: p.proxy.suffered()}
	holds, chain, err := p.holds(ctx)
	if err != nil {
		return f, err
	}
	for _, problem := range chain.Problems {
		f.Untrue = append(f.Untrue, "the journal's chain: "+problem)
	}
	for i, id := range p.ids {
		marks, err := p.marks(i)
		if err != nil {
			return f, err
		}
		told, err := p.told(ctx, id)
		if err != nil {
			return f, err
		}
		f.count(item{number: i, id: id, marks: marks, holds: holds[id], told: told})
	}
	return f, nil
}

// item is all that is known of one item.
type item struct {
	number int
	id     string
	marks  int           // that its command left
	holds  []worker.Hold // newest first
	told   told
}

// told is what the harness tells a session of an item.
type told struct {
	code   string // "" with a result
	result wire.ExecResult
}

func (f *Figures) count(it item) {
	name := fmt.Sprintf("%d (%s)", it.number, it.id)
	f.Holds += len(it.holds)
	f.countMarks(it, name)
	f.countTold(it)
	delivered := false
	for _, h := range it.holds {
		f.countHold(h, name)
		delivered = delivered || h.Delivery == worker.Delivered
	}
	started := len(it.holds) > 0 && it.holds[0].Execution != worker.NotStarted
	if started {
		f.Starts++
	}
	unrun := it.told.code == "" && (it.told.result.ExitCode == 126 || it.told.result.ExitCode == 127)
	switch {
	case it.marks > 0 && !started:
		f.Untrue = append(f.Untrue, name+" ran and the journal does not know")
	case it.marks > 0 && unrun:
		f.Untrue = append(f.Untrue, name+" ran and the harness was told that it did not: "+it.told.result.Stderr)
	case it.marks == 0 && it.told.code == "" && it.told.result.ExitCode == 0:
		f.Untrue = append(f.Untrue, name+" did not run and the harness was told that it did")
	case delivered && it.told.code != "":
		f.Losses = append(f.Losses, name+" was delivered, and the harness says "+it.told.code)
	case started && it.holds[0].Execution == worker.Interrupted:
		f.Interrupted++
	}
}

func (f *Figures) countMarks(it item, name string) {
	if it.marks > 0 {
		f.Effects++
	}
	if it.marks > 1 {
		f.Duplicates = append(f.Duplicates, fmt.Sprintf("%s left %d marks", name, it.marks))
	}
}

func (f *Figures) countTold(it item) {
	switch it.told.code {
	case "":
		f.Recorded++
	case wire.CodeOutcomeUnknown:
		f.Unknown++
	default:
		f.Other++
	}
}

func (f *Figures) countHold(h worker.Hold, name string) {
	lapses := h.Execution == worker.Interrupted && h.Delivery == worker.NothingToDeliver
	switch h.Delivery {
	case worker.Delivered:
		f.Delivered++
	case worker.DeliveryUnconfirmed:
		f.Unconfirmed++
	case worker.DeliveryRefused:
		f.NotRecorded++
	case worker.Undelivered:
		f.Undelivered++
	}
	if lapses {
		f.Lapsed++
	}
	if !h.Closed {
		f.Losses = append(f.Losses, fmt.Sprintf("%s: hold #%d is open: %s", name, h.ID, h.Status()))
	}
}

// holds reads the journal, newest first, by item, and checks that it is whole.
func (p *place) holds(ctx context.Context) (map[string][]worker.Hold, store.Verification, error) {
	s, err := store.Open(ctx, filepath.Join(p.data(), "countersign.db"))
	if err != nil {
		return nil, store.Verification{}, err
	}
	defer s.Close()
	chain, err := s.Verify(ctx, "")
	if err != nil {
		return nil, chain, err
	}
	all := map[string][]worker.Hold{}
	for before := worker.HoldID(0); ; {
		page, err := s.Find(ctx, worker.HistoryQuery{Before: before, Limit: 500})
		if err != nil || len(page) == 0 {
			return all, chain, err
		}
		for _, h := range page {
			all[h.Item.ID] = append(all[h.Item.ID], h)
			before = h.ID
		}
	}
}

func (p *place) marks(number int) (int, error) {
	text, err := os.ReadFile(filepath.Join(p.effects(), strconv.Itoa(number)))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(text, []byte("\n")), err
}

func (p *place) told(ctx context.Context, id string) (t told, err error) {
	got, err := p.client.Await(ctx, id, 0)
	var ended *harness.AwaitError
	switch {
	case errors.As(err, &ended):
		return told{code: ended.Code}, nil
	case err != nil:
		return t, err
	}
	return t, json.Unmarshal(got.Result, &t.result)
}
