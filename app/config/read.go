package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
)

// maxFile bounds a configuration file; more than this is a mistake.
const maxFile = 1 << 20

// Read reads a configuration file. A file that is not there is an empty one.
// The error joins an *Invalid for every value that cannot be used, in the order
// of their lines.
func Read(path string) (Config, error) {
	text, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Default(), nil
	case errors.Is(err, errNotSmall):
		return Config{}, &Invalid{File: path, Expected: err.Error()}
	case err != nil:
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, text)
}

var errNotSmall = errors.New("expected a text file of at most 1 MB")

// readSmall returns the text of a file of ours. It waits for nobody at the other
// end of a pipe, and reads no more than such a file may have.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errNotSmall
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// Parse reads the text of a configuration file; name stands for it in errors.
func Parse(name string, text []byte) (Config, error) {
	r := &reader{file: name, lines: locate(text)}
	var raw map[string]any
	if _, err := toml.NewDecoder(bytes.NewReader(text)).Decode(&raw); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return Config{}, &Invalid{File: name, Line: parse.Position.Line, Expected: parse.Message}
		}
		return Config{}, &Invalid{File: name, Expected: err.Error()}
	}
	c := Default()
	fields := map[string]setter{"log-level": level(&c.LogLevel), "connection": r.connections(&c.Connections)}
	r.homes = map[string]string{"log-level": "before the first line in brackets"}
	for key := range connectionFields(&Connection{}) {
		r.homes[key] = "into [[connection]]: below that line"
	}
	for name, settings := range sections(&c) {
		fields[name] = r.section(name, settings)
		for key := range settings {
			r.homes[key] = "into [" + name + "]: below that line"
		}
	}
	r.table("", raw, fields)
	if len(r.errs) > 0 {
		return Config{}, r.joined()
	}
	return c, nil
}

// sections are the tables that there is one of, with their settings.
func sections(c *Config) map[string]map[string]setter {
	return map[string]map[string]setter{
		"environment": {"pass": names(&c.Environment.Pass), "remove": names(&c.Environment.Remove)},
		"confinement": {
			"confine": boolean(&c.Confinement.Confine), "writable": places(&c.Confinement.Writable), "caches": presets(&c.Confinement.Caches)},
		"notifications": {"waiting": choice(&c.Notifications.Waiting, "off", "first", "every")},
		"limits": {
			"stop-grace":       duration(&c.Limits.StopGrace, 100*time.Millisecond, time.Minute),
			"report-bytes":     integer(&c.Limits.ReportBytes, 1024, 16<<20),
			"transcript-bytes": integer(&c.Limits.TranscriptBytes, 1024, 4<<30),
			"read-bytes":       integer(&c.Limits.ReadBytes, 1024, 64<<20),
			"list-entries":     integer(&c.Limits.ListEntries, 1, 1_000_000),
		},
	}
}

// connectionFields are the settings of a connection.
func connectionFields(c *Connection) map[string]setter {
	return map[string]setter{
		"name":             text(&c.Name, "a name", 64),
		"harness":          origin(&c.Harness),
		"environment-id":   text(&c.EnvironmentID, "an environment id", 256),
		"workdir":          directory(&c.WorkDir),
		"max-held":         integer(&c.MaxHeld, 1, maxHeld),
		"max-running":      integer(&c.MaxRunning, 1, maxRunning),
		"lease-ms":         milliseconds(&c.Lease, minLeaseMS, maxLeaseMS),
		"interval-ms":      milliseconds(&c.Interval, 1, MaxIntervalMS),
		"decision-timeout": duration(&c.DecisionTimeout, minDecision, maxDecision),
	}
}

// At is the error of a value of the connection at index i of a configuration
// file that was read well: what is wrong with it can be seen only where it is
// used. name is the connection's.
func At(file string, i int, key, name, value string, wrong error) *Invalid {
	bad := &Invalid{File: file, Name: fmt.Sprintf("connection.%s of %q", key, name), Value: fmt.Sprintf("%q", value), Expected: wrong.Error()}
	if text, err := os.ReadFile(file); err == nil {
		r := reader{lines: locate(text)}
		bad.Line = r.line(fmt.Sprintf("connection[%d].%s", i, key))
	}
	return bad
}

