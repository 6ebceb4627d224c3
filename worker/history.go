package worker

import "time"

// HistoryQuery selects holds from the history, newest first. Zero fields do
// not restrict.
type HistoryQuery struct {
	Text    string // words or word beginnings in command, path, output, session
	Session string
	Kind    string
	Status  string // an accept status exactly as Hold.Status spells it
	Since   time.Time
	Until   time.Time
	Before  HoldID // only holds with a smaller number: the next page
	Limit   int    // at most this many; 0 means 100
}
