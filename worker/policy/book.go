package policy

import (
	"fmt"
	"strings"
	"sync/atomic"

	"countersign/worker/api/wire"
)

// Mode is what --approve says.
type Mode string

// The modes. None of them overrides a deny.
const (
	ModeRules Mode = "rules" // the rules decide, a person where they ask
	ModeAsk   Mode = "ask"   // allow rules are ignored
	ModeAll   Mode = "all"   // what would be asked is allowed, but for what may touch our own files
)

// Book is what decides for one connection: built-in denies, the rules in force,
// the grants and the mode, in the order of APPROVALS.md ("Verdict"). It is safe
// for concurrent use.
type Book struct {
	mode   Mode
	rules  atomic.Pointer[Rules]
	grants *Grants
}

// NewBook returns a Book without rules: everything is asked for, but what is
// denied by nature.
func NewBook(ctx Context, mode Mode, grants *Grants) (*Book, error) {
	none, err := Parse("no rules", nil, ctx)
	if err != nil {
		return nil, err
	}
	b := &Book{mode: mode, grants: grants}
	b.rules.Store(none)
	return b, nil
}

// Use puts rules into force, read for the same place. Items judged before are
// not judged again.
func (b *Book) Use(r *Rules) { b.rules.Store(r) }

// Rules are the rules in force.
func (b *Book) Rules() *Rules { return b.rules.Load() }

// Mode is the approve mode.
func (b *Book) Mode() Mode { return b.mode }

// Grants are the grants that the book honours.
func (b *Book) Grants() *Grants { return b.grants }

// Judge decides about an item, says why, and counts what decided.
func (b *Book) Judge(i Item) Explanation {
	r := b.rules.Load()
	e, grant := b.explain(r, i)
	if grant != "" {
		b.grants.count(grant, r.ctx.Now())
	} else {
		r.count(e.rules)
	}
	return e
}

// Explain says what Judge would, and why. It has no effects.
func (b *Book) Explain(i Item) Explanation {
	e, _ := b.explain(b.rules.Load(), i)
	return e
}

func (b *Book) explain(r *Rules, i Item) (e Explanation, grant string) {
	e = r.Explain(i)
	if e.Verdict == Deny {
		return e, ""
	}
	if !e.always && (e.Verdict == Ask || b.mode == ModeAsk) {
		if g, ok := b.granted(r, i, e.asked); ok {
			e.Verdict, e.Rule, e.rules = Allow, "", nil
			e.By = "grant " + g.ID
			e.Reason = fmt.Sprintf("granted for this session at %s", g.Made.Format("15:04:05"))
			return e, g.ID
		}
	}
	switch {
	case b.mode == ModeAsk && e.Verdict == Allow:
		e.Verdict, e.By, e.Rule, e.rules, e.Reason = Ask, "", "", nil, "every item is asked for"
	case b.mode == ModeAll && e.Verdict == Ask && !e.own:
		e.Verdict, e.By, e.Rule, e.rules, e.Reason = Allow, "approve all", "", nil, "--approve all is on"
	}
	return e, ""
}

func (b *Book) granted(r *Rules, i Item, asked string) (Grant, bool) {
	if b.grants == nil {
		return Grant{}, false
	}
	rel := ""
	if i.Kind == wire.KindRead || i.Kind == wire.KindList {
		rel = leadsTo(r.ctx.Root, i.Path)
	}
	return b.grants.find(i, rel, asked, r.ctx.Now())
}

// leadsTo returns where the path of a file item leads, relative to the root, or
// "" where that is not inside.
func leadsTo(root, word string) string {
	word = strings.TrimLeft(word, "/")
	if word == "" {
		word = "."
	}
	abs, err := resolve(root, word)
	if err != nil || !inside(root, abs) {
		return ""
	}
	return relative(root, abs)
}
