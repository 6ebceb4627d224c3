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
	asked  string   // the ask rule that asked, which a grant has to name
	always bool     // always asked for: neither rule nor grant helps
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
}

// builtIn names the verdicts that no rule made.
const builtIn = "built-in rule"

// Explain judges an item by these rules and the built-in ones alone: grants and
// the approve mode are for a Book. It has no effects and counts nothing.
func (r *Rules) Explain(i Item) Explanation {
	return (&judging{r: r, item: i, now: r.ctx.Now()}).explain()
}

// Judge implements Policy for items of no connection and session: rules that
// name one do not apply.
func (r *Rules) Judge(t execute.Task) Judgement { return r.JudgeItem(Item{Task: t}) }

// JudgeItem is Explain in short, and counts the rules that decided.
func (r *Rules) JudgeItem(i Item) Judgement {
	e := r.Explain(i)
	r.count(e.rules)
	return e.judgement()
}

func (e Explanation) judgement() Judgement {
	j := Judgement{Verdict: e.Verdict, Reason: e.Reason}
	if e.Verdict != Ask {
		j.By = e.By
	}
	return j
}

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
		e.By = builtIn
		if len(e.rules) > 0 {
			e.By = j.r.by(e.rules)
		}
	}
	return e
}

// sumUp makes one verdict of those of the parts: denied if one is, else asked
// for if one is. Only top-level parts can be allowed, and all must be.
func (e *Explanation) sumUp() {
	e.Verdict = Allow
	if len(e.Parts) == 0 {
		e.Verdict, e.Reason = Ask, "there is nothing in it that is understood"
	}
	worst := func(v Verdict) (first *Part) {
		for i := range e.Parts {
			p := &e.Parts[i]
			if p.Verdict != v {
				continue
			}
			if first == nil || v == Ask && first.Rule == "" && p.Rule != "" {
				first = p
			}
			e.always = e.always || p.always
		}
		return first
	}
	for _, v := range []Verdict{Deny, Ask} {
		if p := worst(v); p != nil {
			e.Verdict, e.Reason, e.Rule, e.rules = v, p.Reason, p.Rule, p.rules
			if v == Ask {
				e.asked = p.Rule
			}
			return
		}
	}
	for _, p := range e.Parts {
		e.RunsCode = e.RunsCode || p.RunsCode
		for _, name := range p.rules {
			if !slices.Contains(e.rules, name) {
				e.rules = append(e.rules, name)
			}
		}
		if e.Reason == "" {
			e.Reason = p.Reason
		}
	}
	e.Rule = strings.Join(e.rules, ", ")
	if len(e.Parts) > 1 {
		e.Reason = "every part is allowed"
	}
}
