package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

const (
	// searchableBatch is how many entries of the journal are made searchable at
	// once: few enough that a step that comes meanwhile hardly waits.
	searchableBatch = 128

	// quiet is how long no step has come when the rest is made searchable.
	quiet = 250 * time.Millisecond
)

// makeSearchable makes searchable what the journal says up to now. Steps that come
// meanwhile are written down between its batches.
func (s *Store) makeSearchable(ctx context.Context) error {
	for more := true; more; {
		err := s.writer.do(ctx, func(w *writer) (err error) {
			more, err = w.makeSearchable()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeSearchable makes one batch of entries searchable and says whether there may
// be more. What is searchable already stays as it is, so it does not matter who
// did it.
func (w *writer) makeSearchable() (more bool, err error) {
	var from, through, entries int64
	if err := w.row(`SELECT through FROM searchable`, nil, &from); err != nil {
		return false, err
	}
	if err := w.row(`SELECT COALESCE(MAX(id), 0), COUNT(*) FROM (SELECT id FROM entries WHERE id > ? ORDER BY id LIMIT ?)`,
		[]any{from, searchableBatch}, &through, &entries); err != nil || entries == 0 {
		return false, err
	}
	holds, err := w.unsearchable(from, through)
	if err != nil {
		return false, err
	}
	for _, h := range holds {
		if err := w.makeHoldSearchable(h); err != nil {
			return false, err
		}
	}
	_, err = w.exec(`UPDATE searchable SET through = ?`, through)
	return entries == searchableBatch, err
}

// searched is a hold as it is searched for.
type searched struct {
	id                     int64
	known                  bool // it has a row in search
	asked, output, session string
}

// unsearchable returns the holds of these entries, and the others of their items,
// which have the same output, that cannot be searched for as they are.
func (w *writer) unsearchable(from, through int64) (holds []searched, err error) {
	rows, err := w.rows(`SELECT h.id, h.session, COALESCE(p.brief, p.body), i.outcome, s.docid IS NOT NULL, COALESCE(s.output, '')
		FROM holds h JOIN items i ON i.id = h.item JOIN payloads p ON p.id = h.payload LEFT JOIN search s ON s.docid = h.id
		WHERE h.item IN (SELECT item FROM holds WHERE id IN (SELECT hold FROM entries WHERE id > ? AND id <= ?))`, from, through)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var h searched
		var payload []byte
		var outcome sql.NullString
		var output string
		if err := rows.Scan(&h.id, &h.session, &payload, &outcome, &h.known, &output); err != nil {
			return nil, err
		}
		o, err := decodeOutcome(outcome)
		if err != nil {
			return nil, err
		}
		if o != nil {
			h.output = head(o.Head)
		}
		h.asked = asked(payload)
		if !h.known || h.output != output {
			holds = append(holds, h)
		}
	}
	return holds, rows.Err()
}

func (w *writer) makeHoldSearchable(h searched) (err error) {
	if h.known {
		_, err = w.exec(`UPDATE search SET output = ? WHERE docid = ?`, h.output, h.id)
	} else {
		_, err = w.exec(`INSERT INTO search (docid, asked, output, session) VALUES (?, ?, ?, ?)`, h.id, h.asked, h.output, h.session)
	}
	return err
}
