// Package policy says what may run without asking: it turns an item into
// allow, deny or ask, with who or what said so (APPROVALS.md).
package policy

// Verdict is what a policy says about an item.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
)
