package policy

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// A commandCase is one line of testdata/corpus.txt.
type commandCase struct {
	line    int
	want    string // allow, ask, deny, or never: anything but allow
	command string
}

func corpus(t testing.TB) []commandCase {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []commandCase
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		want, command, ok := strings.Cut(line, "\t")
		if strings.HasPrefix(command, `"`) { // written as a Go string
			if command, err = strconv.Unquote(command); err != nil {
				ok = false
			}
		}
		if !ok {
			t.Fatalf("corpus.txt:%d: expected a verdict, a tab and a command", i+1)
		}
		all = append(all, commandCase{i + 1, want, command})
	}
	return all
}

func TestTheCorpusHasNoWrongAllowsAndFewNeedlessAsks(t *testing.T) {
	r := rulesOf(t, testContext(t), string(shipped(t, "starter", "developer"))+denies)
	everyday, needless, dangerous := 0, 0, 0
	all := corpus(t)
	for _, c := range all {
		e := r.Explain(command(c.command))
		switch c.want {
		case "allow":
			everyday++
			if e.Verdict != Allow {
				needless++
				t.Logf("corpus.txt:%d: needlessly %s: %q: %s", c.line, e.Verdict, c.command, e.Reason)
			}
			continue
		case "ask", "deny":
			if string(e.Verdict) != c.want {
				t.Errorf("corpus.txt:%d: %q is %s, want %s: %s", c.line, c.command, e.Verdict, c.want, e.Reason)
			}
		case "never":
		default:
			t.Fatalf("corpus.txt:%d: %q is no verdict", c.line, c.want)
		}
		dangerous++
		if e.Verdict == Allow {
			t.Errorf("corpus.txt:%d: wrongly allowed: %q", c.line, c.command)
		}
	}
	share := 100 * float64(needless) / float64(everyday)
	t.Logf("%d commands: %d everyday ones, of which %d (%.1f%%) ask needlessly; %d others, none allowed", len(all), everyday, needless, share, dangerous)
	if len(all) < 400 {
		t.Errorf("the corpus has %d commands, expected at least 400", len(all))
	}
	if share > 10 {
		t.Errorf("%.1f%% of the everyday commands ask needlessly, expected at most 10%%", share)
	}
}
