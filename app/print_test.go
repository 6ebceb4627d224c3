package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// nasty is what an agent may send to take over a terminal or a reader.
const nasty = "echo \x1b[2J\x1b]0;owned\a\u202Egnp.exe\u009b😀"

func nastyHold() worker.Hold {
	payload, err := json.Marshal(map[string]any{"command": nasty + "\nrm -rf x", "cwd": "a\x1bb", "env": map[string]string{"E": "\x1b[1m"}})
	if err != nil {
		panic(err)
	}
	return worker.Hold{
		ID: 7, Connection: "c", Origin: "http://127.0.0.1:3000", Digest: "0123456789abcdef", WorkDir: "/w",
		Item:     worker.Item{ID: "work_\x1b", SessionID: "=sess\x1b\u202E", Kind: "exec", Payload: payload},
		OpenedAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		Facts:    worker.Facts{Decision: worker.Undecided, Execution: worker.NotStarted, Words: "\x1bwords"},
		Outcome:  &execute.Outcome{How: execute.Ended, Reason: "\x1breason"},
	}
}

// safe fails for anything that a terminal would obey or draw out of order.
func safe(t *testing.T, where, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r == '\u202E' }); i >= 0 {
		t.Errorf("%s printed %q", where, text[i:])
	}
}

func TestWhatAnAgentWroteIsPrintedSafely(t *testing.T) {
	view := worker.View{Hold: nastyHold(), Word: worker.WordWaiting, Lease: time.Minute, DecisionLeft: time.Minute,
		Steps: []worker.Entry{{Step: worker.StepClaimed, Reason: "\x1breason"}}}
	status := control.Status{Version: "v", Snapshot: worker.Snapshot{
		Waiting:     []worker.View{view},
		Connections: []worker.ConnectionView{{Name: "c", Origin: "http://h", Detail: "\x1b[2Jdetail", WorkDir: "/w\x1b"}},
	}}
	var ps, show, history, csv, lines, asJSON bytes.Buffer
	if err := writeStatus(&ps, status, &policy.RulesState{Broken: "x\x1b"}, "countersign"); err != nil {
		t.Fatal(err)
	}
	view.Changed, view.Grantable = true, true
	view.Steps = append(view.Steps, worker.Entry{Step: worker.StepChanged, Reason: "changed: \x1b"})
	view.Edited = json.RawMessage(`{"command":"ls \\u001b"}`)
	view.Shown = worker.Shown{
		Explanation: policy.Explanation{Verdict: policy.Ask, Reason: "\x1bwhy", Parts: []policy.Part{{Text: "rm\x1b\u202E", Verdict: policy.Ask, Reason: "\x1b"}}},
		Files:       []execute.Fingerprint{{Path: "x\x1b.sh", State: execute.StateRegular, SHA256: "0123456789abcdef"}},
	}
	disk := execute.Preview{Kind: "write", Fails: "is \x1b", Leads: "\x1b", Diff: execute.Diff{Hunks: []execute.Hunk{{Lines: []execute.DiffLine{{Op: execute.Added, Text: "\x1b\u202Eline"}}}}}}
	writeView(&show, view, &disk, "countersign")
	for _, want := range []string{"\n  ask    rm", "\n  │ + ", "It was approved, and then changed", "x‹ESC›.sh", "--session", "What ran instead"} {
		if !strings.Contains(show.String(), want) {
			t.Errorf("%q is not in %s", want, show.String())
		}
	}
	holds := []worker.Hold{view.Hold}
	for _, err := range []error{writeHistory(&history, holds, worker.Hold.Status), writeCSV(&csv, holds, worker.Hold.Status), writeJSONLines(&lines, holds, worker.Hold.Status)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writeASCII(&asJSON, listing(status, &policy.RulesState{Broken: "x\x1b"})); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"ps": ps.String(), "show": show.String(), "history": history.String(), "history --csv": csv.String(),
	} {
		safe(t, where, text)
	}
	for where, text := range map[string]string{"ps --json": asJSON.String(), "history --json": lines.String()} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r > '~' }); i >= 0 {
			t.Errorf("%s printed %q", where, text[i:])
		}
		var back any
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Errorf("%s is not JSON: %v", where, err)
		}
	}
	if !strings.Contains(csv.String(), ",'=sess") {
		t.Errorf("a formula is left in the CSV: %s", csv.String())
	}
}

