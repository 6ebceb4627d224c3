package store

import (
	"path/filepath"
	"testing"
	"time"

	"countersign/worker/policy"
)

func TestGrantsAndRulesOutlastARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	later := policy.Grant{ID: "b", Connection: "c", Session: "s", Exactly: "x", Text: "make", Made: now.Add(time.Minute)}
	for _, g := range []policy.Grant{later, {ID: "a", Session: "s", Under: ".", Made: now, Until: now.Add(time.Hour)}, {ID: "gone", Under: ".", Made: now}} {
		if err := s.SaveGrant(g); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.DropGrant("gone"); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := s.RulesInForce("/r"); text != nil || err != nil {
		t.Errorf("rules that were never kept: %q, %v", text, err)
	}
	for _, text := range []string{"some", ""} {
		if err := s.KeepRules("/r", []byte(text)); err != nil {
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
	got, err := s.Grants()
	if err != nil || len(got) != 2 || got[0].ID != "a" || got[1] != later {
		t.Errorf("kept %+v, %v", got, err)
	}
	if text, err := s.RulesInForce("/r"); text == nil || len(text) != 0 || err != nil {
		t.Errorf("no rules, kept as such: %v, %v", text, err)
	}
}
