package api

import (
	"encoding/json"
	"errors"
	"time"
)

// decodeItem reads a claim answer. Only the id is required: an item whose other
// fields are odd is still ours, and is declined with words rather than left to
// lapse. Names are matched exactly and the payload is kept byte for byte.
func decodeItem(body []byte) (Item, error) {
	fields, ok := object(body)
	if !ok {
		return Item{}, errors.New("not a JSON object: a proxy's page?")
	}
	item := Item{
		ID:          text(fields, "id"),
		SessionID:   eitherText(fields, "sessionId", "session_id"),
		Kind:        text(fields, "kind"),
		CreatedAt:   parseTime(eitherText(fields, "createdAt", "created_at")),
		ClaimedAt:   parseTime(eitherText(fields, "claimedAt", "claimed_at")),
		ClaimStatus: text(fields, "status"),
	}
	if item.ID == "" {
		return Item{}, errors.New("an item without an id")
	}
	if payload := fields["payload"]; len(payload) > 0 && string(payload) != "null" {
		item.Payload = json.RawMessage(payload)
	}
	return item, nil
}

func eitherText(fields map[string]json.RawMessage, name, other string) string {
	if s := text(fields, name); s != "" {
		return s
	}
	return text(fields, other)
}

// parseTime reads a harness's timestamp, which is UTC where it names no zone.
// It returns the zero time for anything else.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.DateTime, time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
