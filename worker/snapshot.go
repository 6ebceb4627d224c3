package worker

import "time"

// Snapshot is the state of the engines at one moment, for whoever draws it. It
// shares no memory with them.
type Snapshot struct {
	At          time.Time
	Connections []ConnectionView
	Waiting     []View // undecided, or approved and not started; oldest first
	Running     []View // accepted and started, until the process ended; oldest first
	Finished    []View // just finished, newest first; bounded
	Paused      bool
	PausedUntil time.Time // zero while paused without an end
	Away        bool      // two decisions in a row expired: claiming stopped
	ApproveAll  bool      // --approve all is on for some connection
}

// View is a hold as it is now, with what only memory knows.
type View struct {
	Hold
	Word         string        // the accept status, live (UX.md)
	Age          time.Duration // since the session asked for it
	Lease        time.Duration // our estimate of what is left; negative once lapsed
	LeaseWindow  time.Duration // the whole lease
	AtRisk       bool          // the last heartbeat was not confirmed
	DecisionLeft time.Duration // until it expires; zero once decided
	Steps        []Entry       // what was journalled so far, oldest first
	Changed      bool          // what it names changed since it was shown and approved
	Grantable    bool          // it can be approved for its session
}

// ConnectionState says how a connection's harness was last met.
type ConnectionState string

// The connection states.
const (
	Connecting          ConnectionState = "connecting"
	Connected           ConnectionState = "connected"
	Unreachable         ConnectionState = "unreachable"          // no usable answer
	CredentialsRejected ConnectionState = "credentials rejected" // 401 or 403
	ClaimsRefused       ConnectionState = "claims refused"       // 400 and the like
	CannotAccept        ConnectionState = "cannot accept"        // the harness has no accept route
	JournalUnwritable   ConnectionState = "journal cannot be written"
	WorkDirUnusable     ConnectionState = "work directory unusable"
)

// ConnectionView is one connection as it is now.
type ConnectionView struct {
	Name        string
	Origin      string
	Environment string
	WorkDir     string
	State       ConnectionState
	Detail      string    // what happened and what to do, for people
	LastContact time.Time // of the last usable answer
	MaxHeld     int
	MaxRunning  int
	ApproveAll  bool
	RemovedEnv  []string // variables that commands do not get, sorted; nil until Run began; never changed
	Confinement string   // what commands are kept from, for people
}

// LeftOpen is what is unfinished in the journal for one harness and environment.
// Nobody tends it where no connection is to them.
type LeftOpen struct {
	Connection  string // the name it last had
	Origin      string
	Environment string
	Holds       []HoldID // oldest first
}

// EventKind names what an operator may need to be told of.
type EventKind string

// The event kinds.
const (
	EventWaiting        EventKind = "waiting"            // an item waits for a decision
	EventExpiring       EventKind = "expiring"           // a decision ends within a minute
	EventExpired        EventKind = "expired"            // nobody answered
	EventAway           EventKind = "away"               // two expired in a row: claiming stopped
	EventLeaseAtRisk    EventKind = "lease at risk"      // a heartbeat was not confirmed
	EventLeaseLost      EventKind = "lease lost"         // lapsed, or taken by another worker
	EventSessionStopped EventKind = "session stopped"    // withdrawn unrun, or its command was stopped
	EventUndelivered    EventKind = "undelivered"        // a result did not arrive, or was not recorded
	EventUnconfirmed    EventKind = "accept unconfirmed" // given up unrun
	EventInterrupted    EventKind = "interrupted"        // found after a crash
	EventCredentials    EventKind = "credentials"        // credentials rejected
	EventUnreachable    EventKind = "unreachable"        // for 30 s
	EventReachable      EventKind = "reachable"          // and back
	EventClaimsRefused  EventKind = "claims refused"     // 400 and the like
	EventCannotAccept   EventKind = "cannot accept"      // the harness has no accept route
	EventFinished       EventKind = "finished"           // an item ended, whichever way
)

// Event is one thing that happened. Text is made of fixed words, counts and
// short ids of ours, never of what an agent wrote: it may be shown anywhere.
type Event struct {
	Kind       EventKind
	At         time.Time
	Connection string
	Hold       HoldID // 0 where it is about the connection
	Ran        bool   // whether the item's command had started
	Text       string
}

// Observer is told of changes. Its methods are called from the engine's own
// goroutines and must return at once.
type Observer interface {
	Changed()       // a new Snapshot would differ
	Happened(Event) // once per event
}
