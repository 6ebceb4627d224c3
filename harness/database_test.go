package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

func TestMigrationsGoUpFromEveryVersionAndDownAgain(t *testing.T) {
	files, err := fs.Sub(migrations, "migrations")
	must(t, err)
	names, err := fs.Glob(files, "*.sql")
	must(t, err)
	for version := range len(names) + 1 {
		db, err := openPool(filepath.Join(t.TempDir(), "harness.db"), map[string][]string{"_txlock": {"immediate"}}, 1)
		must(t, err)
		provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
		must(t, err)
		if version > 0 {
			_, err = provider.UpTo(t.Context(), int64(version))
			must(t, err)
		}
		must(t, migrate(t.Context(), db))
		must(t, migrate(t.Context(), db)) // nothing left to do
		if at, err := provider.GetDBVersion(t.Context()); err != nil || int(at) != len(names) {
			t.Errorf("from version %d to %d, want %d: %v", version, at, len(names), err)
		}
		_, err = provider.DownTo(t.Context(), 0)
		must(t, err)
		must(t, db.Close())
	}
}

func TestTheDatabaseIsOpenedAsTheDesignWantsIt(t *testing.T) {
	s := serve(t, Options{})
	for setting, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "5000"} {
		var got string
		must(t, s.pools.writer.QueryRow(`PRAGMA `+setting).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if _, err := s.pools.reader.Exec(`DELETE FROM sessions`); err == nil {
		t.Error("the reading pool writes")
	}
}

func TestOnlyThisUserReadsTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "harness.db")
	s := serve(t, Options{Path: path})
	s.enqueues("sess_1")
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(name), info.Mode())
		}
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "harness.db")
	notDatabase := filepath.Join(t.TempDir(), "notes.txt")
	must(t, os.WriteFile(notDatabase, []byte(strings.Repeat("not a database ", 100)), 0o600))
	for _, o := range []Options{{}, {Path: path, Lease: -1}, {Path: path, MaxBody: -1}, {Path: t.TempDir()}, {Path: notDatabase}} {
		if h, err := Open(t.Context(), o); err == nil {
			t.Errorf("opened %+v", o)
			h.Close()
		}
	}
}

// With very much finished, a claim must not read it.
func TestAClaimReadsOnlyWhatIsOpen(t *testing.T) {
	s := serve(t, Options{})
	for sc, index := range map[scope]string{
		{}:                     "work_items_open",
		{environment: "env_a"}: "work_items_open_environment",
		{session: "sess_1"}:    "work_items_open_session",
		{environment: "env_a", session: "sess_1"}: "work_items_open_",
	} {
		query, args := s.claimStatement("w1", sc, 0)
		plan := s.plan(query, args...)
		if !strings.Contains(plan, "USING INDEX "+index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("claim for %+v:\n%s", sc, plan)
		}
	}
}

func TestStoppingSweepingAndListingReadNoMoreThanTheyMust(t *testing.T) {
	s := serve(t, Options{})
	for query, index := range map[string]string{
		stopStatement:  "SEARCH work_items USING INDEX work_items_open_session",
		sweepStatement: "SEARCH work_items USING INDEX work_items_open (",
		countStatement: "USING COVERING INDEX work_items_environment (environment_id=?)",
		listStatement:  "SEARCH work_items USING INDEX work_items_environment (environment_id=?)",
	} {
		args := make([]any, strings.Count(query, "?"))
		if plan := s.plan(query, args...); !strings.Contains(plan, index) || strings.Contains(plan, "SCAN") {
			t.Errorf("%s\n%s", query, plan)
		}
	}
}

// plan is SQLite's plan for a statement.
func (s *served) plan(query string, args ...any) string {
	s.t.Helper()
	rows, err := s.pools.writer.Query(`EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintln(&plan, detail)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return plan.String()
}
