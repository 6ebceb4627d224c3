//go:build unix

package execute

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPanicIsAnOutcome(t *testing.T) {
	r := newRunner(t)
	for _, kind := range []string{"exec", "list"} {
		var broken context.Context
		o := r.Run(broken, Task{Kind: kind, Command: "true", Path: "a"}, "")
		if len(o.Result) == 0 || !strings.Contains(o.Reason, "may have run") || o.FinishedAt.IsZero() {
			t.Errorf("%s: %+v", kind, o)
		}
	}
}

func TestAnUnknownKindIsAFailure(t *testing.T) {
	r := newRunner(t)
	if o := r.Run(t.Context(), Task{Kind: "custom_tool"}, ""); !o.Failed || len(o.Result) == 0 {
		t.Errorf("unknown kind: %+v", o)
	}
}

func TestAWorkDirectoryThatIsMadeAgainIsUsed(t *testing.T) {
	r := newRunner(t)
	if err := r.Usable(); err != nil {
		t.Error(err)
	}
	os.RemoveAll(r.Dir())
	for _, kind := range []string{"read", "write", "list"} {
		if o := r.Run(t.Context(), Task{Kind: kind, Path: "a"}, ""); !o.Failed || !strings.Contains(o.Reason, "the work directory does not exist") {
			t.Errorf("%s: %+v", kind, o)
		}
	}
	if o, res := run(t, r, sh("true")); o.How != CouldNotStart || res.ExitCode != 126 || !strings.Contains(res.Stderr, "the work directory does not exist") {
		t.Errorf("exec: %+v", o)
	}
	if r.Usable() == nil || r.Check(sh("true")) == nil {
		t.Error("a missing work directory is said to be usable")
	}
	os.Mkdir(r.Dir(), 0o755)
	if o := r.Run(t.Context(), Task{Kind: "write", Path: "a", Content: "b"}, ""); o.Failed {
		t.Error(o.Reason)
	}
	if _, res := run(t, r, sh("cat a")); res.Stdout != "b" {
		t.Errorf("result %+v", res)
	}
	os.RemoveAll(r.Dir())
	os.Symlink("/", r.Dir())
	if o := r.Run(t.Context(), Task{Kind: "list", Path: "etc"}, ""); !o.Failed || r.Usable() == nil {
		t.Errorf("through a link: %s", o.Result)
	}
}

func TestAWorkDirectoryThatCannotServeIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o644)
	for _, c := range []struct{ dir, want string }{
		{"", "none given"},
		{filepath.Join(dir, "missing"), "missing: does not exist, expected an existing directory"},
		{file, "file: is a file, expected a directory"},
		{"/proc", "/proc: cannot be written to"},
	} {
		if _, err := New(Options{Dir: c.dir}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q) = %v, want %q", c.dir, err, c.want)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(dir, link)
	r := newRunner(t, func(o *Options) { o.Dir = link })
	if want, _ := filepath.EvalSymlinks(dir); r.Dir() != want {
		t.Errorf("Dir() = %s, want %s", r.Dir(), want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("the probe was left behind: %v", left)
	}
}
