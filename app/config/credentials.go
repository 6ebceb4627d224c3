package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/zalando/go-keyring"
)

// Names of the environment variables that carry credentials.
const (
	EnvironmentKeyVar = "MANAGED_AGENTS_ENVIRONMENT_KEY"
	APIKeyVar         = "MANAGED_AGENTS_API_KEY"
)

// CredentialsFile is the name of the file in the configuration directory that
// holds credentials where there is no keyring. It has a table for each
// connection's name, with environment-key and api-key.
const CredentialsFile = "credentials.toml"

// KeyringService is the service that entries of the system keyring stand under.
// Their user is "<origin> <environment id> environment-key" or "… api-key".
const KeyringService = "countersign"

// keyringPatience bounds one question to the keyring: a locked one waits for a
// person, and without a window nobody may be there.
const keyringPatience = 3 * time.Second

// Credentials are what a harness wants to see. They print as [secret].
type Credentials struct {
	EnvironmentKey string `toml:"environment-key"`
	APIKey         string `toml:"api-key"`
}

// String keeps the keys out of whatever prints them.
func (c Credentials) String() string { return "[secret]" }

// GoString keeps the keys out of %#v.
func (c Credentials) GoString() string { return "[secret]" }

// LogValue keeps the keys out of logs.
func (c Credentials) LogValue() slog.Value { return slog.StringValue("[secret]") }

// or fills what is missing from another source.
func (c Credentials) or(other Credentials) Credentials {
	if c.EnvironmentKey == "" {
		c.EnvironmentKey = other.EnvironmentKey
	}
	if c.APIKey == "" {
		c.APIKey = other.APIKey
	}
	return c
}

// Keyring reads one secret; keyring.ErrNotFound is the answer for none.
type Keyring func(service, user string) (string, error)

// SystemKeyring is the keyring of the desktop session, or one that finds
// nothing where there is no session bus to ask: asking would start one.
func SystemKeyring() Keyring {
	if runtime.GOOS == "linux" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		if _, err := os.Stat(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus")); err != nil || os.Getenv("XDG_RUNTIME_DIR") == "" {
			return func(string, string) (string, error) { return "", keyring.ErrNotFound }
		}
	}
	return keyring.Get
}

// FindCredentials gathers a connection's credentials: each from what was given
// (flags or the process environment), else from the keyring, else from the
// credentials file in dir. A keyring that is absent or does not answer in time
// is passed over with a line in the log; a credentials file that others can
// read is an error that says what to do.
func FindCredentials(ctx context.Context, c Connection, given Credentials, ring Keyring, dir string, log *slog.Logger) (Credentials, error) {
	found := given
	if found.EnvironmentKey == "" || found.APIKey == "" {
		inFile, err := readCredentials(filepath.Join(dir, CredentialsFile), c.Name)
		if err != nil {
			return Credentials{}, err
		}
		found = found.or(askKeyring(ctx, c, ring, log)).or(inFile)
	}
	return found, nil
}

func askKeyring(ctx context.Context, c Connection, ring Keyring, log *slog.Logger) Credentials {
	ctx, cancel := context.WithTimeout(ctx, keyringPatience)
	defer cancel()
	type answer struct {
		found Credentials
		err   error
	}
	answered := make(chan answer, 1) // one that answers too late is not waited for
	go func() {
		var a answer
		var err1, err2 error
		user := c.Harness + " " + c.EnvironmentID + " "
		a.found.EnvironmentKey, err1 = ring(KeyringService, user+"environment-key")
		a.found.APIKey, err2 = ring(KeyringService, user+"api-key")
		for _, err := range []error{err1, err2} {
			if err != nil && !errors.Is(err, keyring.ErrNotFound) {
				a.err = err
			}
		}
		answered <- a
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			log.Info("the keyring could not be asked; looking elsewhere for credentials", "connection", c.Name, "error", a.err)
		}
		return a.found
	case <-ctx.Done():
		log.Warn("the keyring did not answer in time; looking elsewhere for credentials", "connection", c.Name)
		return Credentials{}
	}
}

// StrayCredentials returns an error for each table of the credentials file in dir
// that none of the connections has the name of: its keys are used for nothing. A
// file that cannot be read has none here; FindCredentials tells of it.
func StrayCredentials(dir string, connections []string) (strays []*Invalid) {
	path := filepath.Join(dir, CredentialsFile)
	tables, lines, err := readTables(path)
	if err != nil {
		return nil
	}
	expected := "no connection has this name, so its keys are not used; expected one of " + strings.Join(connections, ", ")
	if len(connections) == 0 {
		expected = "no connection is configured, so its keys are not used"
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if !slices.Contains(connections, name) {
			strays = append(strays, &Invalid{File: path, Line: lines[bare(name)], Name: fmt.Sprintf("[%q]", name), Expected: expected})
		}
	}
	return strays
}

func readCredentials(path, connection string) (Credentials, error) {
	tables, _, err := readTables(path)
	return tables[connection], err
}

// readTables reads a credentials file, with the lines of its tables and keys. One
// that is not there is an empty one.
func readTables(path string) (tables map[string]Credentials, lines map[string]int, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the credentials: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("read the credentials: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, nil, &Invalid{File: path, Expected: fmt.Sprintf("can be opened by others (mode %04o); run: chmod 0600 %s", info.Mode().Perm(), path)}
	}
	if info.Size() > maxFile {
		return nil, nil, &Invalid{File: path, Expected: "expected a text file of at most 1 MB"}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, nil, fmt.Errorf("read the credentials: %w", err)
	}
	meta, err := toml.Decode(string(text), &tables)
	if err != nil {
		// The parser's own words would quote the line, and with it a key.
		bad := &Invalid{File: path, Expected: "expected [connection name] tables with environment-key and api-key"}
		var parse toml.ParseError
		if errors.As(err, &parse) {
			bad.Line = parse.Position.Line
		}
		return nil, nil, bad
	}
	lines = locate(text)
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		name := unknown[0].String()
		return nil, nil, &Invalid{File: path, Line: lines[bare(name)], Name: name, Expected: "not a setting; expected environment-key or api-key"}
	}
	return tables, lines, nil
}
