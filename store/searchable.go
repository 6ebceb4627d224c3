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

// makeSearchable makes searchable what the journal says now. Steps that come
// meanwhile are written down between its batches.
func (s *Store) makeSearchable(ctx context.Context) error {
	var newest, through int64
	if err := s.reading.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM entries`).Scan(&newest); err != nil {
		return err
	}
	for more := true; more && through < newest; {
		err := s.writer.do(ctx, func(w *writer) (err error) {
			through, more, err = w.makeSearchable()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeSearchable makes one batch of entries searchable. It says up to which all
// are, and whether there may be more. What is searchable already stays as it is,
// so it does not matter who did it.
func (w *writer) makeSearchable() (through int64, more bool, err error) {
	var from, entries int64
	// A file that was cut and mended may have lost what it says is searchable.
	if err := w.row(`SELECT iif(through > (SELECT COALESCE(MAX(id), 0) FROM entries), 0, through) FROM searchable`, nil, &from); err != nil {
		return 0, false, err
	}
	if err := w.row(`SELECT COALESCE(MAX(id), 0), COUNT(*) FROM (SELECT id FROM entries WHERE id > ? ORDER BY id LIMIT ?)`,
		[]any{from, searchableBatch}, &through, &entries); err != nil {
		return 0, false, err
	}
	if entries == 0 {
		return from, false, nil
	}
	added, err := w.addToSearch(from, through)
	if err == nil {
		err = w.addOutputs(from, through, added)
	}
	if err != nil {
		return from, false, err
	}
	_, err = w.exec(`UPDATE searchable SET through = ?`, through)
	return through, entries == searchableBatch, err
}

// searched is a hold as it is searched for.
type searched struct {
	id      int64
	payload []byte
	outcome sql.NullString
	session string
}

// output is the beginning of what the item printed. An outcome that cannot be read
// hides nothing else.
func (h searched) output() string {
	if o, err := decodeOutcome(h.outcome); err == nil && o != nil {
		return head(o.Head)
	}
	return ""
}

// addToSearch adds the holds of these entries that are not there yet, and returns
// which they are.
func (w *writer) addToSearch(from, through int64) (added map[int64]bool, err error) {
	holds, err := w.searched(`SELECT h.id, h.session, COALESCE(p.brief, p.body), i.outcome
		FROM holds h JOIN items i ON i.id = h.item JOIN payloads p ON p.id = h.payload
		WHERE h.id IN (SELECT hold FROM entries WHERE id > ? AND id <= ?)
		AND NOT EXISTS (SELECT 1 FROM search WHERE docid = h.id)`, from, through)
	added = make(map[int64]bool, len(holds))
	for _, h := range holds {
		if err == nil {
			_, err = w.exec(`INSERT INTO search (docid, asked, output, session) VALUES (?, ?, ?, ?)`, h.id, asked(h.payload), h.output(), h.session)
		}
		added[h.id] = true
	}
	return added, err
}

// addOutputs adds the outputs that came with these entries to all holds of their
// items, but those that were added with it.
func (w *writer) addOutputs(from, through int64, added map[int64]bool) error {
	holds, err := w.searched(`SELECT h.id, '', NULL, i.outcome FROM holds h JOIN items i ON i.id = h.item
		WHERE h.item IN (SELECT item FROM holds WHERE id IN (
			SELECT hold FROM entries WHERE id > ? AND id <= ? AND instr(evidence, '"outcome"') > 0))`, from, through)
	for _, h := range holds {
		if output := h.output(); err == nil && output != "" && !added[h.id] {
			_, err = w.exec(`UPDATE search SET output = ? WHERE docid = ? AND output = ''`, output, h.id)
		}
	}
	return err
}

func (w *writer) searched(query string, args ...any) (holds []searched, err error) {
	rows, err := w.rows(query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var h searched
		if err := rows.Scan(&h.id, &h.session, &h.payload, &h.outcome); err != nil {
			return nil, err
		}
		holds = append(holds, h)
	}
	return holds, rows.Err()
}
