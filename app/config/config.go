// Package config holds what the operator has configured: the typed contents of
// config.toml with their defaults, the checks on every value, the watch that
// applies a change while Countersign runs, and where credentials come from.
package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// FileName is the name of the configuration file in the configuration
// directory.
const FileName = "config.toml"

// Config is a whole, valid configuration.
type Config struct {
	LogLevel      slog.Level
	Connections   []Connection
	Environment   Environment
	Confinement   Confinement
	Limits        Limits
	Notifications Notifications
}

// Connection is one harness and environment that work is claimed from.
type Connection struct {
	Name            string // unique; the harness's host and port unless given
	Harness         string // origin: in its one spelling
	EnvironmentID   string // "" where the harness has no environments
	WorkDir         string // as written; CheckWorkDir makes it canonical
	MaxHeld         int
	MaxRunning      int
	Lease           time.Duration
	DecisionTimeout time.Duration
	Interval        time.Duration // of polls; 0 lets the engine choose
}

// Environment says what of the operator's environment a command gets to see.
// Names may end in "*".
type Environment struct {
	Pass   []string // kept, though Countersign would remove them
	Remove []string // removed besides what Countersign always removes
}

// Confinement says where commands may write, where they are confined. Without it
// an approved command can do all that the operator can.
type Confinement struct {
	Confine  bool
	Writable []string // absolute or ~/: besides the work directory and a temporary one
	Caches   []string // presets by name: "go", "node", "python"
}

// Limits bound one tool call.
type Limits struct {
	StopGrace       time.Duration // between asking a command to end and killing it
	ReportBytes     int           // of each output stream in a report; the rest is cut and counted
	TranscriptBytes int           // of output kept for the history
	ReadBytes       int           // of a file that is read
	ListEntries     int           // of a listing
}

// Notifications says which events are told on the desktop.
type Notifications struct {
	Waiting string // "off", "first" or "every"
}

// Default is the configuration of an empty file: it has no connection.
func Default() Config {
	return Config{
		LogLevel: slog.LevelInfo,
		Limits: Limits{
			StopGrace:       5 * time.Second,
			ReportBytes:     256 << 10,
			TranscriptBytes: 64 << 20,
			ReadBytes:       10 << 20,
			ListEntries:     50_000,
		},
		Notifications: Notifications{Waiting: "first"},
	}
}

// DefaultConnection is a connection with nothing but its defaults.
func DefaultConnection() Connection {
	return Connection{
		MaxHeld:         8,
		MaxRunning:      2,
		Lease:           time.Minute,
		DecisionTimeout: 4 * time.Minute,
	}
}

// Invalid is a value that cannot be used. Its text names the setting, the
// value and what is expected instead, with file and line where there are any.
type Invalid struct {
	File     string // "" for a flag
	Line     int    // 0 where it is not known
	Name     string // a key path, or a flag with its dashes
	Value    string // as written; "" where there is none to show
	Expected string
}

func (e *Invalid) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Name != "" {
		b.WriteString(e.Name)
		if e.Value != "" {
			b.WriteString(" = " + e.Value)
		}
		b.WriteString(": ")
	}
	return b.String() + e.Expected
}

// sameEnd is one spelling for all connections that reach the same queue: the
// loopback names are one machine.
func (c Connection) sameEnd() string {
	u, err := url.Parse(c.Harness)
	if err != nil {
		return c.Harness + "\n" + c.EnvironmentID
	}
	host := u.Hostname()
	if host == "localhost" || host == "::1" {
		host = "127.0.0.1"
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return host + ":" + port + "\n" + c.EnvironmentID
}

// Exposed says whether others on the network can read what is said to the
// harness: it is neither on this machine nor encrypted.
func (c Connection) Exposed() bool {
	u, err := url.Parse(c.Harness)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// IntWithin returns an error that says what is expected unless low ≤ n ≤ high.
func IntWithin(n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("expected a whole number from %d to %d", low, high)
	}
	return nil
}

// OneLine returns an error that says what is expected unless s is a text of at
// most most bytes without control characters.
func OneLine(s, what string, most int) error {
	if s == "" || len(s) > most || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("expected %s: one line of 1 to %d bytes of text", what, most)
	}
	return nil
}

// DurationWithin returns an error that says what is expected unless
// low ≤ d ≤ high.
func DurationWithin(d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("expected a duration from %s to %s, such as \"90s\" or \"4m\"", short(low), short(high))
	}
	return nil
}

// short writes a duration without its zero units: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Check returns the first value of a connection that is outside its limits,
// named as name spells the key: "max-held" is "--max-held" on a command line.
func (c Connection) Check(name func(key string) string) error {
	for _, f := range []struct {
		key   string
		value any
		err   error
	}{
		{"max-held", c.MaxHeld, IntWithin(c.MaxHeld, 1, maxHeld)},
		{"max-running", c.MaxRunning, IntWithin(c.MaxRunning, 1, maxRunning)},
		{"lease-ms", c.Lease.Milliseconds(), IntWithin(int(c.Lease.Milliseconds()), minLeaseMS, maxLeaseMS)},
		{"interval-ms", c.Interval.Milliseconds(), IntWithin(int(c.Interval.Milliseconds()), 0, MaxIntervalMS)},
		{"decision-timeout", c.DecisionTimeout, DurationWithin(c.DecisionTimeout, minDecision, maxDecision)},
	} {
		if f.err != nil {
			return &Invalid{Name: name(f.key), Value: fmt.Sprint(f.value), Expected: f.err.Error()}
		}
	}
	return nil
}

// MaxIntervalMS is the longest time between polls that can be asked for, in
// milliseconds.
const MaxIntervalMS = 60_000

// What a value may be. A lease shorter than a fifth of a second could not be
// renewed in time on a busy machine.
const (
	maxHeld     = 1000
	maxRunning  = 64
	minLeaseMS  = 200
	maxLeaseMS  = 3_600_000
	minDecision = time.Second
	maxDecision = 24 * time.Hour
)
