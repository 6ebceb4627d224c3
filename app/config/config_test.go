package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAMissingFileIsTheDefaults(t *testing.T) {
	c, err := Read(filepath.Join(t.TempDir(), "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Notifications.Waiting != "first" || len(c.Connections) != 0 || c.Limits.StopGrace != 5*time.Second {
		t.Errorf("defaults = %+v", c)
	}
}

func TestEverySettingIsTaken(t *testing.T) {
	c, err := Parse("config.toml", []byte(`
log-level = "debug"
[[connection]]
name = "build box"
harness = "http://LOCALHOST:3000/"
environment-id = "env_1"
workdir = "/srv/work"
max-held = 3
max-running = 1
lease-ms = 30000
interval-ms = 500
decision-timeout = "90s"
[[connection]]
harness = "https://harness.example:443"
workdir = "/srv/other"
[environment]
pass = ["SSH_AUTH_SOCK"]
remove = ["AWS_*", "NPM_TOKEN"]
[limits]
stop-grace = "2s"
report-bytes = 4096
transcript-bytes = 8192
read-bytes = 4096
list-entries = 10
[notifications]
waiting = "every"
[confinement]
confine = true
writable = ["/srv/cache"]
caches = ["go", "node"]
`))
	if err != nil {
		t.Fatal(err)
	}
	first := Connection{Name: "build box", Harness: "http://localhost:3000", EnvironmentID: "env_1", WorkDir: "/srv/work",
		MaxHeld: 3, MaxRunning: 1, Lease: 30 * time.Second, Interval: 500 * time.Millisecond, DecisionTimeout: 90 * time.Second}
	if c.Connections[0] != first {
		t.Errorf("first connection = %+v", c.Connections[0])
	}
	second := DefaultConnection()
	second.Name, second.Harness, second.WorkDir = "harness.example", "https://harness.example", "/srv/other"
	if c.Connections[1] != second {
		t.Errorf("second connection = %+v", c.Connections[1])
	}
	if c.LogLevel.String() != "DEBUG" || c.Notifications.Waiting != "every" || len(c.Environment.Remove) != 2 ||
		c.Environment.Pass[0] != "SSH_AUTH_SOCK" || c.Limits != (Limits{2 * time.Second, 4096, 8192, 4096, 10}) {
		t.Errorf("config = %+v", c)
	}
	if !c.Confinement.Confine || !slices.Equal(c.Confinement.Writable, []string{"/srv/cache"}) || !slices.Equal(c.Confinement.Caches, []string{"go", "node"}) {
		t.Errorf("confinement = %+v", c.Confinement)
	}
}

func TestWhatCannotBeUsedIsNamedWithFileLineValueAndExpectation(t *testing.T) {
	const conn = "[[connection]]\nharness = \"http://127.0.0.1:3000\"\nworkdir = \"/w\"\n"
	for _, c := range []struct{ text, want string }{
		{"log-level = \"loud\"", `config.toml:1: log-level = "loud": expected one of debug, info, warn, error`},
		{"\nlog_level = 1", `config.toml:2: log_level = 1: not a setting; expected one of confinement, connection, environment, limits, log-level, notifications`},
		{conn + "max-held = 0", `config.toml:4: connection.max-held = 0: expected a whole number from 1 to 1000`},
		{conn + "max-held = \"8\"", `config.toml:4: connection.max-held = "8": expected a whole number from 1 to 1000`},
		{conn + "lease-ms = 10", `config.toml:4: connection.lease-ms = 10: expected a whole number from 200 to 3600000 of milliseconds`},
		{conn + "decision-timeout = 4", `config.toml:4: connection.decision-timeout = 4: expected a duration from 1s to 24h, such as "90s" or "4m"`},
		{conn + "approve = \"all\"", `config.toml:4: connection.approve = "all": not a setting`},
		{"max-held = 3", `config.toml:1: max-held = 3: belongs into [[connection]]: below that line, not here`},
		{"harness = \"http://a\"", `config.toml:1: harness = "http://a": belongs into [[connection]]`},
		{"[limits]\ndecision-timeout = \"1m\"", `config.toml:2: limits.decision-timeout = "1m": belongs into [[connection]]`},
		{"read-bytes = 4096", `config.toml:1: read-bytes = 4096: belongs into [limits]: below that line, not here`},
		{conn + "log-level = \"info\"", `config.toml:4: connection.log-level = "info": belongs before the first line in brackets, not here`},
		{conn + "confine = true", `config.toml:4: connection.confine = true: belongs into [confinement]`},
		{conn + conn, `config.toml:5: connection.harness = "http://127.0.0.1:3000": a second connection to this harness and environment-id; expected one`},
		{conn + strings.Replace(conn, "127.0.0.1", "localhost", 1), `config.toml:5: connection.harness = "http://localhost:3000": a second connection`},
		{conn + "name = \"x\"\n" + strings.Replace(conn, "3000", "3001", 1) + "name = \"x\"", `config.toml:8: connection.name = "x": a second connection of this name`},
		{"[[connection]]\nworkdir = \"/w\"", `config.toml:1: connection.harness: missing`},
		{"[[connection]]\nharness = \"http://h\"", `config.toml:1: connection.workdir: missing`},
		{"[[connection]]\nharness = \"http://user:pw@h\"", `config.toml:2: connection.harness = "http://…@h": the harness address must not contain a user name`},
		{"[[connection]]\nharness = \"ftp://h\"", `config.toml:2: connection.harness = "ftp://h": harness address "ftp://h": scheme "ftp": expected http or https`},
		{"[connection]\nname = \"x\"", `config.toml:1: connection: expected tables, each written [[connection]]`},
		{strings.Replace(conn, "/w", "w", 1), `config.toml:3: connection.workdir = "w": expected an absolute path, or one that begins with ~/`},
		{strings.Replace(conn, "/w", "/w\\u0007", 1), `config.toml:3: connection.workdir = "/w\a": expected the path of a directory`},
		{conn + "interval-ms = 0", `config.toml:4: connection.interval-ms = 0: expected a whole number from 1 to 60000`},
		{"[environment]\nremove = [\"A=B\"]", `config.toml:2: environment.remove = [A=B]: expected a list of variable names`},
		{"[notifications]\nwaiting = true", `config.toml:2: notifications.waiting = true: expected one of off, first, every`},
		{"[environment]\npass = [\"*\"]", `config.toml:2: environment.pass = [*]: expected a list of variable names`},
		{"[confinement]\nwritable = [\"cache\"]", `config.toml:2: confinement.writable = [cache]: expected a list of absolute paths`},
		{"[confinement]\ncaches = [\"rust\"]", `config.toml:2: confinement.caches = [rust]: expected a list of "go", "node", "python"`},
		{"[confinement]\nconfine = \"yes\"", `config.toml:2: confinement.confine = "yes": expected true or false`},
		{"limits = 3", `config.toml:1: limits = 3: expected a table, written [limits]`},
		{"x = ", `config.toml:1: `},
	} {
		_, err := Parse("config.toml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestAllMistakesAreToldInTheOrderOfTheirLines(t *testing.T) {
	_, err := Parse("c", []byte("zzz = 1\n[limits]\nread-bytes = 1\nstop-grace = \"1ns\"\n"))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "c:1:") || !strings.HasPrefix(lines[1], "c:3:") || !strings.HasPrefix(lines[2], "c:4:") {
		t.Errorf("got %q", lines)
	}
}

func TestAKeyInsideAMultiLineStringIsNotMistakenForASetting(t *testing.T) {
	lines := locate([]byte("a = \"\"\"\nb = 1\n\"\"\"\nb = 2\n"))
	if lines["b"] != 4 {
		t.Errorf("lines = %v", lines)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte("[[connection]]\nharness=\"http://x\"\nworkdir='''\na'''"))
	f.Add([]byte("connection = [{name=\"a\"}]\n[limits]\nstop-grace=1979-05-27"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse("c", text); err == nil {
			for _, conn := range c.Connections {
				if conn.Harness == "" || conn.WorkDir == "" || conn.Name == "" {
					t.Errorf("accepted %+v", conn)
				}
			}
		}
	})
}

func TestFlagsOutsideTheirLimitsAreNamedAsTheFlag(t *testing.T) {
	c := DefaultConnection()
	c.MaxRunning = 0
	err := c.Check(func(key string) string { return "--" + key })
	if err == nil || err.Error() != "--max-running = 0: expected a whole number from 1 to 64" {
		t.Errorf("got %v", err)
	}
}

func TestWritablePlacesAreTheListedOnesAndThePresetsAndNoneOfOurs(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	presets := func(home string) map[string][]string { return map[string][]string{"go": {home + "/go/pkg"}} }
	c := Confinement{Confine: true, Writable: []string{"/srv/cache", "~/.cache/tool"}, Caches: []string{"go"}}
	got, err := WritablePlaces(c, presets, "/home/me/.config/countersign")
	if want := []string{"/home/me/go/pkg", "/srv/cache", "/home/me/.cache/tool"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	c.Writable = []string{"~/.config"}
	if _, err := WritablePlaces(c, presets, "/home/me/.config/countersign"); err == nil {
		t.Error("a place around our configuration was taken")
	}
	c.Confine = false
	if got, err := WritablePlaces(c, presets, "/home/me/.config/countersign"); err != nil || got != nil {
		t.Errorf("without confinement: %q, %v", got, err)
	}
}

func TestWorkDirectories(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, data := filepath.Join(base, "work"), filepath.Join(base, "data")
	for _, dir := range []string{work, data, filepath.Join(data, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"to-work": work, "to-data": filepath.Join(data, "sub")} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ dir, want string }{
		{work, ""},
		{filepath.Join(base, "to-work"), ""},
		{filepath.Join(base, "missing"), "does not exist"},
		{file, "is not a directory"},
		{data, "contains or lies in"},
		{base, "contains or lies in"},
		{filepath.Join(base, "to-data"), "contains or lies in"},
	} {
		got, err := CheckWorkDir(c.dir, data, filepath.Join(base, "not-yet", "config"))
		if c.want == "" && (err != nil || got != work) {
			t.Errorf("%s: got %q, %v", c.dir, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %s", c.dir, err, c.want)
		}
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("the check left %v behind", left)
	}
}

func TestAReadOnlyWorkDirectoryIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes anywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := CheckWorkDir(dir); err == nil || !strings.Contains(err.Error(), "cannot be written to") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyPlainHTTPBeyondThisMachineIsExposed(t *testing.T) {
	for harness, want := range map[string]bool{
		"http://127.0.0.1:3000": false, "http://localhost": false, "http://[::1]:1": false,
		"https://harness.example": false, "http://harness.example": true, "http://10.0.0.1": true,
	} {
		if got := (Connection{Harness: harness}).Exposed(); got != want {
			t.Errorf("%s: %v", harness, got)
		}
	}
}
