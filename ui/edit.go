package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// What a text field can hold without making the window wait: see
// TestTheLargestTextThatCanBeEditedOpens.
const (
	editableBytes = 64 << 10
	editableLine  = 2 << 10
	editableLines = 2000
)

func isList(kind string) bool { return kind == wire.KindList }

// proposal is a dialog in which the operator writes a text that is sent to the
// engines. It stays open until they take it.
type proposal struct {
	u       *UI
	title   string
	content fyne.CanvasObject
	text    *field
	trouble *widget.Label
	initial string
	early   func() string // why it is too early to send it; "" where it is not
	sending bool
	over    bool
}

// newProposal makes a dialog around a text. words say what it is for; early, why
// it is too early to send the text.
func (w *window) newProposal(title, words, text string, rows int, early func() string) *proposal {
	p := &proposal{u: w.u, title: title, text: newField(w.keys, "", rows), initial: text, early: early, trouble: widget.NewLabel("")}
	p.text.TextStyle.Monospace = true
	p.text.Wrapping = fyne.TextWrapBreak
	p.trouble.Wrapping, p.trouble.Importance = fyne.TextWrapWord, widget.WarningImportance
	p.trouble.Hide()
	size := w.win.Canvas().Size()
	trouble := container.NewVScroll(p.trouble)
	trouble.SetMinSize(fyne.NewSize(0, 74))
	p.content = container.New(atLeast{fyne.NewSize(min(760, size.Width*0.8), 0)},
		container.NewVBox(paragraph(words), p.text, trouble))
	return p
}

// open shows the dialog. send is called away from the UI thread with what was
// written; done when it was taken.
func (p *proposal) open(w *window, label string, send func(text string) error, done func(), others ...choice) {
	choices := append([]choice{{label: label, key: doApprove, tone: theme.ColorNamePrimary, stays: true,
		do: func() { p.send(w, send, done) }}}, others...)
	w.sheets.show(p.title, p.content, p.text, append(choices, choice{label: "Back", key: doLeave, do: func() { p.over = true }})...)
	p.text.SetText(p.initial) // now that it has its width: it would be wrapped for others first
}

func (p *proposal) send(w *window, send func(string) error, done func()) {
	text := p.text.Text
	if p.sending || p.text.Disabled() {
		return
	}
	if why := p.early(); why != "" {
		p.say(why)
		return
	}
	if why := hides(text); why != "" {
		p.say("Nothing was sent: there is " + why + " in the text, which cannot be seen in this field.")
		return
	}
	p.sending = true
	p.u.ask(func() error { return send(text) }, func(err error) {
		p.sending = false
		switch {
		case err != nil && p.over:
			w.say(sentence(safetext.Clip(err.Error(), 1000)))
			return
		case err != nil:
			p.say(sentence(safetext.Clip(err.Error(), 2000)))
			return
		case !p.over:
			w.sheets.close()
		}
		done()
	})
}

// say shows words below the text.
func (p *proposal) say(words string) {
	p.trouble.SetText(words)
	p.trouble.Show()
}

// gone says that what the text is for does not wait any more, unless that is
// because of the text.
func (p *proposal) gone(why string) {
	if !p.sending {
		p.say(why)
	}
}

// edit opens a dialog in which the command or the content can be changed, and is
// approved as changed.
func (q *queue) edit() {
	v, ok := q.awaitingRead("edited")
	if !ok {
		return
	}
	refused := capital(itemName(v.Hold)) + " cannot be edited"
	if q.detail.editing.Hidden {
		q.cannot(refused, "It is approved as it is, or declined with words.")
		return
	}
	task, w := q.detail.reading.task, q.u.window
	name, text, what := "command", task.Command, "command"
	if task.Kind == wire.KindWrite {
		name, text, what = "content", task.Content, "content of "+safetext.Clip(task.Path, 200)
	}
	if why := uneditable(text); why != "" {
		q.cannot(refused, fmt.Sprintf("The %s cannot be edited here: %s. Decline it with words instead.", name, why))
		return
	}
	by := q.approver()
	p := w.newProposal("Edit and approve "+itemName(v.Hold),
		"What you leave here is approved in place of the "+what+". The agent is told that it was changed, and into what.", text, 12,
		q.readThere())
	p.open(w, "Approve as edited", func(changed string) error {
		if changed == text {
			return fmt.Errorf("nothing was changed: go back and approve it as it is")
		}
		payload, err := replaced(v.Item.Payload, name, changed)
		if err != nil {
			return err
		}
		return q.became(v.Hold, q.u.Desk.ApproveEdited(v.ID, v.Digest, payload, by))
	}, func() { q.moveOn(v.ID) })
	q.dialog = &aboutItem{v.Hold, p.gone}
	if task.Kind == wire.KindExec { // a file's content is read from its beginning
		p.text.toEnd()
	}
}

