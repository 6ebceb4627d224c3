package execute

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestANoteIsWhereAnAgentReadsIt(t *testing.T) {
	for _, c := range []struct{ result, want string }{
		{`{"exitCode":0,"stdout":"out","stderr":"err","timedOut":false,"aborted":false}`, `{"exitCode":0,"stdout":"out\nnote: x\n","stderr":"err","timedOut":false,"aborted":false}`},
		{`{"exitCode":2,"stdout":"out","stderr":"","timedOut":false,"aborted":false}`, `{"exitCode":2,"stdout":"out","stderr":"note: x\n","timedOut":false,"aborted":false}`},
		{`{"ok":true}`, `{"ok":true,"note":"note: x"}`},
		{`"a text"`, `"a text"`},
	} {
		if got := string(Annotate(Outcome{Result: json.RawMessage(c.result)}, "note: ", "x").Result); got != c.want {
			t.Errorf("%s became %s", c.result, got)
		}
	}
	failed := Annotate(Outcome{Failed: true, Result: json.RawMessage(`{"message":"no room"}`)}, "note: ", strings.Repeat("x", 1<<20))
	if s := string(failed.Result); !strings.Contains(s, `no room\nnote: xx`) || len(s) > 2*annotated {
		t.Errorf("%d bytes: %.60s", len(s), s)
	}
}
