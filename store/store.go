// Package store keeps the journal that the engine writes ahead, and the history
// that people read, in one SQLite file. A step that was answered with nil is on
// disk (WAL, synchronous=FULL); what the write-ahead rules of DESIGN.md exclude
// is refused by the statement that would do it.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Errors that callers tell apart.
var (
	ErrNoHold = errors.New("no such hold")
	ErrClosed = errors.New("the history is closed")
	ErrNewer  = errors.New("the history was written by a newer Countersign")
	ErrDamage = errors.New("the history file is damaged or is not one")
)

// Store is an open journal and history. It is safe for concurrent use. Writes go
// through one connection, reads through others that cannot write.
type Store struct {
	path    string
	writing *sql.DB
	reading *sql.DB
	known   *sql.Stmt // the item of an origin and id: asked for with each that is claimed
	writer  *writer
}

// Open opens the file at path, makes it and its directory if they are missing
// (0600 in 0700), and brings an older one up to date. It returns ErrNewer or
// ErrDamage, with the file's name, for one that it cannot use, and leaves that
// as it is.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("history %s: %w", path, err)
	}
	s := &Store{path: path}
	if err := s.open(ctx); err != nil {
		s.closePools()
		return nil, s.explain("open", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if err := makePrivate(s.path); err != nil {
		return err
	}
	s.writing, err = sql.Open("sqlite3", dataSource(s.path, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_foreign_keys": {"on"}, "_busy_timeout": {"5000"}, "_cache_size": {"-8000"},
	}))
	if err != nil {
		return err
	}
	s.writing.SetMaxOpenConns(1)
	if err := migrate(ctx, s.writing); err != nil {
		return err
	}
	s.reading, err = sql.Open("sqlite3", dataSource(s.path, url.Values{
		"mode": {"ro"}, "_query_only": {"on"}, "_busy_timeout": {"5000"},
	}))
	if err != nil {
		return err
	}
	s.reading.SetMaxOpenConns(4)
	s.reading.SetMaxIdleConns(4)
	s.known, err = s.reading.PrepareContext(ctx, `SELECT id FROM items WHERE origin = ? AND item_id = ?`)
	if err != nil {
		return err
	}
	s.writer, err = newWriter(ctx, s.writing)
	return err
}

// Close ends the store. Steps that are under way are committed first; later
// ones get ErrClosed.
func (s *Store) Close() error {
	if !s.writer.close() {
		return nil
	}
	return s.closePools()
}

// closePools closes the readers first, so that the last connection to go is one
// that can fold the write-ahead log into the file.
func (s *Store) closePools() error {
	var errs []error
	for _, pool := range []*sql.DB{s.reading, s.writing} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// makePrivate makes sure that only this user can read the history. SQLite gives
// the files beside it the same mode.
func makePrivate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

// dataSource names the file as a URI, so that no character of its path is taken
// for an option.
func dataSource(path string, options url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String()
}

func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fmt.Errorf("%w: its version is %d, this program knows up to %d", ErrNewer, current, known)
	}
	_, err = provider.Up(ctx)
	return err
}

// explain says which file an error is about, and names damage as what it is.
func (s *Store) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	var e sqlite3.Error
	if errors.As(err, &e) && (e.Code == sqlite3.ErrNotADB || e.Code == sqlite3.ErrCorrupt) {
		return fmt.Errorf("%s %s: %w: move it away to begin an empty one; it was left as it is (%w)", what, s.path, ErrDamage, err)
	}
	return fmt.Errorf("%s %s: %w", what, s.path, err)
}
