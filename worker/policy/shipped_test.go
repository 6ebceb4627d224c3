package policy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"countersign/assets"
	"countersign/worker/execute"
)

// everywhere is a LookPath for which every program is installed.
func everywhere(name string) (string, error) { return "/usr/bin/" + name, nil }

// testContext is a work directory with a few things in it.
func testContext(t testing.TB) Context {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "work")
	for _, dir := range []string{"src", "sub/deep", ".git/hooks", "docs"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"main.go", "src/a.go", "sub/b.txt", ".env", "README.md"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "/etc", "up": "..", "in": "src", "secret": ".env"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return Context{Root: root, LookPath: everywhere, Home: "/home/op", SearchPath: "/usr/bin", Own: []string{filepath.Join(base, "config")}}
}

// write makes a file, with the directories to it.
func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shipped returns the rules that we ship, joined.
func shipped(t testing.TB, names ...string) []byte {
	t.Helper()
	var text []byte
	for _, name := range names {
		part, err := assets.Rules(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, part...), '\n')
	}
	return text
}

func rulesOf(t testing.TB, ctx Context, text string) *Rules {
	t.Helper()
	r, err := Parse("rules.toml", []byte(text), ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func command(text string) Item {
	return Item{Task: execute.Task{Kind: "exec", Command: text, TimeLimit: execute.DefaultTimeLimit}}
}

func TestShippedRulesLoadAndTheirTestsPass(t *testing.T) {
	for _, name := range []string{"starter", "developer"} {
		r, err := Parse(name+".toml", shipped(t, name), testContext(t))
		var bad *Invalid
		if errors.As(err, &bad) || err != nil {
			t.Fatal(err)
		}
		if len(r.Hash()) != 64 {
			t.Errorf("hash is %q", r.Hash())
		}
	}
}

func TestASetThatIsNotShippedIsAnError(t *testing.T) {
	if _, err := assets.Rules("nothing"); err == nil {
		t.Error("there is one called nothing")
	}
}
