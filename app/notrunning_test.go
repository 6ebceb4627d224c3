package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

type notified []string

func (n *notified) Notify(title, text string) error {
	*n = append(*n, title+": "+text)
	return errors.New("there is no notification service")
}

func TestAStartThatFailsIsToldOnTheDesktopInFixedWords(t *testing.T) {
	var n notified
	tellNotRunning(nil, &n)
	tellNotRunning(noDisplay{unusable: true}, &n)
	if len(n) != 0 {
		t.Fatalf("told %q", n)
	}
	tellNotRunning(errors.New("/home/op/secret-project: does not exist"), &n)
	if len(n) != 1 || !strings.Contains(n[0], "countersign doctor") || slices.ContainsFunc(n, func(s string) bool { return strings.Contains(s, "secret-project") }) {
		t.Errorf("told %q", n)
	}
}

func TestWithoutADisplayTheWorkerThatIsNamedIsTheConfiguredOne(t *testing.T) {
	for connected, want := range map[bool]string{true: "  countersign worker\n", false: "  countersign worker --harness http://127.0.0.1:3000 --workdir DIR\n"} {
		if said := (noDisplay{connected: connected}).Error(); !strings.Contains(said, want) {
			t.Errorf("with a connection %v: %s", connected, said)
		}
	}
}
