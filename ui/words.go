package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// summary says in one safe line what an item asks for.
func summary(item worker.Item) string {
	task, err := execute.Decode(item.Kind, item.Payload)
	if err != nil {
		return "cannot be read: " + safetext.Clip(string(item.Payload), 120)
	}
	switch task.Kind {
	case wire.KindExec:
		return safetext.Clip(task.Command, 200)
	case wire.KindWrite:
		return fmt.Sprintf("%s  (%s)", safetext.Clip(task.Path, 160), bytesWords(int64(len(task.Content))))
	}
	return safetext.Clip(task.Path, 200)
}

// numbered makes a text safe and cuts it into numbered lines.
func numbered(text string, style lineStyle) []textLine {
	parts := strings.Split(safetext.Block(text), "\n")
	lines := make([]textLine, len(parts))
	for i, p := range parts {
		lines[i] = textLine{Text: p, Style: style, Number: i + 1, Inks: markInks(p)}
	}
	return lines
}

// sessionShown is how long a session's name may be in the facts. A longer one is
// with what is decided on, whole.
const sessionShown = 200

func bytesWords(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

func countWords(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// ageWords is a span as people say it: its one or two largest units.
func ageWords(d time.Duration) string {
	d = max(d, 0)
	switch s := int(d.Seconds()); {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%d days", s/86400)
	}
}

// recently is a span that still grows, in steps of ten seconds at first.
func recently(d time.Duration) string {
	if d < time.Minute {
		d = d.Truncate(10 * time.Second)
	}
	if d < 10*time.Second {
		return "just now"
	}
	return ageWords(d)
}

// countdown is what is left: as a clock shows it towards the end, before that in
// minutes, so that a window with nothing new in it is not drawn every second.
func countdown(d time.Duration) string {
	if d >= 2*time.Minute {
		return ageWords(d)
	}
	s := max(int(d.Seconds()+0.5), 0)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func limitWords(d time.Duration) string {
	if d%time.Minute == 0 {
		return countWords(int(d/time.Minute), "minute", "minutes")
	}
	return d.String()
}

// when is a time of day, with its date unless that is today's.
func when(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

const unknownOutcome = "Outcome unknown"

// outcomeWords says how an execution ended, in one line.
func outcomeWords(o *execute.Outcome) string {
	if o == nil {
		return ""
	}
	took := ""
	if !o.StartedAt.IsZero() && o.FinishedAt.After(o.StartedAt) {
		took = " after " + tookWords(o.FinishedAt.Sub(o.StartedAt))
	}
	words := ""
	switch o.How {
	case execute.Ended:
		words = fmt.Sprintf("Exit %d%s", o.Exit, took)
	case execute.Signalled:
		words = fmt.Sprintf("Ended by signal %s%s, reported as exit %d", o.Signal, took, o.Exit)
	case execute.TimedOut:
		words = fmt.Sprintf("Timed out%s, reported as exit %d", took, o.Exit)
	case execute.Stopped:
		words = fmt.Sprintf("Stopped%s, reported as exit %d", took, o.Exit)
	case execute.CouldNotStart:
		words = fmt.Sprintf("Could not start, reported as exit %d", o.Exit)
	case execute.FileFailed:
		words = "Not done"
	case execute.Lost:
		words = unknownOutcome
	}
	if o.Reason != "" {
		words += ": " + safetext.Clip(because(unknownOutcome, because(string(o.How), o.Reason)), 300)
	}
	if o.CutBytes > 0 {
		words += fmt.Sprintf("; %s of output left out of the report", bytesWords(o.CutBytes))
	}
	return words
}

// because leaves out of a reason the word that stands before it already.
func because(word, reason string) string {
	if n := len(word) + 2; len(reason) > n && strings.EqualFold(reason[:n], word+": ") {
		return reason[n:]
	}
	return reason
}

func tookWords(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return ageWords(d)
}

// deedWords says for file operations what exit codes say for commands.
func deedWords(h worker.Hold) string {
	if h.Outcome != nil && h.Item.Kind != wire.KindExec && h.Outcome.How == execute.Ended {
		return "Done"
	}
	return outcomeWords(h.Outcome)
}

// endWords says how an item ended: what it did, or that nothing ran.
func endWords(h worker.Hold) string {
	words, ran := deedWords(h), ranWords(h)
	switch {
	case words == "":
		return ran
	case ran == "" || strings.Contains(strings.ToLower(words), "nothing ran"):
		return words
	}
	return strings.TrimSuffix(words, ".") + ". " + ran
}

// ranWords says of an end without a start that nothing ran. The execution
// belongs to the item, which may have been started when it was held before.
func ranWords(h worker.Hold) string {
	over := h.Acceptance == worker.Refused || h.Acceptance == worker.Unconfirmed
	switch h.Decision {
	case worker.Declined, worker.Expired, worker.Withdrawn, worker.Released:
		over = true
	}
	switch {
	case h.Execution == worker.CouldNotStart, over && h.Execution == worker.NotStarted:
		return "Nothing ran."
	case over:
		return "Nothing ran this time; the item was started when it was held before."
	}
	return ""
}

// rowEnd says in a row how an item ended, without what its status word says.
func rowEnd(h worker.Hold) string {
	words := strings.TrimSuffix(endWords(h), ".")
	if o := h.Outcome; o != nil && o.How == execute.Ended && o.Exit != 0 && h.Status() == worker.WordReported {
		words = strings.TrimPrefix(strings.TrimPrefix(words, fmt.Sprintf("Exit %d", o.Exit)), " ")
	}
	if o := h.Outcome; o != nil && o.How == execute.Lost { // its status word says what it is
		words = strings.TrimPrefix(because(unknownOutcome, words), "interrupted after starting; ")
	}
	if words != "" {
		words = worker.FailureMark + words
	}
	return words
}

// rowRest is how an item ended behind the rest of its row; before it where nobody
// saw the end, which must not be what there is no room for.
func rowRest(h worker.Hold, rest string) string {
	end := rowEnd(h)
	if isLost(h) {
		return strings.TrimPrefix(end, worker.FailureMark) + worker.FailureMark + rest
	}
	return rest + end
}

// statusIcon is the picture and colour beside an accept status word. The word
// is always there too.
func statusIcon(word string) (fyne.Resource, fyne.ThemeColorName) {
	if strings.HasPrefix(word, worker.WordReported+worker.FailureMark) {
		return theme.WarningIcon(), theme.ColorNameWarning
	}
	switch word {
	case worker.WordWaiting:
		return theme.QuestionIcon(), theme.ColorNamePrimary
	case worker.WordInLine, worker.WordAsking, worker.WordDelivering, worker.WordReturned:
		return theme.HistoryIcon(), theme.ColorNamePlaceHolder
	case worker.WordPaused:
		return theme.MediaPauseIcon(), theme.ColorNamePlaceHolder
	case worker.WordAccepted, worker.WordReported:
		return theme.ConfirmIcon(), theme.ColorNameSuccess
	case worker.WordRunning:
		return theme.MediaPlayIcon(), theme.ColorNameSuccess
	case worker.WordStopping, worker.WordStopped, worker.WordTimedOut:
		return theme.MediaStopIcon(), theme.ColorNameWarning
	case worker.WordDeclined, worker.WordExpired:
		return theme.CancelIcon(), theme.ColorNamePlaceHolder
	case worker.WordWithdrawn, worker.WordReleased:
		return theme.ContentUndoIcon(), theme.ColorNamePlaceHolder
	case worker.WordAtRisk:
		return theme.WarningIcon(), theme.ColorNameWarning
	}
	return theme.ErrorIcon(), theme.ColorNameError
}

// kindIcon is the picture of a kind of work.
func kindIcon(kind string) fyne.Resource {
	switch kind {
	case wire.KindExec:
		return theme.ComputerIcon()
	case wire.KindRead:
		return theme.FileTextIcon()
	case wire.KindWrite:
		return theme.DocumentCreateIcon()
	case wire.KindList:
		return theme.FolderOpenIcon()
	}
	return theme.QuestionIcon()
}

// stepLines is a journal as lines: when, what, why.
func stepLines(entries []worker.Entry, now time.Time) []textLine {
	lines := make([]textLine, 0, len(entries))
	for _, e := range entries {
		word := stepWord(e)
		text := when(e.At, now) + "  " + word
		if e.Reason != "" {
			text += ": " + safetext.Clip(because(word, e.Reason), 400)
		}
		lines = append(lines, textLine{Text: text, Style: note})
	}
	return lines
}

// stepWord names a step as the accept status would.
func stepWord(e worker.Entry) string {
	word := string(e.Step)
	switch e.Step {
	case worker.StepDecided:
		word = string(e.Facts.Decision)
		if e.Facts.DecidedBy != "" {
			word += " by " + safetext.Clip(e.Facts.DecidedBy, 60)
		}
	case worker.StepAsking:
		word = "asking the harness"
	case worker.StepStarting:
		word = "started"
	case worker.StepFinished:
		word = string(e.Facts.Execution)
	case worker.StepDelivering:
		word = "reporting"
	case worker.StepDelivered:
		word = "report " + string(e.Facts.Delivery)
	}
	if word == "" {
		return "–"
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
