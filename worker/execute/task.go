package execute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/worker/api/wire"
)

// Limits of an exec item's time limit (PROTOCOL.md §4).
const (
	DefaultTimeLimit = 300 * time.Second
	LongestTimeLimit = 24 * time.Hour
)

// Task is one tool call, decoded: exactly what Run does, and therefore what an
// operator is to be shown. Fields that its kind does not have are empty.
type Task struct {
	Kind      string            // exec, read, write or list
	Command   string            // exec
	Cwd       string            // exec: as asked for, "" for the root
	Env       map[string]string // exec: additions to the environment
	TimeLimit time.Duration     // exec: never zero
	Path      string            // read, write, list: as asked for
	Content   string            // write
}

// Unfit says, in words for an operator and for an agent, why an item is work
// that this worker cannot do. Nothing of it ran.
type Unfit struct{ Reason string }

func (u *Unfit) Error() string { return u.Reason }

func unfit(format string, args ...any) *Unfit {
	return &Unfit{Reason: fmt.Sprintf(format, args...)}
}

// Decode turns a work item's kind and payload into a Task (PROTOCOL.md §4). It
// has no effects. Every error is an *Unfit.
//
// Names are matched exactly and unknown ones are ignored. A timeout of 0 means
// the default.
func Decode(kind string, payload json.RawMessage) (Task, error) {
	decode, ok := decoders[kind]
	if !ok {
		return Task{}, unfit("work of kind %q cannot be done by this worker", kind)
	}
	f, err := decodeFields(payload)
	if err != nil {
		return Task{}, err
	}
	t := Task{Kind: kind}
	if err := decode(f, &t); err != nil {
		return Task{}, err
	}
	return t, nil
}

var decoders = map[string]func(fields, *Task) error{
	wire.KindExec:  decodeExec,
	wire.KindRead:  decodeRead,
	wire.KindWrite: decodeWrite,
	wire.KindList:  decodeList,
}

func decodeExec(f fields, t *Task) (err error) {
	if t.Command, _, err = f.text("command"); err != nil {
		return err
	}
	if strings.TrimSpace(t.Command) == "" {
		return unfit("the payload has no command")
	}
	if t.Cwd, _, err = f.text("cwd"); err != nil {
		return err
	}
	if t.TimeLimit, err = f.timeLimit(); err != nil {
		return err
	}
	t.Env, err = f.environment()
	return err
}

func decodeRead(f fields, t *Task) error { return f.path(&t.Path) }

func decodeWrite(f fields, t *Task) error {
	if err := f.path(&t.Path); err != nil {
		return err
	}
	content, given, err := f.string("content")
	if err == nil && !given {
		err = unfit("the payload has no content")
	}
	t.Content = content
	return err
}

func decodeList(f fields, t *Task) error {
	path, _, err := f.text("path")
	if t.Path = path; path == "" {
		t.Path = "."
	}
	return err
}

// fields are the members of a payload. They are taken apart by hand because
// encoding/json matches struct fields in any case: "COMMAND" would be a command.
type fields map[string]json.RawMessage

func decodeFields(payload json.RawMessage) (fields, error) {
	payload = bytes.TrimSpace(payload)
	if len(payload) == 0 || bytes.Equal(payload, []byte("null")) {
		return nil, unfit("the item has no payload")
	}
	// encoding/json would replace broken bytes and run something else.
	if !utf8.Valid(payload) {
		return nil, unfit("the payload is not valid UTF-8")
	}
	var f fields
	if err := json.Unmarshal(payload, &f); err != nil {
		return nil, unfit("the payload is not a JSON object: %v", err)
	}
	return f, nil
}

// given returns a member, and whether there is one that is not null.
func (f fields) given(name string) (json.RawMessage, bool) {
	raw, ok := f[name]
	return raw, ok && !bytes.Equal(raw, []byte("null"))
}

func (f fields) string(name string) (s string, given bool, err error) {
	raw, ok := f.given(name)
	if !ok {
		return "", false, nil
	}
	if json.Unmarshal(raw, &s) != nil {
		return "", true, unfit("the payload's %s is not a string", name)
	}
	return s, true, nil
}

// text is a string for the operating system, which cannot pass on a NUL.
func (f fields) text(name string) (s string, given bool, err error) {
	s, given, err = f.string(name)
	if err == nil && strings.ContainsRune(s, 0) {
		err = unfit("the payload's %s has a NUL character in it", name)
	}
	return s, given, err
}

func (f fields) path(to *string) error {
	path, _, err := f.text("path")
	if err == nil && path == "" {
		err = unfit("the payload has no path")
	}
	*to = path
	return err
}

func (f fields) timeLimit() (time.Duration, error) {
	raw, ok := f.given("timeout")
	if !ok {
		return DefaultTimeLimit, nil
	}
	var ms float64
	if json.Unmarshal(raw, &ms) != nil {
		return 0, unfit("the payload's timeout is not a number of milliseconds")
	}
	switch {
	case ms < 0:
		return 0, unfit("the payload's timeout is negative")
	case ms > float64(LongestTimeLimit/time.Millisecond):
		return 0, unfit("the payload's timeout is longer than %v", LongestTimeLimit)
	case ms == 0:
		return DefaultTimeLimit, nil
	}
	return time.Duration(math.Ceil(ms)) * time.Millisecond, nil
}

func (f fields) environment() (map[string]string, error) {
	raw, ok := f.given("env")
	if !ok {
		return nil, nil
	}
	var values map[string]*string
	if json.Unmarshal(raw, &values) != nil {
		return nil, unfit("the payload's env is not an object of strings")
	}
	env := make(map[string]string, len(values))
	for name, value := range values {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return nil, unfit("the payload's env has a variable named %q, which cannot be set", name)
		case value == nil:
			return nil, unfit("the payload's env gives %s no value", name)
		case strings.ContainsRune(*value, 0):
			return nil, unfit("the payload's env gives %s a value with a NUL character in it", name)
		}
		env[name] = *value
	}
	return env, nil
}
