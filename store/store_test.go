package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"countersign/worker"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashVariable); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 9, 28, 12, 0, 0, 123_000, time.UTC)

// opened opens a store in a directory of the test's own.
func opened(tb testing.TB) *Store {
	tb.Helper()
	return reopened(tb, filepath.Join(tb.TempDir(), "data", "countersign.db"))
}

func reopened(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// claimed is a hold as the engine opens it.
func claimed(itemID, command string) worker.Hold {
	payload, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return worker.Hold{
		Connection: "home", Origin: "http://127.0.0.1:3000", Environment: "env", WorkerID: "cs-1",
		Item: worker.Item{
			ID: itemID, SessionID: "sess_1", Kind: "exec", Payload: payload,
			CreatedAt: noon, ClaimedAt: noon.Add(time.Second), ClaimStatus: "claimed",
		},
		Digest: "d1", WorkDir: "/work", OutputPath: "/out/1", OpenedAt: noon.Add(2 * time.Second),
		Facts: worker.Facts{
			Decision: worker.Undecided, Acceptance: worker.NotAsked,
			Execution: worker.NotStarted, Delivery: worker.NothingToDeliver,
		},
	}
}

func TestTheFileIsOnlyForItsUserAndEveryConnectionIsSetUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b ?#%41")
	path := filepath.Join(dir, "countersign.db")
	s := reopened(t, path)
	if _, err := s.WorkerID(t.Context(), "o", "e"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, path: 0o600, path + "-wal": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for pragma, want := range map[string]string{
		"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000",
	} {
		var got string
		err := s.writer.do(t.Context(), func(w *writer) error { return w.row("PRAGMA "+pragma, nil, &got) })
		if err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", pragma, got, err, want)
		}
	}
	if _, err := s.reading.Exec(`DELETE FROM settings`); err == nil {
		t.Error("a reading connection could write")
	}
}

func TestAFileOthersCouldReadIsMadePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reopened(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAFileOfANewerProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := reopened(t, path)
	err := s.writer.do(t.Context(), func(w *writer) error {
		_, err := w.exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err = Open(t.Context(), path)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "999") {
		t.Errorf("got %v", err)
	}
}

func TestADamagedFileIsNamedAndLeftAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	garbage := []byte(strings.Repeat("this is no database. ", 500))
	if err := os.WriteFile(path, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	if !errors.Is(err, ErrDamage) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(garbage) {
		t.Errorf("the file was changed: %d bytes, %v", len(kept), err)
	}
}

func TestDamageFoundLaterIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := reopened(t, path)
	for i := range 200 {
		if _, err := s.Open(t.Context(), claimed(fmt.Sprint("i", i), strings.Repeat("x", 500)), ""); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	junk := []byte(strings.Repeat("\xa5", int(info.Size())-40*4096))
	if _, err := f.WriteAt(junk, 40*4096); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), path)
	if err == nil {
		defer s.Close()
		_, err = s.Find(t.Context(), worker.HistoryQuery{})
	}
	if !errors.Is(err, ErrDamage) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryInPlaceOfTheFileIsSaid(t *testing.T) {
	path := t.TempDir()
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestTheWorkerIDIsMadeOncePerEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := reopened(t, path)
	id := func(s *Store, origin, environment string) string {
		t.Helper()
		id, err := s.WorkerID(t.Context(), origin, environment)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := id(s, "http://a", "e")
	if len(first) != len("cs-")+16 || !strings.HasPrefix(first, "cs-") {
		t.Errorf("id %q", first)
	}
	if other := id(s, "http://a", "f"); other == first {
		t.Error("two environments share an id")
	}
	if other := id(s, "http://b", "e"); other == first {
		t.Error("two harnesses share an id")
	}
	s.Close()
	if again := id(reopened(t, path), "http://a", "e"); again != first {
		t.Errorf("after a restart %q, before %q", again, first)
	}
}

func TestAPauseIsRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := reopened(t, path)
	check := func(want bool, wantUntil time.Time) {
		t.Helper()
		paused, until, err := s.Paused(t.Context())
		if err != nil || paused != want || !until.Equal(wantUntil) {
			t.Errorf("got %v, %v, %v", paused, until, err)
		}
	}
	set := func(paused bool, until time.Time) {
		t.Helper()
		if err := s.SetPaused(t.Context(), paused, until); err != nil {
			t.Fatal(err)
		}
	}
	check(false, time.Time{})
	set(true, noon)
	check(true, noon)
	set(true, time.Time{})
	s.Close()
	s = reopened(t, path)
	check(true, time.Time{})
	set(false, time.Time{})
	check(false, time.Time{})
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := opened(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	if _, err := s.Open(t.Context(), claimed("i", "c"), ""); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
