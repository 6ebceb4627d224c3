package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"countersign/worker"
)

// evidence holds the hashes of what an entry of the journal is about and what is
// kept beside it, so that a change of that shows too. Each is SHA-256 in
// hexadecimal, "" where the entry says nothing of it.
type evidence struct {
	Item    string `json:"item,omitempty"`    // what was claimed, and where it was to run
	Shown   string `json:"shown,omitempty"`   // what the operator was shown with it
	Edited  string `json:"edited,omitempty"`  // what they put in its place
	Outcome string `json:"outcome,omitempty"` // what came of it, and what was reported
}

func (e evidence) encode() (text sql.NullString, err error) {
	if e == (evidence{}) {
		return text, nil
	}
	b, err := json.Marshal(e)
	return sql.NullString{String: string(b), Valid: true}, err
}

// fields hashes a list of texts so that no two lists have one hash.
func fields(texts ...string) string { return hex.EncodeToString(hashed(sha256.New(), texts...)) }

func hashed(sum hash.Hash, texts ...string) []byte {
	var size [8]byte
	for _, t := range texts {
		binary.BigEndian.PutUint64(size[:], uint64(len(t)))
		sum.Write(size[:])
		sum.Write([]byte(t))
	}
	return sum.Sum(nil)
}

func itemEvidence(h worker.Hold) string {
	return fields(h.Origin, h.Item.ID, h.Item.Kind, h.Item.SessionID, h.Connection, h.Environment,
		h.WorkerID, h.WorkDir, h.OutputPath, string(h.Item.Payload))
}

func shownEvidence(digest, shown string) string { return fields(digest, shown) }

func outcomeEvidence(outcome string, result []byte) string { return fields(outcome, string(result)) }

// link is the hash of an entry: over the one before, itself, and its evidence.
func link(before []byte, e worker.Entry, about string) []byte {
	at := "none"
	if v := micros(e.At); v.Valid {
		at = fmt.Sprint(v.Int64)
	}
	f := e.Facts
	return hashed(sha256.New(), string(before), fmt.Sprint(e.Hold), at, string(e.Step), e.Reason,
		string(f.Decision), f.DecidedBy, f.Words, string(f.Acceptance), string(f.Refusal), string(f.Execution),
		string(f.Delivery), fmt.Sprint(f.Closed), about)
}

// enter writes an entry, linked to the one before it.
func (w *writer) enter(e worker.Entry, about evidence) error {
	text, err := about.encode()
	if err != nil {
		return err
	}
	if w.head == nil {
		if err := w.findHead(); err != nil {
			return err
		}
	}
	next := link(w.head, e, text.String)
	_, err = w.exec(`INSERT INTO entries (hold, at, step, reason,
		decision, decided_by, words, acceptance, refusal, execution, delivery, closed, evidence, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.Hold, micros(e.At), e.Step, e.Reason,
		e.Facts.Decision, e.Facts.DecidedBy, e.Facts.Words, e.Facts.Acceptance, e.Facts.Refusal,
		e.Facts.Execution, e.Facts.Delivery, e.Facts.Closed, text, next)
	if err == nil {
		w.head = next
		w.entered++
	}
	return err
}

// findHead reads the hash of the newest entry. After a step that was undone the
// memory of it is of no use.
func (w *writer) findHead() error {
	err := w.row(`SELECT hash FROM entries ORDER BY id DESC LIMIT 1`, nil, &w.head)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err == nil && w.head == nil { // there is none, or it is older than the chain
		w.head = []byte{}
	}
	return err
}