// reader collects what is wrong with one file.
type reader struct {
	file  string
	lines map[string]int
	homes map[string]string // in words, where each setting belongs
	errs  []*Invalid
}

// errReported is returned by a setter whose parts have reported for themselves.
var errReported = errors.New("already reported")

func (r *reader) table(path string, t map[string]any, fields map[string]setter) {
	for key, value := range t {
		at := join(path, key)
		set, known := fields[key]
		if home := r.homes[key]; !known && home != "" {
			r.fail(at, value, "belongs "+home+", not here")
			continue
		}
		if !known {
			r.fail(at, value, "not a setting; expected one of "+strings.Join(sortedKeys(fields), ", "))
			continue
		}
		if err := set(value); err != nil && err != errReported {
			r.fail(at, value, err.Error())
		}
	}
}

func (r *reader) section(path string, fields map[string]setter) setter {
	return func(v any) error {
		t, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("expected a table, written [%s]", path)
		}
		r.table(path, t, fields)
		return nil
	}
}

func (r *reader) connections(to *[]Connection) setter {
	return func(v any) error {
		list, ok := v.([]map[string]any)
		if !ok {
			return errors.New("expected tables, each written [[connection]]")
		}
		for i, t := range list {
			*to = append(*to, r.connection(fmt.Sprintf("connection[%d]", i), t))
		}
		r.unique(*to)
		return nil
	}
}

func (r *reader) connection(path string, t map[string]any) Connection {
	c := DefaultConnection()
	before := len(r.errs)
	r.table(path, t, connectionFields(&c))
	if len(r.errs) > before {
		return c
	}
	if c.Harness == "" {
		r.fail(join(path, "harness"), nil, "missing; expected the address of a harness")
	}
	if c.WorkDir == "" {
		r.fail(join(path, "workdir"), nil, "missing; expected the directory that commands run in")
	}
	if u, err := url.Parse(c.Harness); err == nil && c.Name == "" {
		c.Name = u.Host
	}
	return c
}

// unique refuses two connections that would claim from the same queue, or
// could not be told apart.
func (r *reader) unique(list []Connection) {
	ends, named := map[string]bool{}, map[string]bool{}
	for i, c := range list {
		path := fmt.Sprintf("connection[%d]", i)
		if ends[c.sameEnd()] && c.Harness != "" {
			r.fail(join(path, "harness"), c.Harness, "a second connection to this harness and environment-id; expected one")
		} else if named[c.Name] {
			r.fail(join(path, "name"), c.Name, "a second connection of this name; expected another name")
		}
		ends[c.sameEnd()], named[c.Name] = true, true
	}
}

func (r *reader) fail(path string, value any, expected string) {
	bad := &Invalid{File: r.file, Line: r.line(path), Name: withoutIndex(path), Expected: expected}
	switch v := value.(type) {
	case nil, map[string]any, []map[string]any:
	case string:
		bad.Value = clip(fmt.Sprintf("%q", withoutUser(v)))
	default:
		bad.Value = clip(fmt.Sprint(v))
	}
	r.errs = append(r.errs, bad)
}

func (r *reader) joined() error {
	slices.SortStableFunc(r.errs, func(a, b *Invalid) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Name, b.Name)
	})
	all := make([]error, len(r.errs))
	for i, e := range r.errs {
		all[i] = e
	}
	return errors.Join(all...)
}

// withoutUser takes the user name and password out of an address: an error is
// read by more people than the file.
func withoutUser(s string) string {
	scheme, rest, found := strings.Cut(s, "://")
	if at := strings.LastIndex(rest, "@"); found && at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return s
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func sortedKeys(m map[string]setter) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
