package execute

import (
	"encoding/json"
	"time"
)

// How says how an execution ended.
type How string

// The ways an execution ends.
const (
	Ended         How = "ended"           // the process exited, or the file operation was done
	Signalled     How = "signalled"       // ended by a signal that was not ours
	TimedOut      How = "timed out"       // stopped at its own time limit: exit 124
	Stopped       How = "stopped"         // stopped by us, before its end; never exit 0
	CouldNotStart How = "could not start" // no process was made: exit 126 or 127
	FileFailed    How = "failed"          // a file operation that was not done
	Lost          How = "lost"            // started, and found without an outcome after a crash
)

// Outcome is what an execution left behind. It is what the journal keeps and
// what is reported.
type Outcome struct {
	How         How             `json:"how"`
	Exit        int             `json:"exit"`             // exec only
	Signal      string          `json:"signal,omitempty"` // its name, Signalled only
	Reason      string          `json:"reason,omitempty"` // for people: why stopped, failed or not started
	Result      json.RawMessage `json:"result"`           // what complete carries, never empty
	Failed      bool            `json:"failed,omitempty"` // complete with failed: true
	StartedAt   time.Time       `json:"started_at"`
	FinishedAt  time.Time       `json:"finished_at"`
	StdoutBytes int64           `json:"stdout_bytes"` // printed, before any cap
	StderrBytes int64           `json:"stderr_bytes"`
	CutBytes    int64           `json:"cut_bytes"` // printed but left out of Result
	Head        string          `json:"head"`      // beginning of the output as valid UTF-8, for search
}
