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
	text, err := s.kept("rules " + file)
	return text, s.explain("read the rules in", err)
}

// KeepRules implements policy.KeptRules.
func (s *Store) KeepRules(file string, text []byte) error {
	return s.explain("keep the rules in", s.keep("rules "+file, string(text)))
}

// GuardsInForce returns what was last kept as in force of what guards this machine
// in a configuration file; "" for nothing.
func (s *Store) GuardsInForce(file string) (string, error) {
	text, err := s.kept("guards " + file)
	return string(text), s.explain("read what guards this machine in", err)
}

// KeepGuards keeps it; when it returns nil it is on disk.
func (s *Store) KeepGuards(file, text string) error {
	return s.explain("keep what guards this machine in", s.keep("guards "+file, text))
}

// kept returns the text of a setting, nil for none.
func (s *Store) kept(name string) (text []byte, err error) {
	err = s.reading.QueryRowContext(context.Background(), `SELECT value FROM settings WHERE name = ?`, name).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err == nil && text == nil:
		return []byte{}, nil
	}
	return text, err
}

func (s *Store) keep(name, text string) error {
	return s.writer.do(context.Background(), func(w *writer) error {
		_, err := w.exec(`INSERT INTO settings (name, value) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, text)
		return err
	})
}
