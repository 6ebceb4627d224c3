//go:build unix

package execute

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/worker/api/wire"
)

// tree makes the links and files that paths are tried on, and returns a runner
// in it and a directory outside of it.
func tree(t *testing.T, change ...func(*Options)) (r *Runner, outside string) {
	t.Helper()
	r, outside = newRunner(t, change...), t.TempDir()
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	for _, err := range []error{
		os.MkdirAll(in("dir/sub"), 0o755),
		os.WriteFile(in("dir/file"), []byte("inside"), 0o644),
		os.WriteFile(in("dir/sub/deep"), []byte("deep"), 0o644),
		os.WriteFile(filepath.Join(outside, "file"), []byte("outside"), 0o644),
		os.Symlink("dir/file", in("link")),
		os.Symlink("link", in("link-to-link")),
		os.Symlink("../dir/file", in("dir/up-and-in")),
		os.Symlink("dir/sub", in("link-dir")),
		os.Symlink("dangling-target", in("dangling")),
		os.Symlink("no/such/dir/target", in("dangling-deep")),
		os.Symlink(in("dir/file"), in("absolute-in")),
		os.Symlink(filepath.Join(outside, "file"), in("absolute-out")),
		os.Symlink(outside, in("absolute-dir")),
		os.Symlink("../"+filepath.Base(filepath.Dir(outside))+"/x", in("relative-out")),
		os.Symlink("..", in("parent")),
		os.Symlink("loop-b", in("loop-a")),
		os.Symlink("loop-a", in("loop-b")),
		os.Symlink("/dev/null", in("device")),
		unix.Mkfifo(in("fifo"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r, outside
}

func do(t *testing.T, r *Runner, task Task) Outcome {
	t.Helper()
	o := r.Run(t.Context(), task, "")
	if !json.Valid(o.Result) || o.Failed != (o.How == FileFailed) {
		t.Errorf("outcome %+v", o)
	}
	if o.Failed {
		var f wire.Failure
		if json.Unmarshal(o.Result, &f) != nil || f.Message == "" || f.Message != o.Reason {
			t.Errorf("failure %s, reason %q", o.Result, o.Reason)
		}
		if strings.Contains(f.Message, r.Dir()) {
			t.Errorf("the failure names our directory: %s", f.Message)
		}
	}
	return o
}

func TestReadFollowsPathsThatStayInsideAndNoOthers(t *testing.T) {
	r, _ := tree(t)
	for path, want := range map[string]string{
		"dir/file": `"inside"`, "/dir/file": `"inside"`, "./dir/../dir/file": `"inside"`, "//dir/file": `"inside"`,
		"link": `"inside"`, "link-to-link": `"inside"`, "dir/up-and-in": `"inside"`, "link-dir/deep": `"deep"`, "link-dir/../file": `"inside"`,
	} {
		if o := do(t, r, Task{Kind: "read", Path: path}); o.Failed || string(o.Result) != want {
			t.Errorf("read %s = %s, want %s", path, o.Result, want)
		}
	}
	for path, want := range map[string]string{
		"missing": "does not exist", "dangling": "does not exist", "dir/file/x": "cannot be used",
		"..": "outside", "../x": "outside", "dir/../../x": "outside", "parent/x": "outside",
		"absolute-in": "absolute link", "absolute-out": "outside", "absolute-dir/file": "outside", "relative-out": "outside",
		"dir": "a directory", "/": "a directory", "link-dir": "a directory",
		"fifo": "named pipe", "device": "outside", "loop-a": "cannot be used", strings.Repeat("n", 300): "cannot be used",
	} {
		if o := do(t, r, Task{Kind: "read", Path: path}); !o.Failed || !strings.Contains(o.Reason, want) {
			t.Errorf("read %s = %s, want a failure with %q", path, o.Result, want)
		}
	}
}

func TestReadHasALimitAndTellsTheSize(t *testing.T) {
	r, _ := tree(t, func(o *Options) { o.ReadLimit = 5 })
	if o := do(t, r, Task{Kind: "read", Path: "dir/file"}); !o.Failed || !strings.Contains(o.Reason, "6 bytes") || !strings.Contains(o.Reason, "at most 5") {
		t.Errorf("outcome %+v", o)
	}
	if o := do(t, r, Task{Kind: "read", Path: "dir/sub/deep"}); o.Failed {
		t.Errorf("outcome %+v", o)
	}
}

func TestReadGivesInvalidUTF8AsText(t *testing.T) {
	r, _ := tree(t)
	os.WriteFile(filepath.Join(r.Dir(), "bin"), []byte("a\xff\x00<b>"), 0o644)
	o := do(t, r, Task{Kind: "read", Path: "bin"})
	var text string
	if err := json.Unmarshal(o.Result, &text); err != nil || text != "a\ufffd\x00<b>" || o.Head != text {
		t.Errorf("result %s, head %q, %v", o.Result, o.Head, err)
	}
}

// content is what a file has, or "-" where there is none.
func content(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if os.IsNotExist(err) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteFollowsPathsThatStayInsideAndNoOthers(t *testing.T) {
	for path, file := range map[string]string{
		"new": "new", "/a/b/c": "a/b/c", "dir/file": "dir/file", "link": "dir/file", "link-to-link": "dir/file", "dir/up-and-in": "dir/file",
		"link-dir/deep": "dir/sub/deep", "link-dir/new": "dir/sub/new", "link-dir/../x": "dir/x",
		"dangling": "dangling-target", "dangling-deep": "no/such/dir/target",
	} {
		r, _ := tree(t)
		before, _ := os.Readlink(filepath.Join(r.Dir(), path))
		o := do(t, r, Task{Kind: "write", Path: path, Content: "written"})
		if o.Failed || string(o.Result) != `{"ok":true}` || content(t, r.Dir(), file) != "written" {
			t.Errorf("write %s = %s, and %s has %q", path, o.Result, file, content(t, r.Dir(), file))
		}
		if after, _ := os.Readlink(filepath.Join(r.Dir(), path)); after != before {
			t.Errorf("write %s replaced the link", path)
		}
		noTemporaryFiles(t, r.Dir())
	}
	for path, want := range map[string]string{
		"../x": "outside", "parent/x": "outside", "absolute-in": "absolute link", "absolute-out": "outside",
		"absolute-dir/file": "outside", "absolute-dir/new": "outside", "relative-out": "outside",
		"dir": "a directory", "/": "a directory", "new/": "a directory", "link-dir": "a directory",
		"fifo": "named pipe", "device": "outside", "loop-a": "too many", "dir/file/x": "cannot be used", strings.Repeat("n", 300): "cannot be used",
	} {
		r, outside := tree(t)
		o := do(t, r, Task{Kind: "write", Path: path, Content: "written"})
		if !o.Failed || !strings.Contains(o.Reason, want) || !strings.Contains(o.Reason, "Nothing was written") {
			t.Errorf("write %s = %s, want a failure with %q", path, o.Result, want)
		}
		if content(t, outside, "file") != "outside" || content(t, r.Dir(), "dir/file") != "inside" {
			t.Errorf("write %s changed a file", path)
		}
		noTemporaryFiles(t, r.Dir())
	}
}

func noTemporaryFiles(t *testing.T, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(path), tempPrefix) {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

func TestWriteKeepsTheModeAndReplacesAtomically(t *testing.T) {
	r, _ := tree(t)
	path := filepath.Join(r.Dir(), "dir/file")
	os.Chmod(path, 0o751)
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if o := do(t, r, Task{Kind: "write", Path: "dir/file", Content: "new\x00"}); o.Failed {
		t.Fatal(o.Reason)
	}
	if info, _ := os.Stat(path); info.Mode() != 0o751 {
		t.Errorf("mode %v", info.Mode())
	}
	old := make([]byte, 10)
	if n, _ := reader.Read(old); string(old[:n]) != "inside" {
		t.Errorf("who had the old file open reads %q", old[:n])
	}
	if content(t, path) != "new\x00" {
		t.Errorf("content %q", content(t, path))
	}
}

func TestANewFilesModeIsTheUsersHabit(t *testing.T) {
	r, _ := tree(t)
	do(t, r, Task{Kind: "write", Path: "new", Content: "x"})
	plain := filepath.Join(r.Dir(), "plain")
	os.WriteFile(plain, nil, 0o666)
	want, _ := os.Stat(plain)
	if got, _ := os.Stat(filepath.Join(r.Dir(), "new")); got.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v", got.Mode(), want.Mode())
	}
}

func TestListIsEveryFileBelowSortedAndRelativeToTheRoot(t *testing.T) {
	r, _ := tree(t)
	os.WriteFile(filepath.Join(r.Dir(), "dir/.hidden"), nil, 0o644)
	for path, want := range map[string]string{
		".":           `["dir/.hidden","dir/file","dir/sub/deep","dir/up-and-in","link","link-to-link"]`,
		"/":           `["dir/.hidden","dir/file","dir/sub/deep","dir/up-and-in","link","link-to-link"]`,
		"dir":         `["dir/.hidden","dir/file","dir/sub/deep","dir/up-and-in"]`,
		"./dir//":     `["dir/.hidden","dir/file","dir/sub/deep","dir/up-and-in"]`,
		"/dir/sub":    `["dir/sub/deep"]`,
		"link-dir":    `["link-dir/deep"]`,
		"link-dir/..": `["dir/.hidden","dir/file","dir/sub/deep","dir/up-and-in"]`,
		"dir/file":    `["dir/file"]`,
		"missing":     `[]`, "missing/x": `[]`, "dir/file/x": `[]`, "dangling": `[]`, "fifo": `[]`,
	} {
		if o := do(t, r, Task{Kind: "list", Path: path}); string(o.Result) != want {
			t.Errorf("list %s = %s, want %s", path, o.Result, want)
		} else if path == "dir" && o.Head != "dir/.hidden\ndir/file\ndir/sub/deep\ndir/up-and-in" {
			t.Errorf("head %q", o.Head)
		}
	}
	for _, path := range []string{"..", "/../x", "parent", "absolute-dir", "dir/../..", "relative-out"} {
		if o := do(t, r, Task{Kind: "list", Path: path}); !o.Failed || !strings.Contains(o.Reason, "outside") {
			t.Errorf("list %s = %s", path, o.Result)
		}
	}
}

func TestListOfTooManyFilesFailsAndSaysHowMany(t *testing.T) {
	r, _ := tree(t, func(o *Options) { o.ListLimit = 5 })
	if o := do(t, r, Task{Kind: "list", Path: "."}); o.Failed {
		t.Errorf("five files: %s", o.Reason)
	}
	os.WriteFile(filepath.Join(r.Dir(), "sixth"), nil, 0o644)
	if o := do(t, r, Task{Kind: "list", Path: "."}); !o.Failed || !strings.Contains(o.Reason, "there are 6 files, and at most 5") {
		t.Errorf("six files: %s", o.Result)
	}
	for i := range 2 * 5 * countFactor {
		os.Mkdir(filepath.Join(r.Dir(), "d"+strings.Repeat("x", i)), 0o755)
	}
	if o := do(t, r, Task{Kind: "list", Path: "."}); !o.Failed || !strings.Contains(o.Reason, "more than 100 files or directories") {
		t.Errorf("very many: %s", o.Result)
	}
}

func TestAStoppedListIsAFailure(t *testing.T) {
	r, _ := tree(t)
	ctx, cancel := cancelled()
	defer cancel(nil)
	if o := r.Run(ctx, Task{Kind: "list", Path: "."}, ""); !o.Failed || !strings.Contains(o.Reason, "session stopped") {
		t.Errorf("outcome %+v", o)
	}
}
