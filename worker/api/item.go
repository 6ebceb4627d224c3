package api

import (
	"encoding/json"
	"time"
)

// Item is one work item as a claim answered it. The per-session secret that
// some harnesses send along is dropped when the answer is decoded.
type Item struct {
	ID        string
	SessionID string // any string; never a file name as it stands
	Kind      string
	Payload   json.RawMessage // byte for byte as sent; nil where it was missing
	CreatedAt time.Time       // the harness's clock; zero if it could not be read
	ClaimedAt time.Time       // the harness's clock; zero if it could not be read
	// ClaimStatus is the status in the claim answer: "queued" or "claimed". It
	// tells harnesses apart that would hand a started item to someone else
	// ("claimed") from those that would not (PROTOCOL.md §6).
	ClaimStatus string
}
