package policy

import (
	"slices"
	"strings"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

// Item is what is judged: a tool call and where it comes from.
type Item struct {
	execute.Task
	Connection string // its name
	Session    string // its id
	From       string // the harness and environment that the session belongs to
	Dir        string // the canonical work directory
}

// Explanation is a verdict with its reasons. Its JSON is stable.
type Explanation struct {
	Verdict  Verdict `json:"verdict"`
	By       string  `json:"by,omitempty"`        // who decided, for the history; "" with ask
	Rule     string  `json:"rule,omitempty"`      // the rules that decided, or that asked
	Reason   string  `json:"reason"`              // for people
	RunsCode bool    `json:"runs_code,omitempty"` // it executes what is in the work directory
	Parts    []Part  `json:"parts"`

	rules  []string // the names in Rule
	asked  string   // the ask rules that asked, all of which a grant has to name
	always bool     // always asked for: neither rule nor grant helps
	own    bool     // it may touch what is ours: --approve all does not help either
}

// Part is one part of a command, or the one path of a file item.
type Part struct {
	Text     string  `json:"text"` // as the agent wrote it: untrusted
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`
	Rule     string  `json:"rule,omitempty"`
	RunsCode bool    `json:"runs_code,omitempty"`
	Inner    bool    `json:"inner,omitempty"` // found inside another part; it alone is never allowed

	rules  []string
	always bool
	own    bool // see Explanation
}

// BuiltIn is who decided where it was neither a rule of the operator's nor they.
const BuiltIn = "built-in rule"

// Explain judges an item by these rules and the built-in ones alone: grants and
// the approve mode are for a Book. It has no effects and counts nothing.
func (r *Rules) Explain(i Item) Explanation {
	return (&judging{r: r, item: i, now: r.ctx.Now()}).explain()
}

// Grantable says whether a grant can allow the item: what is always asked for is
// approved each time it comes.
func (e Explanation) Grantable() bool { return e.Verdict == Ask && !e.always }

func (j *judging) explain() Explanation {
	var e Explanation
	switch j.item.Kind {
	case wire.KindExec:
		e.Parts = j.exec()
	case wire.KindRead, wire.KindWrite, wire.KindList:
		e.Parts = []Part{j.file()}
	default:
		e.Parts = []Part{{Text: j.item.Kind, Verdict: Ask, Reason: "this kind of work is always asked for"}}
	}
	e.sumUp()
	if e.Verdict != Ask {
		e.By = BuiltIn
		if len(e.rules) > 0 {
			e.By = j.r.by(e.rules)
		}
	}
	return e
}

// sumUp makes one verdict of those of the parts: denied if one is, else asked
// for if one is. Only top-level parts can be allowed, and all must be.
func (e *Explanation) sumUp() {
	for _, v := range []Verdict{Deny, Ask} {
		if p := e.first(v); p != nil {
			e.Verdict, e.Reason, e.Rule, e.rules = v, p.Reason, p.Rule, p.rules
			if v == Ask {
				e.noteAsking()
			}
			return
		}
	}
	if len(e.Parts) == 0 {
		e.Verdict, e.Reason = Ask, "there is nothing in it that is understood"
		return
	}
	e.Verdict, e.Reason = Allow, e.Parts[0].Reason
	for _, p := range e.Parts {
		e.RunsCode = e.RunsCode || p.RunsCode
		e.rules = appendNew(e.rules, p.rules...)
	}
	e.Rule = strings.Join(e.rules, ", ")
	if len(e.Parts) > 1 {
		e.Reason = "every part is allowed"
	}
}

// first returns the part that gives the reason for a verdict: one that a rule
// speaks about, if there is one.
func (e *Explanation) first(v Verdict) (found *Part) {
	for i := range e.Parts {
		if p := &e.Parts[i]; p.Verdict == v && (found == nil || found.Rule == "" && p.Rule != "") {
			found = p
		}
	}
	return found
}

// noteAsking notes which rules asked, all of them, and whether nothing can
// answer for a person.
func (e *Explanation) noteAsking() {
	var names []string
	for _, p := range e.Parts {
		if p.Verdict == Ask {
			names = appendNew(names, p.rules...)
		}
		e.always = e.always || p.always
		e.own = e.own || p.own
	}
	slices.Sort(names)
	e.asked = strings.Join(names, "\x00")
}

func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
