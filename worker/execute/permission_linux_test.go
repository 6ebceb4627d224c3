package execute

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asNobody runs f on a thread that has no rights to files but those of anybody,
// so that permissions can be tested by root. The thread ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		f()
	}()
	<-done
}

func TestWhatPermissionsForbidIsNotDoneAndSaid(t *testing.T) {
	r, _ := tree(t)
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	for dir := r.Dir(); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o777)
	}
	os.Chmod(in("dir"), 0o555)
	os.Chmod(in("dir/file"), 0o666)
	os.WriteFile(in("secret"), []byte("x"), 0o644)
	os.Chmod(in("secret"), 0)
	os.WriteFile(in("read-only"), []byte("x"), 0o444)
	os.Mkdir(in("closed"), 0)
	defer os.Chmod(in("closed"), 0o755)
	defer os.Chmod(in("dir"), 0o755)
	asNobody(t, func() {
		for _, c := range []struct {
			task Task
			want string
		}{
			{Task{Kind: "read", Path: "secret"}, "permission denied"},
			{Task{Kind: "write", Path: "read-only"}, "permission denied. Nothing was written"},
			{Task{Kind: "write", Path: "dir/new"}, "permission denied. Nothing was written"},
			{Task{Kind: "write", Path: "dir/file"}, "permission denied. Nothing was written"},
			{Task{Kind: "write", Path: "dir/a/b"}, "its directory is not accessible: permission denied"},
			{Task{Kind: "list", Path: "closed"}, "permission denied"},
		} {
			if o := do(t, r, c.task); !o.Failed || !strings.Contains(o.Reason, c.want) {
				t.Errorf("%s %s = %s, want a failure with %q", c.task.Kind, c.task.Path, o.Result, c.want)
			}
		}
		o := do(t, r, Task{Kind: "list", Path: "."})
		if o.Failed || !strings.Contains(o.Reason, "not in the list: 1") || !strings.Contains(string(o.Result), "dir/sub/deep") {
			t.Errorf("list around a closed directory: %s (%s)", o.Result, o.Reason)
		}
	})
	if got := content(t, in("read-only")) + content(t, in("dir/file")); got != "xinside" {
		t.Errorf("content %q", got)
	}
	noTemporaryFiles(t, r.Dir())
}

func TestAWorkDirectoryThatCannotBeWrittenToIsNamed(t *testing.T) {
	dir := t.TempDir()
	for d := filepath.Dir(dir); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	os.Chmod(dir, 0o555)
	defer os.Chmod(dir, 0o755)
	asNobody(t, func() {
		_, err := New(Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), dir+": cannot be written to, expected a directory that can") {
			t.Errorf("New = %v", err)
		}
	})
}
