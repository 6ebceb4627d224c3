package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// rulesSuggest prints rules for work that the operator has approved by hand
// again and again, and that the rules would still ask for. All that it prints is
// TOML, so that it can be added to the rule file as it is.
type rulesSuggest struct {
	Min   int    `help:"How often the very same work was approved by hand." default:"3" placeholder:"N"`
	Since string `help:"Only what was claimed since: a date, a time, or how long ago (24h)." placeholder:"T"`
}

// Bounds of a suggestion: what is remembered of the history, what is tried, and
// what one wants to read.
const (
	maxHabits      = 50_000
	maxTried       = 1000
	maxSuggestions = 50
	maxElsewhere   = 5
)

// Run implements the command.
func (c *rulesSuggest) Run(g *global, all *commandLine) error {
	return all.Rules.suggest(g, os.Stdout)
}

func (c *rulesCommand) suggest(g *global, w io.Writer) error {
	q, err := c.Suggest.query(time.Now())
	if err != nil {
		return err
	}
	r, err := c.begin(g, true)
	if err != nil {
		return err
	}
	if known := r.known(); r.connection == "" && len(known.list) > 0 {
		return known.unnamed() // a rule that is not bound to one would be in force for all of them
	}
	rules, ctx, found, err := r.rules(true)
	if err != nil {
		return unusable(os.Stderr, r.file, err)
	}
	s := suggesting{spot: r.spot, ctx: ctx, rules: rules, min: c.Suggest.Min, habits: map[workKey]*habit{},
		self: r.place.self(), others: map[string]bool{}}
	if found {
		if s.present, err = os.ReadFile(r.file); err != nil {
			return fmt.Errorf("read the rules: %w", err)
		}
	}
	err = withHistory(context.Background(), r.place, func(history *store.Store) error {
		if err := s.gather(context.Background(), history, q); err != nil {
			return err
		}
		return s.choose(context.Background(), history)
	})
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	_, err = io.WriteString(w, s.text())
	return err
}

func (c *rulesSuggest) query(now time.Time) (q worker.HistoryQuery, err error) {
	if err := config.IntWithin(c.Min, 1, 100); err != nil {
		return q, &config.Invalid{Name: "--min", Value: fmt.Sprint(c.Min), Expected: err.Error()}
	}
	if c.Since != "" {
		if q.Since, err = parseSince(c.Since, now); err != nil {
			return q, &config.Invalid{Name: "--since", Value: c.Since, Expected: err.Error()}
		}
	}
	return q, nil
}

// suggesting is one search of the history for rules.
type suggesting struct {
	spot
	ctx     policy.Context
	present []byte        // the rule file
	rules   *policy.Rules // it, with what is suggested so far
	min     int

	habits  map[workKey]*habit
	full    bool     // there was more work than is remembered
	taken   []string // suggested so far
	without int      // approved as often, and no rule can allow just that
	more    bool     // there would be more to suggest

	self      string          // how this program is called for the same place
	others    map[string]bool // other directories with work approved by hand
	elsewhere []string        // the first of these
}

// habit is work that was approved by hand, as often as was counted.
type habit struct {
	key   workKey
	count int
	last  time.Time
	ids   []worker.HoldID // the newest, as many as make a suggestion
}

// workKey stands for all that an item does, but for its time limit.
type workKey [sha256.Size]byte

func keyOf(t execute.Task) workKey {
	text, err := json.Marshal([]any{t.Kind, t.Command, t.Cwd, t.Env, t.Path, t.Content})
	if err != nil {
		panic(err) // strings always encode
	}
	return sha256.Sum256(text)
}

// gather counts what was approved by hand in this place, a page of the history
// at a time, newest first.
func (s *suggesting) gather(ctx context.Context, history *store.Store, q worker.HistoryQuery) error {
	for q.Limit = 500; ; {
		page, err := history.Find(ctx, q)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, h := range page {
			switch {
			case !s.counts(h):
			case h.WorkDir == s.root:
				s.note(h)
			default:
				s.noteElsewhere(h.WorkDir)
			}
		}
		q.Before = page[len(page)-1].ID
	}
}

// counts reports whether a hold was approved by hand, for the connection that
// rules are suggested for. How it was approved follows the operator's name: what was
// edited, or not seen whole, does not count.
func (s *suggesting) counts(h worker.Hold) bool {
	byHand := h.DecidedBy == worker.ByOperator || h.DecidedBy == control.ByCommandLine
	return h.Decision == worker.Approved && byHand && (s.connection == "" || h.Connection == s.connection)
}

func (s *suggesting) noteElsewhere(dir string) {
	if !s.others[dir] && len(s.elsewhere) < maxElsewhere {
		s.elsewhere = append(s.elsewhere, dir)
	}
	s.others[dir] = true
}

func (s *suggesting) note(h worker.Hold) {
	task, err := execute.Decode(h.Item.Kind, h.Item.Payload)
	if err != nil {
		return
	}
	key := keyOf(task)
	known := s.habits[key]
	if known == nil {
		if len(s.habits) >= maxHabits {
			s.full = true
			return
		}
		known = &habit{key: key, last: h.OpenedAt}
		s.habits[key] = known
	}
	known.count++
	if len(known.ids) < s.min {
		known.ids = append(known.ids, h.ID)
	}
}

