package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"countersign/worker"
	"countersign/worker/execute"
)

// previewed is what a runner finds for an item in a directory with some files.
func previewed(t testing.TB, v worker.View, files map[string]string) execute.Preview {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := execute.New(execute.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	task, err := execute.Decode(v.Item.Kind, v.Item.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return r.Preview(t.Context(), task)
}

func writeItem(id int, path, content string) worker.View {
	return view(id, "write", map[string]any{"path": path, "content": content})
}

// finds shows items with what they meet on the disk.
func (st *stage) finds(files map[string]string, views ...worker.View) {
	st.t.Helper()
	st.desk.mu.Lock()
	st.desk.previews = map[worker.HoldID]execute.Preview{}
	for _, v := range views {
		st.desk.previews[v.ID] = previewed(st.t, v, files)
	}
	st.desk.mu.Unlock()
	st.show(waitingItems(views...))
	st.until("what is on the disk", func() bool { return len(st.window.queue.detail.found.words) > 0 })
	st.pass(time.Second)
}

func (st *stage) docText() string { return linesOf(st.window.queue.detail.doc.lines) }

func count(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line " + grouped(i+1) + "\n")
	}
	return b.String()
}

func TestAWriteIsShownAsWhatItChanges(t *testing.T) {
	st := newStage(t)
	old := count(40)
	now := strings.Replace(strings.Replace(old, "line 12\n", "line twelve\x1b[2K\n", 1), "line 30\n", "", 1)
	st.finds(map[string]string{"a.txt": old}, writeItem(1, "a.txt", now))
	st.picture("write-diff")
	got := st.docText()
	for _, want := range []string{
		"File to write\na.txt\nChanges a file: 2 lines removed, 1 added",
		"What changes: 2 lines removed, 1 line added\nFrom line 9\n line 9\n line 10\n line 11\n−line 12\n+line twelve‹ESC›[2K\n line 13\n",
		"From line 27\n", "−line 30\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "line 20\n") {
		t.Errorf("what stays is there too:\n%s", got)
	}
	for _, want := range []string{"12 −", "12 +"} {
		if !st.shows(want) {
			t.Errorf("no sign %q stands beside a line", want)
		}
	}
}

func TestTheWholeContentIsOneKeyAway(t *testing.T) {
	st := newStage(t)
	old := count(400)
	st.finds(map[string]string{"a.txt": old}, writeItem(1, "a.txt", strings.ReplaceAll(old, "5\n", "five\n")))
	d := st.window.queue.detail
	before := d.unseen()
	if before == 0 || d.approve.label != "Approve with "+unseenWords(before) {
		t.Fatalf("%d rows unseen, and the button says %q", before, d.approve.label)
	}
	st.press(fyne.KeyV, 0)
	if got := st.docText(); !strings.Contains(got, "New content, ") || !strings.Contains(got, "line 400\n") {
		t.Errorf("V does not show the whole content:\n%.300s", got)
	}
	for range 60 {
		st.press(fyne.KeyPageDown, 0)
	}
	if n := d.unseen(); n != before {
		t.Errorf("after the whole content was read %d rows of the difference are unseen, before it %d", n, before)
	}
	test.Tap(d.whole)
	if got := st.docText(); !strings.Contains(got, "What changes") {
		t.Errorf("the button does not show the difference:\n%.300s", got)
	}
	st.pass(time.Second)
	for range 60 {
		st.press(fyne.KeyPageDown, 0)
	}
	if n := d.unseen(); n != 0 || d.approve.label != "Approve" {
		t.Errorf("after the difference was read %d rows are unseen, and the button says %q", n, d.approve.label)
	}
	st.press(fyne.KeyV, 0)
	if n := d.unseen(); n != 0 {
		t.Errorf("back at the whole content %d rows are unseen", n)
	}
}

func TestWhatAWriteMeetsIsSaidInWords(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		write   worker.View
		want    string
		diff    bool
		content string
	}{
		"new":    {nil, writeItem(1, "a.txt", "one\n"), "Makes a new file", false, "one\n"},
		"same":   {map[string]string{"a.txt": "one\n"}, writeItem(1, "a.txt", "one\n"), "No change", false, "one\n"},
		"binary": {map[string]string{"a.bin": "\x00old"}, writeItem(1, "a.bin", "\x00new"), "Replaces a file whole: 4 bytes, binary", false, "‹NUL›new"},
		"crlf":   {map[string]string{"a.txt": "one\ntwo\n"}, writeItem(1, "a.txt", "one\r\ntwo\r\n"), "Line ends change from LF to CR LF", true, "+one‹CR›\n"},
		"fails":  {map[string]string{"a": "x"}, writeItem(1, "a/b", "one\n"), "As things are now it would fail", false, "one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.finds(c.files, c.write)
			got := st.docText()
			if !strings.Contains(got, c.want) || !strings.Contains(got, c.content) {
				t.Errorf("%q and %q are not in\n%s", c.want, c.content, got)
			}
			if d := st.window.queue.detail; d.whole.Visible() != c.diff {
				t.Errorf("there are two ways to show it: %v", d.whole.Visible())
			}
		})
	}
}

