//go:build unix

package execute

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFingerprintsTellWhatChangedOfTheFilesThatACommandNames(t *testing.T) {
	r, outside := tree(t)
	in := func(name string) string { return filepath.Join(r.Dir(), name) }
	kept, edited, gone := in("dir/file"), in("edited"), in("gone")
	swapped, come, elsewhere := in("swapped"), in("come"), filepath.Join(outside, "file")
	for _, name := range []string{edited, gone, swapped} {
		os.WriteFile(name, []byte("one"), 0o644)
	}
	named := []string{kept, edited, gone, swapped, come, elsewhere, in("dir")}
	before := r.Fingerprint(t.Context(), sh("x"), named)
	if changed := Changed(before, r.Fingerprint(t.Context(), sh("x"), named)); changed != nil {
		t.Fatalf("nothing happened, but %q changed", changed)
	}
	if before[0].Path != "dir/file" || before[0].SHA256 != sumOf("inside") || before[0].Size != 6 || before[5].Path != elsewhere ||
		before[5].SHA256 != sumOf("outside") || before[4].State != StateMissing || before[6].State != "a directory" {
		t.Errorf("%v", before)
	}
	info, _ := os.Stat(edited)
	os.WriteFile(edited, []byte("two"), 0o644) // as long as before
	os.Chtimes(edited, info.ModTime(), info.ModTime())
	os.Remove(gone)
	os.Remove(swapped)
	unix.Mkfifo(swapped, 0o644)
	os.WriteFile(come, nil, 0o644)
	os.WriteFile(elsewhere, []byte("other"), 0o644)
	os.Chtimes(kept, time.Unix(1, 0), time.Unix(1, 0)) // the content counts
	changed := Changed(before, r.Fingerprint(t.Context(), sh("x"), named))
	if want := []string{"edited", "gone", "swapped", "come", elsewhere}; !slices.Equal(changed, want) {
		t.Errorf("changed: %q, want %q", changed, want)
	}
}

func TestNamedPipesAndDevicesAreNotOpened(t *testing.T) {
	r, _ := tree(t)
	prints := r.Fingerprint(t.Context(), sh("x"), []string{filepath.Join(r.Dir(), "fifo"), "/dev/null"})
	if !strings.Contains(prints[0].State, "named pipe") || !strings.Contains(prints[1].State, "device") {
		t.Errorf("%v", prints)
	}
}

func TestWhatWasNotLookedAtIsNeverTheSame(t *testing.T) {
	r, _ := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	named := []string{filepath.Join(r.Dir(), "dir/file")}
	first, second := r.Fingerprint(ctx, sh("x"), named), r.Fingerprint(ctx, sh("x"), named)
	if len(first) != 1 || first[0].State != StateUnknown || !slices.Equal(Changed(first, second), []string{"dir/file"}) {
		t.Errorf("%v, changed %q", first, Changed(first, second))
	}
}

func TestLargeFilesAreHashedInPartAndThatIsSaid(t *testing.T) {
	r := newRunner(t)
	in := filepath.Join(r.Dir(), "large")
	f, err := os.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Truncate(hashedUpTo + 2) // sparse
	when := time.Unix(1_000_000, 0)
	look := func() []Fingerprint { return r.Fingerprint(t.Context(), sh("x"), []string{in}) }
	os.Chtimes(in, when, when)
	before := look()
	if !before[0].Partly || before[0].Size != hashedUpTo+2 {
		t.Errorf("%v", before)
	}
	f.WriteAt([]byte{1}, hashedUpTo+1)
	if Changed(before, look()) == nil {
		t.Error("a change of the rest with another time is not noticed")
	}
	os.Chtimes(in, when, when)
	if Changed(before, look()) != nil {
		t.Error("the rest was compared: say so")
	}
	os.Rename(in, in+"2")
	g, _ := os.Create(in)
	g.Truncate(hashedUpTo + 2)
	g.Close()
	os.Chtimes(in, when, when)
	if Changed(before, look()) == nil {
		t.Error("another file in its place is not noticed")
	}
}

func TestTogetherNoMoreThanSoMuchIsHashed(t *testing.T) {
	r := newRunner(t)
	in := filepath.Join(r.Dir(), "f")
	os.WriteFile(in, []byte("content"), 0o644)
	l := looker{ctx: t.Context(), left: 10}
	first := l.fingerprint("f", in, os.Stat, os.OpenFile)
	second := l.fingerprint("f", in, os.Stat, os.OpenFile)
	if first.Partly || first.SHA256 != sumOf("content") || !second.Partly {
		t.Errorf("%v, %v", first, second)
	}
}

func TestTheFileThatAWriteReplacesHasAFingerprint(t *testing.T) {
	r, _ := tree(t)
	for path, want := range map[string]string{"link": "dir/file", "new": "new", "fifo": "fifo"} {
		if prints := r.Fingerprint(t.Context(), write(path, "x"), nil); len(prints) != 1 || prints[0].Path != want {
			t.Errorf("%s: %v", path, prints)
		}
	}
}

func TestAListLeavesOutWhatIsHidden(t *testing.T) {
	var asked []string
	r, _ := tree(t, func(o *Options) {
		o.Hidden = func(task Task, rel string) bool {
			asked = append(asked, task.Path+" "+rel)
			return rel == "dir/sub" || rel == "link"
		}
	})
	os.WriteFile(filepath.Join(r.Dir(), "dir/sub/secret"), nil, 0o644)
	o := do(t, r, Task{Kind: "list", Path: "."})
	if want := `["dir/file","dir/up-and-in","link-to-link"]`; string(o.Result) != want {
		t.Errorf("list: %s, want %s", o.Result, want)
	}
	if !strings.Contains(o.Reason, "the rules leave out of a list: 2") {
		t.Errorf("reason %q", o.Reason)
	}
	if slices.Contains(asked, ". dir/sub/secret") || !slices.Contains(asked, ". dir/file") {
		t.Errorf("asked about %q", asked)
	}
	if o := do(t, r, Task{Kind: "list", Path: "link"}); string(o.Result) != "[]" {
		t.Errorf("a hidden file itself: %s", o.Result)
	}
}
