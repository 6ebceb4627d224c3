package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestARuleFileThatIsNoFileHangsNothing(t *testing.T) {
	file, k := filepath.Join(t.TempDir(), "rules.toml"), &kept{}
	save(t, file, allowsTrue)
	s, b := sourced(t, file, k)
	if err := s.Load(false); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if !s.Look() || !strings.Contains(s.State().Broken, "expected a text file") || verdict(b, "true") != Allow {
		t.Errorf("a pipe: %+v", s.State())
	}
	if err := s.Add(command("false"), allowsFalse); err == nil {
		t.Error("a rule was added to a pipe")
	}
	if s, _ := sourced(t, file, k); s.Load(false) == nil {
		t.Error("a pipe was loaded")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	save(t, file, "")
	if err := os.Truncate(file, 8<<30); err != nil { // sparse
		t.Fatal(err)
	}
	if s.Look(); !strings.Contains(s.State().Broken, "at most 1 MB") {
		t.Errorf("8 GB: %+v", s.State())
	}
}