func TestShowDrawsTheWholeCommandAndTheCodeThatApprovesIt(t *testing.T) {
	var out bytes.Buffer
	writeView(&out, worker.View{Hold: nastyHold(), Word: worker.WordWaiting}, nil, "countersign")
	for _, want := range []string{"\n  │ rm -rf x\n", "countersign approve 7 0123456789ab\n", "work directory  /w\n", "environment     E="} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
}

func TestShowNamesEveryWayToAnswer(t *testing.T) {
	for kind, want := range map[string]string{"exec": "--session --always --edited", "read": "--session --reads --always"} {
		v := worker.View{Hold: nastyHold(), Word: worker.WordWaiting, Grantable: true}
		if v.Item.Kind = kind; kind == "read" {
			v.Item.Payload = json.RawMessage(`{"path":"a"}`)
		}
		var out bytes.Buffer
		writeView(&out, v, nil, "countersign")
		var flags []string
		for line := range strings.SplitSeq(out.String(), "\n") {
			if _, flag, found := strings.Cut(line, "approve 7 0123456789ab --"); found {
				flags = append(flags, "--"+strings.Fields(flag)[0])
			}
		}
		if got := strings.Join(flags, " "); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if !strings.Contains(out.String(), "countersign release 7\n") {
			t.Errorf("%s: nothing of a release", kind)
		}
	}
}

func TestSinceIsADateATimeOrHowLongAgo(t *testing.T) {
	now := time.Date(2030, 5, 6, 12, 0, 0, 0, time.Local)
	for s, want := range map[string]time.Time{
		"24h":                  now.Add(-24 * time.Hour),
		"2030-05-01":           time.Date(2030, 5, 1, 0, 0, 0, 0, time.Local),
		"2030-05-01 13:30":     time.Date(2030, 5, 1, 13, 30, 0, 0, time.Local),
		"2030-05-01T13:30:00Z": time.Date(2030, 5, 1, 13, 30, 0, 0, time.UTC),
	} {
		if got, err := parseSince(s, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %s, %v", s, got, err)
		}
	}
	if _, err := parseSince("-1h", now); err == nil {
		t.Error("a time to come was taken")
	}
}

func TestTimesThatThereAreNotAreLeftOutOfTheJSON(t *testing.T) {
	h := nastyHold()
	h.Outcome = &execute.Outcome{How: execute.Lost}
	var out bytes.Buffer
	if err := writeJSONLines(&out, []worker.Hold{h}, worker.Hold.Status); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "0001-01-01") {
		t.Errorf("printed %s", out.String())
	}
}

func TestAnAgeThatCannotBeKnownIsCalledSo(t *testing.T) {
	v := worker.View{Age: time.Minute}
	if got := age(v); got != "unknown" {
		t.Errorf("without a time of creation: %s", got)
	}
	v.Item.CreatedAt = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	if got := age(v); got != "1m0s" {
		t.Errorf("got %s", got)
	}
	v.Age = 227126 * time.Hour
	if got := age(v); got != "unknown" {
		t.Errorf("of a clock far off: %s", got)
	}
}

func TestAnotherDataDirectoryIsPartOfWhatIsSuggested(t *testing.T) {
	for dir, want := range map[string]string{
		"":                   "countersign",
		defaultPlace().data:  "countersign",
		"/tmp/a b'c":         `countersign --data-dir '/tmp/a b'\''c'`,
		"/tmp/plain-dir/d_1": "countersign --data-dir /tmp/plain-dir/d_1",
	} {
		if got := (&global{DataDir: dir}).self(); got != want {
			t.Errorf("%q: got %s", dir, got)
		}
	}
}
