package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filesOpen counts this process's open files below a directory.
func filesOpen(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not say which files are open")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func TestAClosedStoreHoldsNoFiles(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	ta := open(t, s, claimed("i1", "make")).accepted()
	ta.hold()
	ta.entries()
	if filesOpen(t, dir) == 0 {
		t.Fatal("an open store holds no files")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := filesOpen(t, dir); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}
