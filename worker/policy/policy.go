// Package policy says what may run without asking: it turns an item into
// allow, deny or ask, with who or what said so (APPROVALS.md).
package policy

import "countersign/worker/execute"

// Verdict is what a policy says about an item.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
)

// Judgement is a verdict and where it came from.
type Judgement struct {
	Verdict Verdict
	By      string // who decided, for the history; "" with Ask
	Reason  string // for people
}

// Policy judges items. Judge is called from several goroutines and must not
// block.
type Policy interface {
	Judge(execute.Task) Judgement
}

// AskAlways asks a person for every item: --approve ask.
type AskAlways struct{}

// Judge implements Policy.
func (AskAlways) Judge(execute.Task) Judgement {
	return Judgement{Verdict: Ask, Reason: "every item is asked for"}
}

// AllowAll approves every item: --approve all, for unattended machines.
type AllowAll struct{}

// Judge implements Policy.
func (AllowAll) Judge(execute.Task) Judgement {
	return Judgement{Verdict: Allow, By: "approve all", Reason: "--approve all is on"}
}
