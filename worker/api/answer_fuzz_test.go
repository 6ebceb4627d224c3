package api

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzOnlyAnOKIsAYes reads whatever a harness, or what stands before it, may
// answer. Only a 200 that says {"ok":true} is a yes; everything else is a refusal
// or no answer, with bounded words.
func FuzzOnlyAnOKIsAYes(f *testing.F) {
	f.Add(200, "application/json", []byte(`{"ok":true}`))
	f.Add(200, "text/html", []byte(`<html>`))
	f.Add(409, "application/json", []byte(`{"error":{"type":"conflict","code":"work_lease_lost","message":"m"}}`))
	f.Add(404, "text/plain; charset=utf-8", []byte("404 page not found"))
	f.Add(502, "", []byte("\xff\x00"))
	f.Add(400, "application/json", []byte(`{"error":"no"}`))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		a := answer{op: "accept", status: status, contentType: contentType, body: body}
		err := a.ok()
		if err == nil {
			var said map[string]json.RawMessage
			if status != 200 || json.Unmarshal(body, &said) != nil || string(said["ok"]) != "true" {
				t.Errorf("%d %q is a yes", status, body)
			}
			return
		}
		var refused *Refused
		var unanswered *Unanswered
		if !errors.As(err, &refused) && !errors.As(err, &unanswered) {
			t.Errorf("%d %q is neither a refusal nor no answer: %v", status, body, err)
		}
		if refused != nil && (status < 400 || status >= 500 || len(refused.Message) > 500 || len(refused.Code) > 100) {
			t.Errorf("%d %q is refused as %+v", status, body, refused)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%d bytes of words", len(err.Error()))
		}
	})
}
