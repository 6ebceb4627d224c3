package store

import (
	"path/filepath"
	"testing"
)

func TestWhatGuardsTheMachineIsKeptForEachFileAndOutlastsARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := s.GuardsInForce("/c"); text != "" || err != nil {
		t.Errorf("what was never kept: %q, %v", text, err)
	}
	for _, kept := range [][2]string{{"/c", "first\n"}, {"/other", "another\n"}, {"/c", "second\n"}} {
		if err := s.KeepGuards(kept[0], kept[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for file, want := range map[string]string{"/c": "second\n", "/other": "another\n", "/third": ""} {
		if text, err := s.GuardsInForce(file); text != want || err != nil {
			t.Errorf("%s: kept %q, %v, want %q", file, text, err, want)
		}
	}
	if text, err := s.RulesInForce("/c"); text != nil || err != nil {
		t.Errorf("taken for rules: %q, %v", text, err)
	}
}