func TestAReadSaysWhatItReads(t *testing.T) {
	st := newStage(t)
	st.finds(map[string]string{"a.txt": "one\ntwo\n"}, readItem(1, "a.txt"))
	if got := st.docText(); got != "File to read\na.txt\nReads 2 lines of text, 8 bytes.\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestUntilTheDiskIsLookedAtTheWholeContentIsShown(t *testing.T) {
	st := newStage(t)
	wait := make(chan struct{})
	v := writeItem(1, "a.txt", "two\n")
	st.desk.previews = map[worker.HoldID]execute.Preview{1: previewed(t, v, map[string]string{"a.txt": "one\n"})}
	st.desk.previewWaits = wait
	st.show(waitingItems(v))
	if got := st.docText(); !strings.Contains(got, "New content, 4 bytes\ntwo\n") {
		t.Errorf("got\n%s", got)
	}
	close(wait)
	st.until("the difference", func() bool { return strings.Contains(st.docText(), "−one\n+two\n") })
	st.press(fyne.KeyReturn, ctrl) // at once: nobody can have read it
	st.didNothing()
	st.pass(time.Second)
	st.press(fyne.KeyReturn, ctrl)
	st.did("approve 1 digest1 by operator")
}

func TestALateAnswerAboutTheDiskIsForItsItemAlone(t *testing.T) {
	st := newStage(t)
	wait := make(chan struct{})
	one, two := writeItem(1, "a.txt", "two\n"), execItem(2, "ls")
	st.desk.previews = map[worker.HoldID]execute.Preview{1: previewed(t, one, map[string]string{"a.txt": "one\n"})}
	st.desk.previewWaits = wait
	st.show(waitingItems(one, two))
	st.press(fyne.KeyJ, 0)
	close(wait)
	st.wgIdle()
	if got := st.docText(); got != "Command\nls\n" {
		t.Errorf("got\n%s", got)
	}
}

// largeText is how large a large file is; less where every byte that is touched is
// checked for races.
var largeText = 5 << 20

func TestALargeWriteIsReadAwayFromTheWindow(t *testing.T) {
	st := newStage(t)
	line := "\t" + strings.Repeat("ж ", 28) + "\n"
	content := strings.Repeat(line, largeText/len(line))
	v := writeItem(1, "a.txt", content)
	old := strings.Repeat("\tbefore\n"+strings.Repeat(line, 3), largeText/(3*len(line)+8))
	st.desk.previews = map[worker.HoldID]execute.Preview{1: previewed(t, v, map[string]string{"a.txt": old})}
	wait := make(chan struct{})
	st.desk.previewWaits = wait
	st.Show()
	st.put(waitingItems(v, execItem(2, "ls")))
	d := st.window.queue.detail
	if !d.ready {
		if !strings.Contains(st.docText(), "Reading ") || !d.approve.disabled {
			t.Errorf("the window says %q, Approve disabled: %v", st.docText(), d.approve.disabled)
		}
		st.pass(time.Second)
		st.press(fyne.KeyReturn, ctrl)
		st.didNothing()
	}
	st.until("the content", func() bool { return d.ready })
	if n := len(d.doc.lines); n < strings.Count(content, "\n") {
		t.Errorf("%d lines are shown", n)
	}
	if d.approve.disabled {
		t.Error("Approve is disabled though the content is there")
	}
	st.until("its summary", func() bool { return st.shows("a.txt  (" + bytesWords(int64(len(content)))) })
	close(wait)
	st.until("the difference", func() bool { return len(d.found.words) > 0 })
	st.pass(time.Second)
	t.Logf("%s of content and a difference of %d lines: the UI thread was busy for %v at most at a time",
		bytesWords(int64(len(content))), len(d.found.diff), st.longest)
}