// choose suggests a rule for each habit that the rules ask for, most often
// approved first.
func (s *suggesting) choose(ctx context.Context, history *store.Store) error {
	var often []*habit
	for _, h := range s.habits {
		if h.count >= s.min {
			often = append(often, h)
		}
	}
	slices.SortFunc(often, func(a, b *habit) int {
		return cmp.Or(cmp.Compare(b.count, a.count), b.last.Compare(a.last), cmp.Compare(b.ids[0], a.ids[0]))
	})
	for i, h := range often {
		if len(s.taken) == maxSuggestions || i == maxTried {
			s.more = true
			return nil
		}
		task, same, err := wholeWork(ctx, history, h)
		if err != nil {
			return err
		}
		if same {
			s.try(h, task)
		}
	}
	return nil
}

// wholeWork reads what was approved. The pages of the history have a stand-in
// for what is large, which other work can share: same is whether it was indeed
// the same each time.
func wholeWork(ctx context.Context, history *store.Store, h *habit) (task execute.Task, same bool, err error) {
	for _, id := range h.ids {
		hold, err := history.Hold(ctx, id)
		if err != nil {
			return task, false, err
		}
		if task, err = execute.Decode(hold.Item.Kind, hold.Item.Payload); err != nil || keyOf(task) != h.key {
			return task, false, nil
		}
	}
	return task, true, nil
}

// try suggests a narrow rule for work, if the rules ask for it and would allow
// it with that rule, and pass their own tests.
func (s *suggesting) try(h *habit, task execute.Task) {
	item := policy.Item{Task: task, Connection: s.connection}
	if s.rules.Explain(item).Verdict != policy.Ask {
		return
	}
	rule, err := policy.Narrow(s.name(task), item)
	if err != nil {
		s.without++
		return
	}
	text := comment(h, task, rule) + asciiTOML(rule)
	next, err := policy.Parse(s.rules.File(), []byte(string(s.present)+"\n"+strings.Join(s.taken, "\n")+"\n"+text), s.ctx)
	if err != nil || next.Explain(item).Verdict != policy.Allow {
		s.without++
		return
	}
	s.taken, s.rules = append(s.taken, text), next
}

// name is one that no rule has yet.
func (s *suggesting) name(task execute.Task) string {
	base := "often approved: " + safetext.Clip(workText(task), 60)
	name := base
	for n := 2; slices.ContainsFunc(s.rules.Counts(), func(c policy.Count) bool { return c.Rule == name }); n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	return name
}

func workText(t execute.Task) string {
	if t.Kind == wire.KindExec {
		return t.Command
	}
	return t.Kind + " " + t.Path
}

// comment tells above a rule why it is suggested, and what to mind.
func comment(h *habit, task execute.Task, rule string) string {
	var b strings.Builder
	where := ""
	if task.Cwd != "" {
		where = " in " + task.Cwd
	}
	say(&b, "approved by hand %s, last on %s: %s%s", times(h.count), h.last.Local().Format(time.DateTime), workText(task), where)
	if strings.Contains(rule, "\nruns-code = true\n") {
		say(&b, "mind: it runs what is in the work directory, whatever that is then")
	}
	if strings.Contains(rule, "\nenv = [") {
		say(&b, "mind: the variables in env may then have any value")
	}
	if task.Kind == wire.KindWrite {
		say(&b, "mind: anything may be written there then, not just what was")
	}
	for _, r := range policy.Risks(task) {
		say(&b, "mind: %s: %s", r.Mark, r.Reason)
	}
	return b.String()
}

// say writes a line that is a comment of TOML.
func say(b *strings.Builder, format string, args ...any) {
	fmt.Fprintf(b, "# %s\n", safetext.Line(fmt.Sprintf(format, args...)))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// asciiTOML writes TOML with escapes for all that is not ASCII, which Narrow
// leaves in strings only: a terminal has nothing to reorder or to hide then.
func asciiTOML(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	return b.String()
}

// text is all that is printed.
func (s *suggesting) text() string {
	var b strings.Builder
	where := s.root
	if s.connection != "" {
		where = fmt.Sprintf("%s in %s", s.connection, s.root)
	}
	if len(s.taken) == 0 {
		say(&b, "Nothing to suggest for %s: nothing that the rules ask for was approved by hand %s or more and can have a rule of its own.", where, times(s.min))
	} else {
		say(&b, "For %s. Read each of these, then add it to %s.", where, s.rules.File())
		say(&b, "Each allows exactly these words, in the directory that it names: cwd = \".\" is the work directory itself.")
	}
	if len(s.habits) == 0 && len(s.elsewhere) > 0 {
		say(&b, "The history has what was approved by hand in other directories. To see what can be suggested for these:")
		for _, dir := range s.elsewhere {
			fmt.Fprintf(&b, "#   %s rules suggest%s\n", s.self, flagFor("--workdir", dir, "")) // both are drawn safely
		}
		if more := len(s.others) - len(s.elsewhere); more > 0 {
			say(&b, "and %d more", more)
		}
	}
	if s.without > 0 {
		say(&b, "Left out: %d that were approved as often; no rule can allow just them, or your rules or their tests forbid it.", s.without)
	}
	if s.more {
		say(&b, "There is more to suggest: add these first, or give a higher --min.")
	}
	if s.full {
		say(&b, "The history has more different work than is compared at once; give --since.")
	}
	for _, rule := range s.taken {
		b.WriteString("\n" + rule)
	}
	return b.String()
}
