package policy

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestTheFilesThatACommandNamesAreFound(t *testing.T) {
	root := testContext(t).Root
	for c, want := range map[string][]string{
		"ls":                                   nil,
		"sh ./src/a.go main.go":                {"main.go", "src/a.go"},
		"cd sub && sh b.txt":                   {"sub/b.txt"},
		"tail -n 3 main.go | grep x":           nil,
		"cat main.go | sh":                     {"main.go"},
		"PATH=. cat main.go":                   {"main.go"},
		"sh -c 'sh main.go'":                   {"main.go"},
		"x --file=main.go":                     {"main.go"},
		"in/a.go":                              {"src/a.go"},
		"echo $(sh src/a.go)":                  {"src/a.go"},
		"sh src missing":                       nil,
		"sh " + filepath.Join(root, "main.go"): {"main.go"},
	} {
		var abs []string
		for _, w := range want {
			abs = append(abs, filepath.Join(root, w))
		}
		if got := NamedFiles(root, command(c)); !slices.Equal(got, abs) {
			t.Errorf("%q names %q, want %q", c, got, abs)
		}
	}
	i := command("sh b.txt")
	i.Cwd = "sub"
	if got := NamedFiles(root, i); len(got) != 1 {
		t.Errorf("from its directory: %q", got)
	}
}
