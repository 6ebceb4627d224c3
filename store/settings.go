package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// WorkerID returns the id under which this machine claims from an environment of
// a harness. It is random, is made once, and stays the same from then on.
func (s *Store) WorkerID(ctx context.Context, origin, environment string) (string, error) {
	name := "worker id of " + origin + " " + environment
	var id string
	err := s.writer.do(ctx, func(w *writer) error {
		made := "cs-" + strings.ToLower(rand.Text()[:16])
		if _, err := w.exec(`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, made); err != nil {
			return err
		}
		return w.row(`SELECT value FROM settings WHERE name = ?`, []any{name}, &id)
	})
	if err != nil {
		return "", s.explain("keep the worker id in", err)
	}
	return id, nil
}

// Usable says why nothing can be written, having tried with more than a step of
// the journal takes.
func (s *Store) Usable(ctx context.Context) error {
	return s.explain("write to", s.writer.do(ctx, func(w *writer) error {
		_, err := w.exec(`INSERT INTO settings (name, value) VALUES ('room', zeroblob(65536))
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`)
		return err
	}))
}

// pause is the value of the setting "paused".
type pause struct {
	Paused bool      `json:"paused"`
	Until  time.Time `json:"until,omitzero"` // zero while it has no end
}

// Paused returns what SetPaused was last told. Whether until has passed is for
// the caller to judge.
func (s *Store) Paused(ctx context.Context) (paused bool, until time.Time, err error) {
	var value string
	err = s.reading.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = 'paused'`).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return false, time.Time{}, nil
	}
	if err != nil {
		return false, time.Time{}, s.explain("read", err)
	}
	var p pause
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return false, time.Time{}, s.explain("read the pause in", err)
	}
	return p.Paused, p.Until, nil
}

// SetPaused remembers whether claiming is paused, and until when; a zero until
// means without an end.
func (s *Store) SetPaused(ctx context.Context, paused bool, until time.Time) error {
	value, err := json.Marshal(pause{Paused: paused, Until: until.UTC()})
	if err != nil {
		return fmt.Errorf("encode the pause: %w", err)
	}
	return s.explain("keep the pause in", s.writer.do(ctx, func(w *writer) error {
		_, err := w.exec(`INSERT INTO settings (name, value) VALUES ('paused', ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, string(value))
		return err
	}))
}

// RulesInForce implements policy.KeptRules.
func (s *Store) RulesInForce(file string) ([]byte, error) {
	var text []byte
	err := s.reading.QueryRowContext(context.Background(), `SELECT value FROM settings WHERE name = ?`, "rules "+file).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if text == nil {
		text = []byte{}
	}
	return text, s.explain("read the rules in", err)
}

// KeepRules implements policy.KeptRules.
func (s *Store) KeepRules(file string, text []byte) error {
	return s.explain("keep the rules in", s.writer.do(context.Background(), func(w *writer) error {
		_, err := w.exec(`INSERT INTO settings (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, "rules "+file, string(text))
		return err
	}))
}
