package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"countersign/worker"
	"countersign/worker/policy"

	"github.com/pressly/goose/v3"
)

// played is a journal with a bit of everything in it.
func played(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	s := reopened(t, path)
	first := claimed("i1", "make")
	first.Shown.Explanation.Reason = "no rule allows it"
	ran := open(t, s, first).accepted().started()
	ran.must(worker.StepFinished, outcome(), finish)
	ran.must(worker.StepDelivered, nil, deliver)
	edited := open(t, s, claimed("i2", "make"))
	if err := s.Move(t.Context(), edited.id, worker.Move{At: noon, Step: worker.StepDecided, Edited: json.RawMessage(`{"command":"ls"}`),
		Facts: &worker.Facts{Decision: worker.Approved, DecidedBy: "operator, edited"}}); err != nil {
		t.Fatal(err)
	}
	again := open(t, s, claimed("i3", "sh x"))
	shown := worker.Shown{Explanation: policy.Explanation{Reason: "shown anew"}}
	if err := s.Move(t.Context(), again.id, worker.Move{At: noon, Step: worker.StepRecovered, Shown: &shown, Digest: "other", Facts: &worker.Facts{}}); err != nil {
		t.Fatal(err)
	}
	again.forbidden(worker.StepStarting, nil, start) // undone: the chain goes on from before
	open(t, s, claimed("i4", "true")).must(worker.StepDecided, nil, approve)
	return s, path
}

func verified(t *testing.T, s *Store, head string) Verification {
	t.Helper()
	v, err := s.Verify(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAJournalThatNobodyTouchedIsWhole(t *testing.T) {
	s, path := played(t)
	v := verified(t, s, "")
	if len(v.Problems) != 0 || v.Entries < 12 || v.Holds != 4 || v.Older != 0 || len(v.Head) != 64 {
		t.Errorf("%+v", v)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopened(t, path)
	open(t, s, claimed("i5", "later")).must(worker.StepDecided, nil, approve)
	later := verified(t, s, v.Head)
	if len(later.Problems) != 0 || !later.HasHead || later.Head == v.Head {
		t.Errorf("after a restart: %+v", later)
	}
	if lost := verified(t, s, strings.Repeat("0", 64)); lost.HasHead {
		t.Error("a head that was never there was found")
	}
}

func TestWhatIsChangedBehindTheJournalsBackShows(t *testing.T) {
	for name, tamper := range map[string]string{
		"who decided":           `UPDATE entries SET decided_by = 'rule "x"' WHERE id = 2`,
		"a reason":              `UPDATE entries SET reason = '' WHERE id = 3`,
		"a time":                `UPDATE entries SET at = at + 1 WHERE id = 3`,
		"an entry taken out":    `DELETE FROM entries WHERE id = 3`,
		"the last ones taken":   `DELETE FROM entries WHERE hold = 4`,
		"two swapped":           `UPDATE entries SET id = -1 WHERE id = 3; UPDATE entries SET id = 3 WHERE id = 4; UPDATE entries SET id = 4 WHERE id = -1`,
		"one put in":            `INSERT INTO entries SELECT 1000, hold, at, step, reason, decision, decided_by, words, acceptance, refusal, execution, delivery, closed, evidence, hash FROM entries WHERE id = 5`,
		"a row of facts":        `UPDATE holds SET decided_by = 'rule "x"' WHERE id = 1`,
		"what was asked":        `UPDATE payloads SET body = '{"command":"ls"}' WHERE id = 1`,
		"where it came from":    `UPDATE holds SET session = 'other' WHERE id = 1`,
		"what was shown":        `UPDATE holds SET shown = '{}' WHERE id = 1`,
		"the digest":            `UPDATE holds SET digest = 'x' WHERE id = 3`,
		"what was put in place": `UPDATE holds SET edited = NULL WHERE id = 2`,
		"an outcome":            `UPDATE items SET outcome = replace(outcome, '"exit":', '"exit":1') WHERE id = 1`,
		"a result":              `UPDATE items SET result = 'null' WHERE id = 1`,
		"that it ran":           `DROP TRIGGER items_execution; UPDATE items SET execution = 'not started' WHERE id = 1`,
		"evidence":              `UPDATE entries SET evidence = NULL WHERE id = 1`,
		"all hashes of one":     `UPDATE entries SET hash = NULL WHERE id = 4`,
	} {
		t.Run(name, func(t *testing.T) {
			s, path := played(t)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite3", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(`DROP TRIGGER entries_stay; ` + tamper); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if v := verified(t, reopened(t, path), ""); len(v.Problems) == 0 {
				t.Error("nothing shows")
			}
		})
	}
}

func TestAnEntryCannotBeChangedByAStatement(t *testing.T) {
	s, _ := played(t)
	err := s.writer.do(t.Context(), func(w *writer) error {
		_, err := w.exec(`UPDATE entries SET reason = 'x' WHERE id = 1`)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "stays as it was written") {
		t.Errorf("%v", err)
	}
}

func TestAFileOfEveryEarlierVersionIsBroughtUpToDate(t *testing.T) {
	for version := int64(1); version < 4; version++ {
		path := filepath.Join(t.TempDir(), "journal.db")
		old(t, path, version)
		s := reopened(t, path)
		h, err := s.Hold(t.Context(), 1)
		if err != nil || h.Item.ID != "i" || h.Shown.Explanation.Reason != "" || h.Edited != nil {
			t.Errorf("from version %d: %+v, %v", version, h, err)
		}
		open(t, s, claimed("new", "true")).must(worker.StepDecided, nil, approve)
		if v := verified(t, s, ""); len(v.Problems) != 0 || v.Older != 1 || v.Entries != 2 {
			t.Errorf("from version %d: %+v", version, v)
		}
	}
}

// old makes a file as a program of an earlier version left it.
func old(t *testing.T, path string, version int64) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(context.Background(), version); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`
		INSERT INTO payloads (id, body) VALUES (1, '{}');
		INSERT INTO items (id, origin, item_id, kind, payload) VALUES (1, 'o', 'i', 'exec', 1);
		INSERT INTO holds (item, payload, connection, environment, worker_id, session, kind, claim_status, digest, work_dir,
			output_path, returned, decision, decided_by, words, acceptance, refusal, delivery, closed, status)
		VALUES (1, 1, 'c', '', 'w', 's', 'exec', '', 'd', '/', '', 0, 'undecided', '', '', 'not asked', '', 'nothing to deliver', 0, '');
		INSERT INTO entries (hold, step, reason, decision, decided_by, words, acceptance, refusal, execution, delivery, closed)
		VALUES (1, 'claimed', '', 'undecided', '', '', 'not asked', '', 'not started', 'nothing to deliver', 0)`); err != nil {
		t.Fatal(err)
	}
}
