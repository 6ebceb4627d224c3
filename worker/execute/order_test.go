//go:build unix

package execute

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Two pipes tell no order of what came at once. Each alone is in its order, and
// what was read before the other was printed stands before it.
func TestATranscriptHasTheStreamsInTheOrderInWhichTheyWereRead(t *testing.T) {
	r := newRunner(t)
	path := filepath.Join(t.TempDir(), "transcript")
	seen := func(what string) string {
		return fmt.Sprintf("until grep -q %s '%s'; do sleep 0.01; done 2>/dev/null; ", what, path)
	}
	command := "echo out1; " + seen("out1") + "echo err2 >&2; " + seen("err2") + "echo out3; " + seen("out3") + "echo err4 >&2; " + seen("err4") +
		"i=0; while [ $i -lt 100 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
	if o := r.Run(t.Context(), sh(command), path); o.How != Ended || o.Exit != 0 {
		t.Fatalf("outcome %+v", o)
	}
	tr, err := OpenTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	lines, err := tr.Lines(0, 1000)
	if err != nil || len(lines) != 204 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	var first []string
	next := map[bool]int{}
	for i, l := range lines {
		text := string(l.Text)
		if i < 4 {
			first = append(first, text)
			continue
		}
		if want := fmt.Sprintf("%c%d", "oe"[map[bool]int{false: 0, true: 1}[l.Stderr]], next[l.Stderr]); text != want {
			t.Errorf("line %d is %q, want %q", i, text, want)
		}
		next[l.Stderr]++
	}
	if got := strings.Join(first, " "); got != "out1 err2 out3 err4" {
		t.Errorf("the first lines are %q", got)
	}
}
