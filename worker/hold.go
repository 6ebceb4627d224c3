package worker

import (
	"encoding/json"
	"strings"
	"time"

	"countersign/worker/api"
	"countersign/worker/execute"
)

// HoldID numbers a hold in the journal. It is unique in one data directory,
// over all connections, and is what people type: "approve 12".
type HoldID int64

// Item is one work item as it was claimed.
type Item = api.Item

// Hold is what one claim answer opened: the item, who holds it for which
// connection, and how far it has come. As a value it is a snapshot; the journal
// keeps the same fields.
type Hold struct {
	ID          HoldID
	Connection  string // the name in the configuration
	Origin      string // scheme://host:port of the harness
	Environment string // environment id, "" where there is none
	WorkerID    string // the id that claimed it; completions must carry it
	Item        Item
	Digest      string // hex SHA-256 over exactly what is shown to the operator
	Shown       Shown  // what was shown with it
	WorkDir     string // canonical work directory it was shown with
	OutputPath  string // file of the transcript, "" where nothing was captured
	Returned    bool   // the harness handed out an item that was let go here before
	OpenedAt    time.Time
	Facts
	Edited  json.RawMessage  // the payload as the operator changed it; nil where they did not
	Outcome *execute.Outcome // nil until the execution ended
}

// Facts are the four independent truths about a hold (DESIGN.md). Execution
// belongs to the item: every hold of one item has the same.
type Facts struct {
	Decision   Decision
	DecidedBy  string // ByOperator and how, a rule, a grant, "approve all", "countersign" for its own
	Words      string // the operator's words for the agent, or why it was withdrawn
	Acceptance Acceptance
	Refusal    Refusal // set with Refused only
	Execution  Execution
	Delivery   Delivery
	Closed     bool // nothing more will be done with this hold
}

// ByOperator is who decided, where an operator did. How they did may follow it.
const ByOperator = "operator"

// byOperator reports whether an operator decided.
func byOperator(by string) bool { return strings.HasPrefix(by, ByOperator) }

// Decision is what was decided about a hold before anything could start.
type Decision string

// The decisions.
const (
	Undecided Decision = "undecided"
	Approved  Decision = "approved"
	Declined  Decision = "declined"
	Expired   Decision = "expired"   // nobody answered in time: declined with those words
	Withdrawn Decision = "withdrawn" // the harness took it back before it started
	Released  Decision = "released"  // let go without an answer
)

// Acceptance is how far the harness's accept has come. Only Accepted
// authorizes a start.
type Acceptance string

// The acceptances.
const (
	NotAsked    Acceptance = "not asked"
	Asking      Acceptance = "asking"
	Accepted    Acceptance = "accepted"
	Refused     Acceptance = "refused"
	Unconfirmed Acceptance = "unconfirmed" // no answer in time; given up unrun
)

// Refusal says why a harness refused an accept.
type Refusal string

// The refusals.
const (
	NoRefusal          Refusal = ""
	RefusedStopped     Refusal = "session stopped"
	RefusedLapsed      Refusal = "lease lapsed"
	RefusedNotOurs     Refusal = "not ours any more"
	RefusedUnknown     Refusal = "unknown to the harness"
	RefusedUnsupported Refusal = "harness cannot accept"
	RefusedOther       Refusal = "refused" // any other status; the journal has it
)

// Execution is what happened to the item itself. It leaves NotStarted once,
// ever, and only under an accepted hold.
type Execution string

// The executions.
const (
	NotStarted    Execution = "not started"
	Starting      Execution = "starting" // written before the process is made
	Running       Execution = "running"  // in memory only; the journal keeps Starting
	Finished      Execution = "finished"
	Stopped       Execution = "stopped"
	CouldNotStart Execution = "could not start"
	Interrupted   Execution = "interrupted" // found after a crash: it may have run
)

// Delivery is how far the report to the harness has come.
type Delivery string

// The deliveries.
const (
	NothingToDeliver    Delivery = "nothing to deliver"
	Delivering          Delivery = "delivering"
	Delivered           Delivery = "delivered"
	DeliveryRefused     Delivery = "refused"     // 409 on the first try: not recorded
	DeliveryUnconfirmed Delivery = "unconfirmed" // 409 after a lost answer: maybe recorded
	Undelivered         Delivery = "undelivered" // refused for good, or given up
)

// Names for what only the worker can know, spelled as in PROTOCOL.md §3.
const (
	ClaimUnconfirmed      = "work_claim_unconfirmed"
	AcceptUnconfirmed     = "work_accept_unconfirmed"
	HeartbeatUnconfirmed  = "work_heartbeat_unconfirmed"
	CompletionUnconfirmed = "work_completion_unconfirmed"
	CompletionUndelivered = "work_completion_undelivered"
)

// Step names a journal entry.
type Step string

// The steps of an item's life, and what may be noted beside them.
const (
	StepClaimed    Step = "claimed"
	StepDecided    Step = "decided"
	StepAsking     Step = "asking"
	StepAccepted   Step = "accepted"
	StepRefused    Step = "refused"
	StepChanged    Step = "changed since shown" // accepted, and back before the operator
	StepStarting   Step = "starting"
	StepFinished   Step = "finished"
	StepDelivering Step = "delivering"
	StepDelivered  Step = "delivered" // or how delivering ended; the facts say
	StepRecovered  Step = "recovered" // taken up again after a restart
	StepLease      Step = "lease"     // a note: at risk, lost, sure again
	StepOffered    Step = "offered again"
)

// Entry is one line of a hold's journal.
type Entry struct {
	Hold   HoldID
	At     time.Time
	Step   Step
	Reason string
	Facts  Facts // as they were after this entry
}

// Move is one durable step of a hold: what happened, when, why, and the facts
// that hold from then on. A Move with nil Facts is a note and changes none.
type Move struct {
	At      time.Time
	Step    Step
	Reason  string
	Facts   *Facts
	Outcome *execute.Outcome // with Facts whose Execution has ended
	Shown   *Shown           // where the item is shown anew: it and its digest replace what was
	Digest  string           // with Shown
	Edited  json.RawMessage  // with an approval of other work in the item's place; gone with its decision
}

// Status is the accept status of a hold in one or a few words (UX.md).
func (h Hold) Status() string { return h.Facts.status(h.Outcome) }
