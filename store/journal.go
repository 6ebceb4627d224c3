package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/worker"
	"countersign/worker/execute"
)

var _ worker.Journal = (*Store)(nil)

// Open records a new hold, its first entry and the steps that follow at once, in
// one commit, and returns its number. An item
// that is known keeps its execution, its outcome, and the kind and payload it
// first came with; a hold that came with others keeps those for itself and can
// never start. The execution and outcome that h carries are not looked at.
//
// When it returns ctx.Err(), the hold may have been recorded.
func (s *Store) Open(ctx context.Context, h worker.Hold, reason string, then ...worker.Move) (worker.HoldID, error) {
	var id worker.HoldID
	err := s.writer.do(ctx, func(w *writer) (err error) {
		if id, err = w.open(h, reason); err != nil {
			return err
		}
		return w.moveAll(id, then)
	})
	if err != nil {
		return 0, s.explain("journal "+h.Item.ID+" in", err)
	}
	return id, nil
}

func (w *writer) open(h worker.Hold, reason string) (worker.HoldID, error) {
	it, err := w.findOrAddItem(h)
	if err != nil {
		return 0, err
	}
	h.Facts = explicit(h.Facts)
	h.Execution, h.Outcome = it.execution, it.outcome
	shown, err := encodeShown(h.Shown)
	if err != nil {
		return 0, err
	}
	id, err := w.inserted(`INSERT INTO holds
		(item, payload, connection, environment, worker_id, session, kind, created_at, claimed_at, claim_status,
		 digest, shown, work_dir, output_path, returned, opened_at,
		 decision, decided_by, words, acceptance, refusal, delivery, closed, status)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		it.id, it.payload, h.Connection, h.Environment, h.WorkerID, h.Item.SessionID, h.Item.Kind,
		micros(h.Item.CreatedAt), micros(h.Item.ClaimedAt), h.Item.ClaimStatus,
		h.Digest, shown, h.WorkDir, h.OutputPath, h.Returned, micros(h.OpenedAt),
		h.Decision, h.DecidedBy, h.Words, h.Acceptance, h.Refusal, h.Delivery, h.Closed, h.Status())
	if err != nil {
		return 0, err
	}
	h.ID = worker.HoldID(id)
	return h.ID, w.enter(worker.Entry{Hold: h.ID, At: h.OpenedAt, Step: worker.StepClaimed, Reason: reason, Facts: h.Facts},
		evidence{Item: itemEvidence(h), Shown: shownEvidence(h.Digest, shown)})
}

// item is what a new hold has to know of its item.
type item struct {
	id        int64
	payload   int64 // what the hold came with, whether or not it is the item's
	execution worker.Execution
	outcome   *execute.Outcome
}

func (w *writer) findOrAddItem(h worker.Hold) (item, error) {
	body := []byte(h.Item.Payload) // nil is stored as NULL
	var it item
	var same bool
	var outcome sql.NullString
	err := w.row(`SELECT i.id, i.payload, p.body IS ?, i.execution, i.outcome
		FROM items i JOIN payloads p ON p.id = i.payload WHERE i.origin = +? AND i.item_id = +?`,
		[]any{body, h.Origin, h.Item.ID}, &it.id, &it.payload, &same, &it.execution, &outcome)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return w.addItem(h, body)
	case err != nil:
		return item{}, err
	}
	if it.outcome, err = decodeOutcome(outcome); err != nil {
		return item{}, err
	}
	if !same {
		it.payload, err = w.addPayload(body)
	}
	return it, err
}

func (w *writer) addItem(h worker.Hold, body []byte) (item, error) {
	payload, err := w.addPayload(body)
	if err != nil {
		return item{}, err
	}
	id, err := w.inserted(`INSERT INTO items (origin, item_id, kind, payload) VALUES (?, ?, ?, ?)`,
		h.Origin, h.Item.ID, h.Item.Kind, payload)
	return item{id: id, payload: payload, execution: worker.NotStarted}, err
}

func (w *writer) addPayload(body []byte) (int64, error) {
	return w.inserted(`INSERT INTO payloads (brief, body) VALUES (?, ?)`, brief(body), body)
}

// Move records steps of a hold, in order and in one commit, and the facts from
// then on. It returns worker.ErrForbidden, and records none of the steps, for what
// the write-ahead rules exclude:
//
//   - facts of a closed hold: it takes notes only;
//   - Starting, unless the hold is recorded as approved and accepted, came with
//     the item's own kind and payload, and the item is recorded as not started;
//   - an end of the execution, unless it is recorded as starting;
//   - an outcome without an end.
//
// Running is taken to be the recorded Starting. Facts that say not started leave
// the item's execution as it is: it never goes back. The first outcome stays.
// ErrNoHold is returned where there is no such hold. When it returns ctx.Err(),
// the steps may have been recorded.
func (s *Store) Move(ctx context.Context, id worker.HoldID, steps ...worker.Move) error {
	err := s.writer.do(ctx, func(w *writer) error { return w.moveAll(id, steps) })
	if err != nil {
		return s.explain(fmt.Sprintf("journal #%d in", id), err)
	}
	return nil
}

func (w *writer) moveAll(id worker.HoldID, steps []worker.Move) error {
	if len(steps) == 0 {
		return nil
	}
	now, err := w.recorded(id)
	for _, m := range steps {
		if err == nil {
			now, err = w.move(now, m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Step, err)
		}
	}
	w.keepRecord(now)
	return nil
}

// keepRecord spares the next step of an open hold to read what is recorded.
func (w *writer) keepRecord(r record) {
	if r.facts.Closed {
		delete(w.records, r.id)
	} else if len(w.records) < maxRecords || w.records[r.id].id != 0 {
		w.records[r.id] = r
	}
}

// record is a hold as it is recorded before a step, and its item's execution and
// outcome.
type record struct {
	id      worker.HoldID
	item    int64
	facts   worker.Facts
	outcome *execute.Outcome
}

func (w *writer) recorded(id worker.HoldID) (record, error) {
	if r, ok := w.records[id]; ok {
		return r, nil
	}
	r := record{id: id}
	var outcome sql.NullString
	err := w.row(`SELECT h.item, i.outcome,
		h.decision, h.decided_by, h.words, h.acceptance, h.refusal, i.execution, h.delivery, h.closed
		FROM holds h JOIN items i ON i.id = h.item WHERE h.id = +?`, []any{id}, append([]any{&r.item, &outcome}, into(&r.facts)...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, ErrNoHold
	}
	if err == nil {
		r.outcome, err = decodeOutcome(outcome)
	}
	return r, err
}

// move records one step of a hold and returns the hold as it is then.
func (w *writer) move(now record, m worker.Move) (record, error) {
	if m.Facts == nil {
		if m.Outcome != nil || m.Step == worker.StepStarting {
			return now, worker.ErrForbidden
		}
		return now, w.enter(worker.Entry{Hold: now.id, At: m.At, Step: m.Step, Reason: m.Reason, Facts: now.facts}, evidence{})
	}
	next, err := now, error(nil)
	next.facts = explicit(*m.Facts)
	if next.facts.Execution, err = w.moveExecution(now, m); err != nil {
		return now, err
	}
	if next.outcome == nil && m.Outcome != nil { // the first one stays
		o := *m.Outcome
		o.Result = nil // it can be large
		next.outcome = &o
	}
	facts := next.facts
	open, err := w.changed(`UPDATE holds SET decision = ?, decided_by = ?, words = ?, acceptance = ?, refusal = ?,
		delivery = ?, closed = ?, status = ? WHERE id = ? AND closed = 0`,
		facts.Decision, facts.DecidedBy, facts.Words, facts.Acceptance, facts.Refusal, facts.Delivery, facts.Closed,
		next.status(), now.id)
	if err != nil {
		return now, err
	}
	if !open {
		return now, worker.ErrForbidden
	}
	about, err := w.keep(now, facts, m)
	if err != nil {
		return now, err
	}
	if facts.Execution != now.facts.Execution || m.Outcome != nil {
		if err := w.restateOthers(next); err != nil {
			return now, err
		}
	}
	return next, w.enter(worker.Entry{Hold: now.id, At: m.At, Step: m.Step, Reason: m.Reason, Facts: facts}, about)
}

// keep records what comes with a step: what an item is shown with from then on,
// and what an operator put in its place, which goes with their decision. It returns
// the evidence of that and of the outcome.
func (w *writer) keep(now record, facts worker.Facts, m worker.Move) (about evidence, err error) {
	if m.Outcome != nil && now.outcome == nil { // else the first one stays
		outcome, result, err := encodeOutcome(m.Outcome)
		if err != nil {
			return about, err
		}
		about.Outcome = outcomeEvidence(outcome.String, result)
	}
	if m.Shown != nil {
		shown, err := encodeShown(*m.Shown)
		if err != nil {
			return about, err
		}
		about.Shown = shownEvidence(m.Digest, shown)
		if _, err := w.exec(`UPDATE holds SET shown = ?, digest = ? WHERE id = ?`, shown, m.Digest, now.id); err != nil {
			return about, err
		}
	}
	if m.Edited != nil {
		about.Edited = fields(string(m.Edited))
	} else if facts.Decision != worker.Undecided {
		return about, nil
	}
	_, err = w.exec(`UPDATE holds SET edited = ? WHERE id = ? AND edited IS NOT ?`, []byte(m.Edited), now.id, []byte(m.Edited))
	return about, err
}

// status is the accept status of a hold, for the history's filter.
func (r record) status() string {
	return worker.Hold{Facts: r.facts, Outcome: r.outcome}.Status()
}

// moveExecution moves the execution of the hold's item as the step asks, and
// returns it as it is then.
func (w *writer) moveExecution(now record, m worker.Move) (worker.Execution, error) {
	next := explicit(*m.Facts).Execution
	recorded := now.facts.Execution
	starts := m.Step == worker.StepStarting || (next == worker.Starting && recorded == worker.NotStarted)
	switch {
	case starts:
		if next != worker.Starting || m.Outcome != nil {
			return "", worker.ErrForbidden
		}
		return next, w.start(now.id)
	case next == worker.NotStarted, next == recorded, next == worker.Running && recorded == worker.Starting:
		if m.Outcome == nil {
			return recorded, nil
		}
		return recorded, w.end(now.item, recorded, m.Outcome)
	}
	return next, w.end(now.item, next, m.Outcome)
}

// start is the one statement that lets an execution leave not started.
func (w *writer) start(id worker.HoldID) error {
	started, err := w.changed(`UPDATE items SET execution = 'starting'
		WHERE execution = 'not started' AND id = (SELECT h.item FROM holds h
			JOIN items i ON i.id = h.item AND i.kind = h.kind AND i.payload = h.payload
			WHERE h.id = +? AND h.closed = 0 AND h.decision = 'approved' AND h.acceptance = 'accepted')`, id)
	if err == nil && !started {
		err = worker.ErrForbidden
	}
	return err
}

// end records how the execution ended. Ending it again in the same way is no
// second end: the first outcome stays.
func (w *writer) end(item int64, as worker.Execution, o *execute.Outcome) error {
	switch as {
	case worker.Finished, worker.Stopped, worker.CouldNotStart, worker.Interrupted:
	default:
		return worker.ErrForbidden
	}
	outcome, result, err := encodeOutcome(o)
	if err != nil {
		return err
	}
	ended, err := w.changed(`UPDATE items SET execution = ?,
		result = CASE WHEN outcome IS NULL THEN ? ELSE result END, outcome = COALESCE(outcome, ?)
		WHERE id = ? AND execution IN ('starting', ?)`, as, result, outcome, item, as)
	if err == nil && !ended {
		err = worker.ErrForbidden
	}
	return err
}

// restateOthers writes the accept status of the item's other holds anew: the
// execution, which has moved, belongs to all of them.
func (w *writer) restateOthers(of record) error {
	rows, err := w.rows(`SELECT id, decision, decided_by, words, acceptance, refusal, delivery, closed
		FROM holds WHERE item = ? AND id <> ?`, of.item, of.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	var others []record
	for rows.Next() {
		other := of
		f := &other.facts
		if err := rows.Scan(&other.id, &f.Decision, &f.DecidedBy, &f.Words, &f.Acceptance, &f.Refusal, &f.Delivery, &f.Closed); err != nil {
			return err
		}
		others = append(others, other)
		delete(w.records, other.id) // it speaks of the item, too
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, other := range others {
		word := other.status()
		if _, err := w.exec(`UPDATE holds SET status = ? WHERE id = ? AND status <> ?`, word, other.id, word); err != nil {
			return err
		}
	}
	return nil
}

// explicit spells out the facts that a zero value leaves unsaid.
func explicit(f worker.Facts) worker.Facts {
	if f.Decision == "" {
		f.Decision = worker.Undecided
	}
	if f.Acceptance == "" {
		f.Acceptance = worker.NotAsked
	}
	if f.Execution == "" {
		f.Execution = worker.NotStarted
	}
	if f.Delivery == "" {
		f.Delivery = worker.NothingToDeliver
	}
	return f
}

// encodeOutcome keeps the result apart from the rest: it can be large, and lists
// do without it.
func encodeOutcome(o *execute.Outcome) (outcome sql.NullString, result []byte, err error) {
	if o == nil {
		return outcome, nil, nil
	}
	rest := *o
	rest.Result = nil
	encoded, err := json.Marshal(rest)
	if err != nil {
		return outcome, nil, fmt.Errorf("encode the outcome: %w", err)
	}
	return sql.NullString{String: string(encoded), Valid: true}, o.Result, nil
}

func decodeOutcome(outcome sql.NullString) (*execute.Outcome, error) {
	if !outcome.Valid {
		return nil, nil
	}
	var o execute.Outcome
	if err := json.Unmarshal([]byte(outcome.String), &o); err != nil {
		return nil, fmt.Errorf("a recorded outcome: %w", err)
	}
	o.Result = nil // "null" stands for what is kept apart
	return &o, nil
}

func encodeShown(shown worker.Shown) (string, error) {
	encoded, err := json.Marshal(shown)
	if err != nil {
		return "", fmt.Errorf("encode what is shown: %w", err)
	}
	return string(encoded), nil
}

func decodeShown(encoded string, into *worker.Shown) error {
	if encoded == "" { // older than what is kept of it
		return nil
	}
	if err := json.Unmarshal([]byte(encoded), into); err != nil {
		return fmt.Errorf("what was shown: %w", err)
	}
	return nil
}
