package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"countersign/app/config"
	"countersign/assets"
	"countersign/worker/policy"
)

// bench is a Countersign that does not run: its directories, and flags that name
// them.
type bench struct {
	t     *testing.T
	g     *global
	place place
	work  string // canonical
}

func newBench(t *testing.T) *bench {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, place: place{data: filepath.Join(base, "data"), config: filepath.Join(base, "config")}, work: filepath.Join(base, "work")}
	for _, dir := range []string{b.place.data, b.place.config, b.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.g = &global{DataDir: b.place.data, ConfigDir: b.place.config, LogFormat: "text"}
	b.login(os.Getenv("PATH"))
	t.Chdir(base)
	return b
}

// login makes a login shell that sets PATH.
func (b *bench) login(path string) {
	shell := filepath.Join(filepath.Dir(b.work), "shell")
	b.write(shell, "#!/bin/sh\nexec env -0 PATH='"+path+"' >&3\n")
	if err := os.Chmod(shell, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.t.Setenv("SHELL", shell)
}

func (b *bench) write(file, text string) {
	b.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// rules writes the rule file.
func (b *bench) rules(text string) { b.write(b.place.rulesFile(), text) }

// connect configures connections, all with the same work directory.
func (b *bench) connect(names ...string) {
	var text strings.Builder
	for i, name := range names {
		text.WriteString("[[connection]]\nname = " + strconv.Quote(name) + "\nharness = \"http://127.0.0.1:" + strconv.Itoa(3000+i) +
			"\"\nworkdir = " + strconv.Quote(b.work) + "\n")
	}
	b.write(b.place.configFile(), text.String())
}

func (b *bench) check(c rulesCommand) (out, mistakes string, err error) {
	var w, m bytes.Buffer
	err = c.check(b.g, &w, &m)
	return w.String(), m.String(), err
}

const fewRules = `
[[rule]]
name = "look"
kind = "exec"
allow = ["ls [-l] <path>...", "pwd"]
connection = "one"

[[rule]]
name = "build"
kind = "exec"
runs-code = true
allow = ["make"]
until = 2001-02-03T04:05:06Z

[[rule]]
name = "sources"
kind = ["read", "list"]
allow-paths = "**"
deny-paths = ["**/.env"]

[[test]]
command = "ls | make"
expect = "ask"
`

func TestCheckSaysWhatIsInForce(t *testing.T) {
	b := newBench(t)
	b.rules(fewRules)
	out, mistakes, err := b.check(rulesCommand{})
	if err != nil || mistakes != "" {
		t.Fatalf("%v\n%s", err, mistakes)
	}
	for _, want := range []string{
		b.place.rulesFile() + " can be used: 3 rules, 1 test passed\n", "\nSHA-256 ",
		"\nlook     exec        2 allow                      connection one\n",
		"\nbuild    exec        1 allow, runs code           over since 2001-02-03 ",
		"\nsources  read, list  1 allow-paths, 1 deny-paths  \n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestCheckNamesEachMistakeWithFileAndLine(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.place.data, "other.toml")
	b.write(file, "[[rule]]\nname = \"a\"\nkind = \"exec\"\nallow = [\"*\",\n\"make/\u202e\"]\n")
	_, mistakes, err := b.check(rulesCommand{File: file})
	lines := strings.Split(strings.TrimSpace(mistakes), "\n")
	if err == nil || len(lines) != 2 || !strings.HasPrefix(lines[0], file+":4: ") || !strings.HasPrefix(lines[1], file+":5: ") {
		t.Errorf("%v\n%s", err, mistakes)
	}
	safe(t, "check", mistakes)
	b.write(file, "\"\\u001b[2J\" = 1\n")
	_, unknown, _ := b.check(rulesCommand{File: file})
	if safe(t, "check of an unknown setting", unknown); !strings.Contains(unknown, "‹ESC›") {
		t.Errorf("printed %q", unknown)
	}
	if got := report(err); got != exitFault {
		t.Errorf("exit %d", got)
	}
}

func TestCheckRefusesAFileWhoseTestFails(t *testing.T) {
	b := newBench(t)
	b.rules("[[test]]\ncommand = \"ls\"\nexpect = \"allow\"\n")
	_, mistakes, err := b.check(rulesCommand{})
	if err == nil || !strings.HasPrefix(mistakes, b.place.rulesFile()+":1: test failed") {
		t.Errorf("%v\n%s", err, mistakes)
	}
}

func TestCheckWithoutAFileSaysWhatThatMeans(t *testing.T) {
	b := newBench(t)
	if _, _, err := b.check(rulesCommand{}); err == nil || !strings.Contains(err.Error(), "everything is asked for") {
		t.Error(err)
	}
}

func TestShippedRuleFilesPassTheCheck(t *testing.T) {
	b := newBench(t)
	b.connect("one", "two") // which one does not matter
	for _, name := range []string{"starter", "developer"} {
		text, err := assets.Rules(name)
		if err != nil {
			t.Fatal(err)
		}
		b.rules(string(text))
		if out, mistakes, err := b.check(rulesCommand{}); err != nil || !strings.Contains(out, "passed") {
			t.Errorf("%s: %v\n%s", name, err, mistakes)
		}
	}
}

func TestTheReadmesRulesCanBeUsed(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Rules\n")
	_, after, _ := strings.Cut(section, "```toml\n")
	example, _, found := strings.Cut(after, "```")
	if _, err := policy.Parse("README.md", []byte(example), policy.Context{Root: "/work"}); !found || err != nil {
		t.Errorf("%v\n%s", err, example)
	}
}

func TestThePlaceThatRulesAreReadForIsTheOneThatIsMeant(t *testing.T) {
	b := newBench(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	conn := func(name string) config.Connection { return config.Connection{Name: name, WorkDir: b.work} }
	one, two := []config.Connection{conn("one")}, []config.Connection{conn("one"), conn("two")}
	for what, c := range map[string]struct {
		flags      rulesCommand
		known      []config.Connection
		running    []config.Connection
		connection string
		root       string // "" for an error
	}{
		"the current directory without a connection": {rulesCommand{}, nil, nil, "", here},
		"the only connection's":                      {rulesCommand{}, one, nil, "one", b.work},
		"the named connection's":                     {rulesCommand{Connection: "two"}, two, nil, "two", b.work},
		"the one given, for the only connection":     {rulesCommand{Workdir: "."}, one, nil, "one", here},
		"the one given, for none of several":         {rulesCommand{Workdir: b.work}, two, nil, "", b.work},
		"any name where none is configured":          {rulesCommand{Connection: "x"}, nil, nil, "x", here},
		"none of several":                            {rulesCommand{}, two, nil, "", ""},
		"a connection that is not there":             {rulesCommand{Connection: "x"}, one, nil, "", ""},
		"a directory that is not there":              {rulesCommand{Workdir: b.work + "/x"}, one, nil, "", ""},
		"the only running one's":                     {rulesCommand{}, nil, one, "one", b.work},
		"the running one's that is named":            {rulesCommand{Connection: "two"}, nil, two, "two", b.work},
		"none of several that run":                   {rulesCommand{}, nil, two, "", ""},
		"a configured one before those that run":     {rulesCommand{}, one, two, "one", b.work},
	} {
		s, err := c.flags.spot(reading{config: config.Config{Connections: c.known}, running: atWork{connections: c.running}}.known(), true)
		var invalid *config.Invalid
		switch {
		case c.root == "" && !errors.As(err, &invalid):
			t.Errorf("%s: %+v, %v", what, s, err)
		case c.root != "" && (err != nil || s.root != c.root || s.connection != c.connection || s.why == ""):
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	if left, _ := os.ReadDir(b.work); len(left) != 0 {
		t.Errorf("left in the work directory: %v", left)
	}
}
