package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

// test runs one [[test]] of a rule file. Tests look at no file and no program,
// so that they say the same on every machine and on every day.
func (l *loader) test(at string, t rawTest) {
	head := l.lines.key(at, "")
	item, err := t.item()
	if err != nil {
		l.fail(head, "%v", err)
		return
	}
	for _, v := range t.Expect {
		if v := Verdict(v); v != Allow && v != Ask && v != Deny {
			l.fail(l.lines.key(at, "expect"), "a test expects %q, which is none of allow, ask and deny", v)
			return
		}
	}
	if len(t.Expect) == 0 {
		l.fail(head, "a test needs to expect allow, ask or deny")
		return
	}
	e := (&judging{r: l.r, item: item, dry: true, now: time.Time{}}).explain()
	if !slices.Contains(t.Expect, string(e.Verdict)) {
		l.fail(head, "test failed: %s %q: expected %s, the rules say %s: %s", item.Kind, item.Command+item.Path,
			strings.Join(t.Expect, " or "), e.Verdict, e.Reason)
	}
}

func (t rawTest) item() (Item, error) {
	i := Item{Connection: t.Connection, Session: t.Session}
	given := 0
	for kind, s := range map[string]*string{wire.KindExec: t.Command, wire.KindRead: t.Read, wire.KindWrite: t.Write, wire.KindList: t.List} {
		if s == nil {
			continue
		}
		given++
		i.Task = execute.Task{Kind: kind, Path: *s}
		if kind == wire.KindExec {
			i.Task = execute.Task{Kind: kind, Command: *s, Cwd: t.Cwd, Env: t.Env, TimeLimit: execute.DefaultTimeLimit}
		}
	}
	if given != 1 {
		return i, fmt.Errorf("a test needs one of command, read, write and list")
	}
	return i, nil
}
