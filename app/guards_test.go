package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign/app/config"
)

// guardedConfig is a configuration with something of all that guards a machine.
func guardedConfig() config.Config {
	c := config.Default()
	conn := config.DefaultConnection()
	conn.Name, conn.Harness, conn.EnvironmentID, conn.WorkDir = "home", "http://127.0.0.1:3000", "env_5b", "/home/me/project"
	c.Connections = []config.Connection{conn}
	c.Confinement = config.Confinement{Confine: true, Writable: []string{"/srv", "~/cache"}, Caches: []string{"go"}}
	c.Environment = config.Environment{Pass: []string{"DISPLAY"}, Remove: []string{"B_*", "A"}}
	return c
}

func TestTheTextOfWhatGuardsTheMachine(t *testing.T) {
	const want = `confinement.caches = "go"
confinement.confine = true
confinement.writable = "/srv"
confinement.writable = "~/cache"
connection."home".environment-id = "env_5b"
connection."home".harness = "http://127.0.0.1:3000"
connection."home".workdir = "/home/me/project"
environment.pass = "DISPLAY"
environment.remove = "A"
environment.remove = "B_*"
`
	if got := guarding(guardedConfig()); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := guarding(config.Default()); got != "confinement.confine = false\n" {
		t.Errorf("without a file: %q", got)
	}
}

func TestWhichChangesWaitToBeSeen(t *testing.T) {
	for _, c := range []struct {
		name           string
		change         func(*config.Config)
		waits, flagged bool
		diff           []string
	}{
		{"nothing", func(c *config.Config) {}, false, false, nil},
		{"another order", func(c *config.Config) { slices.Reverse(c.Environment.Remove); slices.Reverse(c.Confinement.Writable) }, false, false, nil},
		{"what guards nothing", func(c *config.Config) { c.Limits.ReadBytes = 1; c.Connections[0].MaxRunning = 9; c.LogLevel = 8 }, false, false, nil},
		{"confine", func(c *config.Config) { c.Confinement.Confine = false }, true, true, []string{"-confinement.confine = true", "+confinement.confine = false"}},
		{"writable", func(c *config.Config) { c.Confinement.Writable = append(c.Confinement.Writable, "/") }, true, true, []string{`+confinement.writable = "/"`}},
		{"caches", func(c *config.Config) { c.Confinement.Caches = nil }, true, true, []string{`-confinement.caches = "go"`}},
		{"pass", func(c *config.Config) { c.Environment.Pass = []string{"*"} }, true, true, []string{`-environment.pass = "DISPLAY"`, `+environment.pass = "*"`}},
		{"remove", func(c *config.Config) { c.Environment.Remove = nil }, true, true, []string{`-environment.remove = "A"`, `-environment.remove = "B_*"`}},
		{"harness", func(c *config.Config) { c.Connections[0].Harness = "http://evil.example" }, true, false, []string{`+connection."home".harness = "http://evil.example"`}},
		{"environment id", func(c *config.Config) { c.Connections[0].EnvironmentID = "" }, true, false, []string{`+connection."home".environment-id = ""`}},
		{"workdir", func(c *config.Config) { c.Connections[0].WorkDir = "/home/me" }, true, false, []string{`+connection."home".workdir = "/home/me"`}},
		{"a connection more", func(c *config.Config) { c.Connections = append(c.Connections, config.Connection{Name: "b"}) }, true, false, []string{`+connection."b".harness = ""`}},
		{"no connection", func(c *config.Config) { c.Connections = nil }, true, false, []string{`-connection."home".harness = "http://127.0.0.1:3000"`}},
		{"a line in a value", func(c *config.Config) { c.Environment.Pass = []string{"X\"\nconfinement.confine = true"} }, true, true,
			[]string{`+environment.pass = "X\"\nconfinement.confine = true"`}},
	} {
		next := guardedConfig()
		c.change(&next)
		g := guards{place: place{data: "/d", config: "/c"}, before: guarding(guardedConfig()), now: guarding(next)}
		if g.wait(false) != c.waits || g.wait(true) != c.flagged {
			t.Errorf("%s: waits %v, with --harness %v", c.name, g.wait(false), g.wait(true))
		}
		lines := strings.Split(g.diff(), "\n")
		for _, want := range c.diff {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, g.diff())
			}
		}
		if g.before = ""; g.wait(false) || g.wait(true) {
			t.Errorf("%s: the first that is seen waits", c.name)
		}
	}
}

func TestAChangeIsToldWithItsCodeAndWhatToDo(t *testing.T) {
	next := guardedConfig()
	next.Environment.Pass = []string{"\u202e*"}
	g := guards{place: place{data: "/d", config: "/c"}, before: guarding(guardedConfig()), now: guarding(next)}
	accept := "countersign --data-dir /d --config-dir /c config accept " + g.code()
	var pending bytes.Buffer
	if err := writeChange(&pending, g); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{g.Error(), pending.String()} {
		for _, want := range []string{"/c/config.toml", accept, "-environment.pass = \"DISPLAY\"\n", "A tool call could"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not in %s", want, said)
			}
		}
		if strings.Contains(said, "\u202e") {
			t.Error("what reorders text is printed as it is")
		}
	}
	if code := report(&exitError{exitUsage, g}); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	for code, want := range map[string]bool{g.code(): true, " " + strings.ToUpper(g.hash()) + "\n": true, g.code()[:11]: false, "": false, "000000000000": false, g.hash() + "0": false} {
		if g.accepts(code) != want {
			t.Errorf("the code %q: accepted %v", code, !want)
		}
	}
}

func TestWithoutAChangeNothingIsSaidToWait(t *testing.T) {
	text := guarding(guardedConfig())
	for _, g := range []guards{{now: text}, {before: text, now: text}} {
		var b bytes.Buffer
		if err := writeChange(&b, g); err != nil || !strings.HasPrefix(b.String(), "Nothing waits: ") {
			t.Errorf("%v, %s", err, b.String())
		}
	}
	if errors.As(error(&exitError{code: exitUsage}), new(guards)) {
		t.Error("another error is taken for a change")
	}
}
