package execute

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestDecodeTakesWhatTheProtocolNames(t *testing.T) {
	for _, c := range []struct {
		kind, payload string
		want          Task
	}{
		{"exec", `{"command":"ls"}`, Task{Kind: "exec", Command: "ls", TimeLimit: 300 * time.Second}},
		{"exec", `{"command":" ls\n","cwd":"/a","env":{"A":"1","B":""},"timeout":1500,"new":[]}`,
			Task{Kind: "exec", Command: " ls\n", Cwd: "/a", Env: map[string]string{"A": "1", "B": ""}, TimeLimit: 1500 * time.Millisecond}},
		{"exec", `{"command":"ls","cwd":null,"env":null,"timeout":null}`, Task{Kind: "exec", Command: "ls", TimeLimit: 300 * time.Second}},
		{"exec", `{"command":"ls","timeout":0}`, Task{Kind: "exec", Command: "ls", TimeLimit: 300 * time.Second}},
		{"exec", `{"command":"ls","timeout":0.5}`, Task{Kind: "exec", Command: "ls", TimeLimit: time.Millisecond}},
		{"exec", `{"command":"ls","COMMAND":"rm"}`, Task{Kind: "exec", Command: "ls", TimeLimit: 300 * time.Second}},
		{"read", `{"path":"a/b"}`, Task{Kind: "read", Path: "a/b"}},
		{"write", `{"path":"a","content":""}`, Task{Kind: "write", Path: "a"}},
		{"write", `{"path":"a","content":"x\u0000"}`, Task{Kind: "write", Path: "a", Content: "x\x00"}},
		{"list", `{}`, Task{Kind: "list", Path: "."}},
		{"list", `{"path":""}`, Task{Kind: "list", Path: "."}},
		{"list", `{"path":"/src"}`, Task{Kind: "list", Path: "/src"}},
	} {
		got, err := Decode(c.kind, json.RawMessage(c.payload))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Decode(%s, %s) = %+v, %v, want %+v", c.kind, c.payload, got, err, c.want)
		}
	}
}

func TestDecodeSaysWhatIsUnfit(t *testing.T) {
	for _, c := range []struct{ kind, payload, want string }{
		{"custom_tool", `{"tool_name":"x"}`, `work of kind "custom_tool" cannot be done by this worker`},
		{"", `{}`, `work of kind "" cannot be done by this worker`},
		{"Exec", `{"command":"ls"}`, `cannot be done by this worker`},
		{"exec", ``, "the item has no payload"},
		{"exec", `null`, "the item has no payload"},
		{"exec", `"ls"`, "not a JSON object"},
		{"exec", `{"command":`, "not a JSON object"},
		{"exec", "{\"command\":\"\xff\"}", "not valid UTF-8"},
		{"exec", `{}`, "no command"},
		{"exec", `{"command":" \n"}`, "no command"},
		{"exec", `{"command":["ls"]}`, "command is not a string"},
		{"exec", `{"command":"l\u0000s"}`, "command has a NUL character"},
		{"exec", `{"command":"ls","cwd":"a\u0000"}`, "cwd has a NUL character"},
		{"exec", `{"command":"ls","timeout":-1}`, "timeout is negative"},
		{"exec", `{"command":"ls","timeout":1e300}`, "timeout is longer than 24h"},
		{"exec", `{"command":"ls","timeout":"5"}`, "timeout is not a number"},
		{"exec", `{"command":"ls","env":[]}`, "env is not an object of strings"},
		{"exec", `{"command":"ls","env":{"A":1}}`, "env is not an object of strings"},
		{"exec", `{"command":"ls","env":{"A":null}}`, "env gives A no value"},
		{"exec", `{"command":"ls","env":{"":"x"}}`, `a variable named ""`},
		{"exec", `{"command":"ls","env":{"A=B":"x"}}`, `a variable named "A=B"`},
		{"exec", `{"command":"ls","env":{"A\u0000":"x"}}`, `a variable named "A\x00"`},
		{"exec", `{"command":"ls","env":{"A":"\u0000"}}`, "A a value with a NUL"},
		{"read", `{}`, "no path"},
		{"read", `{"path":"a\u0000"}`, "path has a NUL character"},
		{"write", `{"path":"a"}`, "no content"},
		{"write", `{"content":"a"}`, "no path"},
		{"list", `{"path":1}`, "path is not a string"},
	} {
		_, err := Decode(c.kind, json.RawMessage(c.payload))
		var u *Unfit
		if !errors.As(err, &u) || !strings.Contains(u.Reason, c.want) {
			t.Errorf("Decode(%s, %s) = %v, want an Unfit with %q", c.kind, c.payload, err, c.want)
		}
	}
}

func FuzzDecodeGivesARunnableTaskOrUnfit(f *testing.F) {
	for _, kind := range []string{"exec", "read", "write", "list", "custom_tool"} {
		f.Add(kind, `{"command":"ls","cwd":"a","env":{"A":"b"},"timeout":1,"path":"p","content":"c"}`)
		f.Add(kind, `null`)
	}
	f.Fuzz(func(t *testing.T, kind, payload string) {
		task, err := Decode(kind, json.RawMessage(payload))
		if err != nil {
			var u *Unfit
			if !errors.As(err, &u) || u.Reason == "" {
				t.Fatalf("not an Unfit with a reason: %v", err)
			}
			return
		}
		if strings.Contains(task.Command+task.Cwd+task.Path, "\x00") || !utf8.ValidString(task.Command+task.Content) {
			t.Fatalf("cannot be run as shown: %+v", task)
		}
		if task.Kind == "exec" && (task.TimeLimit <= 0 || task.TimeLimit > LongestTimeLimit || task.Command == "") {
			t.Fatalf("no command or no time limit: %+v", task)
		}
		if task.Kind != "exec" && task.Path == "" {
			t.Fatalf("no path: %+v", task)
		}
	})
}
