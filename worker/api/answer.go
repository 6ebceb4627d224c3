package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"countersign/worker/api/wire"
)

// Reason says why a harness refused a request.
type Reason string

// The reasons.
const (
	LeaseLost     Reason = "the session stopped this work, or its lease has run out" // 409 with work_lease_lost
	NotOurs       Reason = "the item is not ours any more"                           // 409 otherwise
	Unknown       Reason = "the harness does not know the item"                      // 404
	Credentials   Reason = "the credentials were rejected"                           // 401, 403
	TooLarge      Reason = "the request is too large"                                // 413
	Invalid       Reason = "the request is invalid"                                  // 400, 422, other 4xx
	NoAcceptRoute Reason = "the harness has no accept"                               // 404 to Probe
)

// Refused is the harness's no. It is certain: the request changed nothing.
type Refused struct {
	Op      string // probe, claim, accept, heartbeat, complete, health
	Reason  Reason
	Status  int    // of HTTP; 0 where the request was not sent at all
	Code    string // the error's code, "" where it has none
	Message string // the harness's words, untrusted, at most 500 bytes of UTF-8
	Keyless bool   // no key was sent, because there is none
}

// Error says what was refused and why, in fixed words.
func (e *Refused) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s not sent: %s", e.Op, e.Reason)
	}
	return fmt.Sprintf("%s refused: %s (HTTP %d)", e.Op, e.Reason, e.Status)
}

// Unanswered means that no usable answer of the harness arrived: no connection,
// no answer in time, a server error, a redirect, a proxy's page.
type Unanswered struct {
	Op           string
	Status       int   // of HTTP; 0 where not even that arrived
	MaybeApplied bool  // false only where nothing can have been sent
	Err          error // never nil; context.Canceled where the caller gave up
}

// Error says what came instead of an answer. It is at most some hundred bytes
// long, and can quote a few bytes of what came.
func (e *Unanswered) Error() string {
	words := clip(e.Err.Error(), 300)
	if e.Status == 0 {
		return fmt.Sprintf("%s unanswered: %s", e.Op, words)
	}
	return fmt.Sprintf("%s unanswered: %s (HTTP %d)", e.Op, words, e.Status)
}

// Unwrap returns the cause.
func (e *Unanswered) Unwrap() error { return e.Err }

// answer is what came back for one request, read whole.
type answer struct {
	op          string
	status      int
	contentType string
	body        []byte
	keyless     bool
}

// ok returns nil for 200 {"ok":true}. Another 2xx, or another body, is not what
// a harness says: taking it for an accept would start what nobody authorized.
func (a answer) ok() error {
	if a.status != http.StatusOK {
		return a.refusal()
	}
	fields, isObject := object(a.body)
	if !isObject || string(fields["ok"]) != "true" {
		return a.unusable(errors.New(`not the JSON answer {"ok":true}`))
	}
	return nil
}

// refusal classifies an answer that is not a success.
func (a answer) refusal() error {
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return a.refused(Credentials)
	case a.status == http.StatusRequestEntityTooLarge:
		return a.refused(TooLarge)
	case a.status < 400:
		return a.unusable(errors.New("neither a success nor a refusal"))
	case a.status >= 500:
		return a.unusable(errors.New("the server failed"))
	case a.status == http.StatusTooManyRequests:
		return a.unusable(errors.New("too many requests for now"))
	case a.status == http.StatusProxyAuthRequired, a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly:
		return a.unusable(errors.New("not the harness's own answer"))
	}
	_, isObject := object(a.body)
	switch {
	case a.status == http.StatusNotFound && (isObject || a.isPlainText()):
		return a.refused(Unknown) // old harnesses say 404 in plain text
	case !isObject:
		return a.unusable(errors.New("not JSON: a proxy's page?"))
	case a.status == http.StatusConflict && a.error().Code == wire.CodeLeaseLost:
		return a.refused(LeaseLost)
	case a.status == http.StatusConflict:
		return a.refused(NotOurs)
	}
	return a.refused(Invalid)
}

func (a answer) refused(reason Reason) error {
	e := a.error()
	return &Refused{Op: a.op, Reason: reason, Status: a.status, Code: clip(e.Code, 100), Message: clip(e.Message, 500), Keyless: a.keyless}
}

func (a answer) unusable(why error) error {
	return &Unanswered{Op: a.op, Status: a.status, MaybeApplied: true, Err: why}
}

// error reads {"error": {"code", "message"}} as far as it is there.
func (a answer) error() wire.ErrorBody {
	outer, _ := object(a.body)
	inner, _ := object(outer["error"])
	return wire.ErrorBody{Code: text(inner, "code"), Message: text(inner, "message")}
}

func (a answer) isPlainText() bool {
	mediaType, _, err := mime.ParseMediaType(a.contentType)
	return err == nil && mediaType == "text/plain" && !bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<"))
}

// object reads a JSON object by the exact names of its fields. Decoding into a
// struct would also take "OK" for "ok".
func object(body []byte) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, false
	}
	return fields, true
}

// text returns the named field if it is a JSON string, else "".
func text(fields map[string]json.RawMessage, name string) string {
	var s string
	if json.Unmarshal(fields[name], &s) != nil {
		return ""
	}
	return s
}

// clip shortens s to at most limit bytes of valid UTF-8.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