// replaced is a payload with one member replaced and all others as they were.
func replaced(payload json.RawMessage, name, value string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		return nil, fmt.Errorf("what was asked cannot be taken apart: %w", err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	members[name] = bytes.TrimSpace(b.Bytes())
	return json.Marshal(members)
}

// uneditable says why a text cannot be put into a text field, which shows what
// can be drawn and nothing else; "" where it can.
func uneditable(text string) string {
	if !utf8.ValidString(text) {
		return "it is not text"
	}
	if len(text) > editableBytes {
		return fmt.Sprintf("it has %s, and a field here holds %s", bytesWords(int64(len(text))), bytesWords(editableBytes))
	}
	if n := strings.Count(text, "\n") + 1; n > editableLines {
		return fmt.Sprintf("it has %s lines, and a field here holds %s", grouped(n), grouped(editableLines))
	}
	for l := range strings.SplitSeq(text, "\n") {
		if len(l) > editableLine {
			return fmt.Sprintf("it has a line of %s, and a field here holds lines of %s",
				bytesWords(int64(len(l))), bytesWords(editableLine))
		}
	}
	if why := hides(text); why != "" {
		return "there is " + why + " in it, which a field would not show"
	}
	return ""
}

// hides names something in a text that a text field would not show as it is; ""
// for nothing.
func hides(text string) string {
	for _, m := range safetext.Marks(text) {
		switch m.Kind {
		case safetext.Gap, safetext.Trailing, safetext.Own, safetext.RightToLeft, safetext.Mixed, safetext.Imitation:
		default:
			return m.String()
		}
	}
	return ""
}

// always opens a dialog with a rule that allows such items from now on. The rule
// comes a moment later than the dialog, which takes no words until then.
func (q *queue) always() {
	v, ok := q.awaitingRead("approved always")
	if !ok {
		return
	}
	if q.u.Rulebook == nil {
		q.cannot(capital(itemName(v.Hold))+" cannot be approved always", "There are no rules in this run. It can be approved once.")
		return
	}
	p := q.propose(v)
	p.text.Disable()
	q.dialog = &aboutItem{v.Hold, p.gone}
	rule := ""
	q.u.ask(func() (err error) {
		rule, err = q.u.Desk.NarrowRule(v.ID)
		return q.became(v.Hold, err)
	}, func(err error) {
		why := uneditable(rule)
		switch {
		case err != nil:
			p.say(sentence(safetext.Clip(err.Error(), 1000)))
		case why != "":
			p.say("A rule for " + itemName(v.Hold) + " cannot be written here: " + why + ".")
		default:
			p.text.Enable()
			p.text.SetText(rule)
		}
	})
}

// propose opens the dialog of always, without its rule.
func (q *queue) propose(v worker.View) *proposal {
	w, book, by := q.u.window, q.u.Rulebook, q.approver()
	p := w.newProposal("Always approve items like "+itemName(v.Hold),
		"This rule allows exactly what is asked here, and little else. Change it as you like, and test what it says of this item.", "", 10,
		q.readBefore())
	test := func() {
		text := p.text.Text
		if p.text.Disabled() {
			return
		}
		q.u.ask(func() error {
			why, err := book.Try(v.ID, text)
			if err != nil {
				return q.became(v.Hold, err)
			}
			return errors.New(triedWords(why))
		}, func(err error) { p.say(sentence(safetext.Clip(err.Error(), 2000))) })
	}
	p.open(w, "Save and approve", func(text string) error {
		why, err := book.Try(v.ID, text)
		switch {
		case err != nil:
			return fmt.Errorf("nothing was saved: %w", q.became(v.Hold, err))
		case why.Verdict != policy.Allow:
			return errors.New("nothing was saved: " + triedWords(why))
		}
		if err := book.Add(v.ID, text); err != nil {
			return fmt.Errorf("nothing was approved: %w", err)
		}
		// The rule that is in force now may have approved it already.
		err = q.u.Desk.Approve(v.ID, v.Digest, by+", always")
		if err != nil && !errors.Is(err, worker.ErrDecided) && !errors.Is(err, worker.ErrNoHold) {
			return fmt.Errorf("the rule is saved, but this item was not approved: %w", err)
		}
		return nil
	}, func() { q.moveOn(v.ID) }, choice{label: "Test", key: doTest, stays: true, do: test})
	return p
}

// triedWords says what a rule would say of an item, and of the part of it that
// decides.
func triedWords(why policy.Explanation) string {
	switch why.Verdict {
	case policy.Allow:
		words := "with this rule the item is allowed"
		if why.RunsCode {
			words += ", and runs code from the work directory"
		}
		return words + ": " + why.Reason
	case policy.Deny:
		return "even with this rule the item is denied by " + why.By + ": " + why.Reason
	}
	return "with this rule the item would still be asked for: " + why.Reason
}
