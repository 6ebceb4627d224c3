package store

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/worker/policy"
)

var _ policy.GrantStore = (*Store)(nil)

// Grants implements policy.GrantStore: it returns what is kept, oldest first.
func (s *Store) Grants() ([]policy.Grant, error) {
	rows, err := s.reading.QueryContext(context.Background(), `SELECT value FROM grants ORDER BY value ->> 'made'`)
	if err != nil {
		return nil, s.explain("read the grants in", err)
	}
	defer rows.Close()
	var grants []policy.Grant
	for rows.Next() {
		var value []byte
		if err := rows.Scan(&value); err != nil {
			return nil, s.explain("read the grants in", err)
		}
		var g policy.Grant
		if err := json.Unmarshal(value, &g); err != nil {
			return nil, s.explain("read a grant in", err)
		}
		grants = append(grants, g)
	}
	return grants, s.explain("read the grants in", rows.Err())
}

// SaveGrant implements policy.GrantStore. When it returns nil the grant is on
// disk.
func (s *Store) SaveGrant(g policy.Grant) error {
	value, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode grant %s: %w", g.ID, err)
	}
	return s.explain("keep a grant in", s.writer.do(context.Background(), func(w *writer) error {
		_, err := w.exec(`INSERT INTO grants (id, value) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET value = excluded.value`, g.ID, string(value))
		return err
	}))
}

// DropGrant implements policy.GrantStore. One that is not there is no error.
func (s *Store) DropGrant(id string) error {
	return s.explain("end a grant in", s.writer.do(context.Background(), func(w *writer) error {
		_, err := w.exec(`DELETE FROM grants WHERE id = ?`, id)
		return err
	}))
}
