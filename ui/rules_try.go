package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// tester says what would happen to an item that nobody has asked for. Nothing of it
// runs, and no rule counts it.
type tester struct {
	u          *UI
	root       *fyne.Container
	text       *field
	kind, conn *button
	view       *textView

	kindAt   int
	conns    []string
	connAt   int
	question context.CancelFunc // ends the newest question
}

var triedKinds = []string{wire.KindExec, wire.KindRead, wire.KindWrite, wire.KindList}

func newTester(u *UI, k *keys) *tester {
	t := &tester{u: u, view: newTextView(), question: func() {}}
	t.view.keys, t.view.side = k, verdictGutter
	t.text = newField(k, "A command or a path. "+keysOf(doEdit)+" to write here, "+keysOf(doLeave)+" to leave.", 3)
	t.text.TextStyle.Monospace = true
	t.text.OnChanged = func(string) { t.ask(typingPause) }
	t.kind = newButton("", "", kindIcon(wire.KindExec), func() { t.nextKind() })
	t.conn = newButton("", "", theme.ComputerIcon(), func() { t.nextConnection() })
	t.conn.Hide()
	name := widget.NewLabel("What would happen to…")
	name.TextStyle.Bold, name.SizeName = true, theme.SizeNameSubHeadingText
	row := container.NewPadded(container.NewHBox(t.kind, t.conn))
	page := container.NewBorder(container.NewVBox(name, t.text, row), nil, nil, nil, t.view.themed())
	t.root = container.New(narrowable{}, page)
	t.say()
	return t
}

func (t *tester) say() {
	words := map[string]string{wire.KindExec: "a command", wire.KindRead: "reading a file", wire.KindWrite: "writing a file", wire.KindList: "listing a directory"}
	kind := triedKinds[t.kindAt]
	t.kind.icon = kindIcon(kind)
	t.kind.set("Kind: "+words[kind]+" ("+keysOf(doMark)+")", true) // a bare X at the end would look like a way to close it
	if t.connAt < len(t.conns) {
		t.conn.set("Connection: "+safetext.Clip(t.conns[t.connAt], 40)+" ("+keysOf(doWhole)+")", true)
	}
	if hide := len(t.conns) < 2; t.conn.Hidden != hide {
		t.conn.Hidden = hide
	}
	t.root.Refresh()
}

// connections says for which connections can be asked.
func (t *tester) connections(all []worker.ConnectionView) {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	if !slices.Equal(names, t.conns) {
		t.conns, t.connAt = names, 0
		t.say()
		t.ask(0)
	}
}

func (t *tester) nextKind() {
	t.kindAt = (t.kindAt + 1) % len(triedKinds)
	t.say()
	t.ask(0)
}

func (t *tester) nextConnection() {
	if len(t.conns) > 1 {
		t.connAt = (t.connAt + 1) % len(t.conns)
		t.say()
		t.ask(0)
	}
}

// ask asks, after a pause, what would happen to what is written, and shows it. The
// answer to an older question is dropped.
func (t *tester) ask(pause time.Duration) {
	t.question()
	text := t.text.Text
	if strings.TrimSpace(text) == "" && triedKinds[t.kindAt] != wire.KindList {
		t.question = func() {}
		t.view.setLines(nil, nil)
		return
	}
	ctx, cancel := context.WithCancel(t.u.ctx)
	t.question = cancel
	item := policy.Item{}
	if t.connAt < len(t.conns) {
		item.Connection = t.conns[t.connAt]
	}
	kind := triedKinds[t.kindAt]
	t.u.start(func(context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		lines := tried(t.u.Rulebook, item, kind, text)
		t.u.OnUI(func() {
			if ctx.Err() == nil {
				t.view.ScrollToOffset(0)
				t.view.setLines(lines, nil)
			}
		})
	})
}

// tried is what the rules in force say of an item.
func tried(book Rulebook, item policy.Item, kind, text string) []textLine {
	payload := map[string]string{"path": text}
	switch kind {
	case wire.KindExec:
		payload = map[string]string{"command": text}
	case wire.KindWrite:
		payload["content"] = ""
	}
	raw, err := json.Marshal(payload)
	if err == nil {
		item.Task, err = execute.Decode(kind, raw)
	}
	var e policy.Explanation
	if err == nil {
		e, err = book.Explain(item)
	}
	if err != nil {
		return []textLine{{Text: sentence(safetext.Line(err.Error())), Style: note}}
	}
	words := map[policy.Verdict]string{policy.Allow: "It would run without being asked for", policy.Deny: "It would be declined", policy.Ask: "You would be asked"}
	h := worker.Hold{Shown: worker.Shown{Explanation: e}, Facts: worker.Facts{Decision: worker.Undecided}}
	lines := []textLine{{Text: words[e.Verdict], Style: heading, Verdict: e.Verdict}}
	if marks := hiddenMarks(item.Task, nil, nil); len(marks) > 0 {
		lines = append(lines, textLine{Text: "In this text: " + marks[0].String(), Style: note})
	}
	return append(lines, whyLines(h, item.Task, policy.Risks(item.Task))...)
}
