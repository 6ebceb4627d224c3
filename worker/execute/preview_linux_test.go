package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/worker/api/wire"
)

func TestAPreviewSaysWhatPermissionsForbid(t *testing.T) {
	r, _ := tree(t)
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	for dir := r.Dir(); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o777)
	}
	os.Chmod(in("dir"), 0o555)
	os.Chmod(in("dir/file"), 0o666)
	os.WriteFile(in("secret"), []byte("x"), 0)
	os.WriteFile(in("write-only"), []byte("x"), 0o644)
	os.Chmod(in("write-only"), 0o222)
	os.WriteFile(in("read-only"), []byte("x"), 0o444)
	defer os.Chmod(in("dir"), 0o755)
	asNobody(t, func() {
		for _, c := range []struct {
			task Task
			want string
		}{
			{Task{Kind: wire.KindRead, Path: "secret"}, "permission denied. Reads 1 byte."},
			{write("read-only", "y"), "permission denied"},
			{write("dir/new", "y"), "its directory is not accessible: permission denied"},
			{write("dir/a/b", "y"), "its directory is not accessible: permission denied"},
			{write("dir/file", "y"), "its directory is not accessible: permission denied"},
			{write("write-only", "y"), "not told line by line: what is there now is not accessible: permission denied"},
		} {
			p := r.Preview(t.Context(), c.task)
			if !strings.Contains(told(p), c.want) {
				t.Errorf("%s %s: %s", c.task.Kind, c.task.Path, told(p))
			}
			if o := do(t, r, c.task); o.Failed != (p.Fails != "") {
				t.Errorf("%s %s: the preview says %q, the task %q", c.task.Kind, c.task.Path, p.Fails, o.Reason)
			}
		}
		unread := []string{in("secret")}
		before := r.Fingerprint(t.Context(), sh("x"), unread)
		if !strings.Contains(before[0].State, "permission denied") || !before[0].Partly {
			t.Errorf("%v", before)
		}
	})
}
