package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/worker"
)

// Verification is what a check of the journal found.
type Verification struct {
	Entries  int      // that are linked to the one before them
	Older    int      // from before entries were linked, which cannot be checked
	Holds    int      // whose rows were compared with their entries
	Head     string   // hash of the newest entry; noted elsewhere, it shows later that nothing before it was taken away
	HasHead  bool     // whether the head that was asked for is among the entries
	Problems []string // what does not fit, the first few, in words
	More     int      // further ones
}

const maxProblems = 50

// Verify checks that nobody changed the journal behind Countersign's back: that
// each entry carries the hash over itself and the one before it, and that holds,
// items and outcomes are what the entries say of them. Who can write the file can
// also write a whole new chain: only a head that was noted elsewhere shows that.
// head, if any, is looked for in the chain.
func (s *Store) Verify(ctx context.Context, head string) (Verification, error) {
	// One transaction, so that the journal stands still while it is read.
	tx, err := s.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Verification{}, s.explain("check", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	v := Verification{HasHead: head == ""}
	if err := v.chain(ctx, tx, head); err != nil {
		return v, s.explain("check", err)
	}
	if err := v.rows(ctx, tx); err != nil {
		return v, s.explain("check", err)
	}
	return v, nil
}

func (v *Verification) problem(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	} else {
		v.More++
	}
}

// chain follows the entries from the first to the last.
func (v *Verification) chain(ctx context.Context, tx *sql.Tx, head string) error {
	rows, err := tx.QueryContext(ctx, `SELECT id, hash, COALESCE(evidence, ''), hold, at, step, reason,
		decision, decided_by, words, acceptance, refusal, execution, delivery, closed FROM entries ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	before, last := []byte{}, int64(0)
	for rows.Next() {
		var e worker.Entry
		var id int64
		var hash []byte
		var about string
		if err := rows.Scan(append([]any{&id, &hash, &about, &e.Hold, when{&e.At}, &e.Step, &e.Reason}, into(&e.Facts)...)...); err != nil {
			return err
		}
		if last != 0 && id != last+1 {
			v.problem("between entry %d and entry %d some are missing", last, id)
		}
		last = id
		if hash == nil && v.Entries == 0 {
			v.Older++
			continue
		}
		v.Entries++
		if want := link(before, e, about); !bytes.Equal(hash, want) {
			v.problem("entry %d (%s of #%d) is not what was written, or one before it is not", id, e.Step, e.Hold)
		}
		before = hash
		v.HasHead = v.HasHead || hex.EncodeToString(hash) == head
	}
	v.Head = hex.EncodeToString(before)
	return rows.Err()
}

// rows compares each hold with its entries.
func (v *Verification) rows(ctx context.Context, tx *sql.Tx) error {
	holds, err := tx.QueryContext(ctx, `SELECT h.shown, h.edited, p.body, i.result, `+holdColumns+` FROM holds h`+joined+` ORDER BY h.id`)
	if err != nil {
		return err
	}
	defer holds.Close()
	entries, err := tx.PrepareContext(ctx, `SELECT COALESCE(evidence, ''), hash IS NULL, step,
		decision, decided_by, words, acceptance, refusal, execution, delivery, closed FROM entries WHERE hold = ? ORDER BY id`)
	if err != nil {
		return err
	}
	defer entries.Close()
	for holds.Next() {
		h, err := scanKept(holds)
		if err != nil {
			return err
		}
		v.Holds++
		if err := v.hold(ctx, entries, h); err != nil {
			return err
		}
	}
	return holds.Err()
}

// keptHold is a hold as its rows have it, with what they hold in bytes.
type keptHold struct {
	worker.Hold
	shown           string
	edited, result  []byte
	outcome         sql.NullString
	payload         []byte
	finalFacts      worker.Facts
	said            evidence // the last of each kind
	first, unlinked bool
	ran             bool // some entry says that the execution had started
}

func scanKept(rows *sql.Rows) (keptHold, error) {
	var h keptHold
	err := rows.Scan(append([]any{&h.shown, &h.edited, &h.payload, &h.result, &h.outcome, &h.Origin, &h.Item.ID,
		&h.ID, &h.Connection, &h.Environment, &h.WorkerID, &h.Item.SessionID, &h.Item.Kind,
		when{&h.Item.CreatedAt}, when{&h.Item.ClaimedAt}, &h.Item.ClaimStatus,
		&h.Digest, &h.WorkDir, &h.OutputPath, &h.Returned, when{&h.OpenedAt}}, into(&h.Facts)...)...)
	h.Item.Payload = json.RawMessage(h.payload)
	return h, err
}

func (v *Verification) hold(ctx context.Context, entries *sql.Stmt, h keptHold) error {
	if err := h.read(ctx, entries); err != nil {
		return err
	}
	if h.unlinked {
		return nil // from before entries were linked
	}
	if h.first {
		v.problem("#%d has no entries", h.ID)
		return nil
	}
	if h.said.Item != itemEvidence(h.Hold) {
		v.problem("#%d: what was claimed is not what the journal says was claimed", h.ID)
	}
	if h.said.Shown != shownEvidence(h.Digest, h.shown) {
		v.problem("#%d: what was shown is not what the journal says was shown", h.ID)
	}
	if (h.said.Edited != "" || h.edited != nil) && h.said.Edited != fields(string(h.edited)) {
		v.problem("#%d: what the operator put in its place is not what the journal says", h.ID)
	}
	if h.said.Outcome != "" && h.said.Outcome != outcomeEvidence(h.outcome.String, h.result) {
		v.problem("#%d: its outcome is not what the journal says came of it", h.ID)
	}
	if h.ran && h.Execution == worker.NotStarted {
		v.problem("#%d: its item is said not to have started, and the journal says that it did", h.ID)
	}
	now, last := h.Facts, h.finalFacts
	now.Execution, last.Execution = "", "" // the item's, which another hold of it may have moved
	if now != last {
		v.problem("#%d: its row does not say what its last entry says", h.ID)
	}
	return nil
}

// read gathers what the entries say of a hold.
func (h *keptHold) read(ctx context.Context, entries *sql.Stmt) error {
	rows, err := entries.QueryContext(ctx, h.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	h.first = true
	for rows.Next() {
		var about string
		var unlinked bool
		var step worker.Step
		var facts worker.Facts
		if err := rows.Scan(append([]any{&about, &unlinked, &step}, into(&facts)...)...); err != nil {
			return err
		}
		h.unlinked = h.unlinked || h.first && unlinked
		h.first = false
		var e evidence
		if about != "" && json.Unmarshal([]byte(about), &e) != nil {
			return errors.New("an entry's evidence cannot be read")
		}
		h.said.take(e, facts)
		h.finalFacts = facts
		h.ran = h.ran || facts.Execution != worker.NotStarted
	}
	return rows.Err()
}

// take is what an entry says later than another. The first outcome stays, what an
// operator put in an item's place goes with their decision.
func (e *evidence) take(later evidence, facts worker.Facts) {
	if later.Item != "" {
		e.Item = later.Item
	}
	if later.Shown != "" {
		e.Shown = later.Shown
	}
	if later.Edited != "" || facts.Decision == worker.Undecided {
		e.Edited = later.Edited
	}
	if e.Outcome == "" {
		e.Outcome = later.Outcome
	}
}
