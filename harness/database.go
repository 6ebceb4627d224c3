package harness

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

	_ "github.com/mattn/go-sqlite3" // the database/sql driver "sqlite3"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// synchronous is SQLite's durability. In WAL mode NORMAL survives a crash of the
// program; a power cut can undo the last moments, never tear the database. That
// is enough here: the worker's journal is what forbids a second run, and an item
// whose accept is undone is refused to its holder, not run again.
const synchronous = "NORMAL"

// readers is how many connections read beside the one that writes.
const readers = 4

// pools are the two ways into the database: SQLite has one writer at a time, so
// one connection queues writes without busy errors, and reads never wait for it.
type pools struct {
	writer, reader *sql.DB
}

func openPools(ctx context.Context, path string) (pools, error) {
	if err := makePrivate(path); err != nil {
		return pools{}, err
	}
	writer, err := openPool(path, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {synchronous}, "_txlock": {"immediate"},
	}, 1)
	if err != nil {
		return pools{}, err
	}
	if err := migrate(ctx, writer); err != nil {
		return pools{}, errors.Join(err, writer.Close())
	}
	reader, err := openPool(path, url.Values{"_query_only": {"true"}}, readers)
	if err != nil {
		return pools{}, errors.Join(err, writer.Close())
	}
	return pools{writer: writer, reader: reader}, nil
}

func (p pools) close() error { return errors.Join(p.reader.Close(), p.writer.Close()) }

// makePrivate makes the file so that only this user reads it: payloads and
// results are in it. SQLite gives the files beside it the same mode.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func openPool(path string, settings url.Values, connections int) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	settings.Set("_busy_timeout", "5000")
	settings.Set("_stmt_cache_size", "32") // more than there are statements
	name := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/"), RawQuery: settings.Encode()}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// migrate brings the schema up to date, each migration in a transaction.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
