package harness

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"

	"countersign/worker/api/wire"
)

// maxSmallBody bounds requests that carry neither payload nor result, in bytes.
const maxSmallBody = 64 << 10

// guard lets a request through to next when it comes from where it may, with a
// key where keys exist, as JSON.
func (h *Harness) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.check(r); err != nil {
			h.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Harness) check(r *http.Request) error {
	// A page in a browser on this machine can be made to reach us under a name of
	// its own (DNS rebinding). The Host header tells.
	if !h.options.AnyHost && !loopback(r.Host) {
		return &refusal{http.StatusForbidden, wire.ErrorBody{Type: "forbidden", Message: "This harness answers on localhost only; the Host header names another host."}}
	}
	if r.URL.Path != wire.HealthPath && !h.authorized(r) {
		return unauthorized("This harness wants one of its API keys: Authorization: Bearer <api key>.")
	}
	if r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")) {
		return &refusal{http.StatusUnsupportedMediaType, wire.ErrorBody{Type: "invalid_request", Message: "The request must be JSON, with Content-Type: application/json."}}
	}
	return nil
}

// loopback reports whether a Host header names this machine's loopback.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.EqualFold(host, "localhost") || host == "127.0.0.1" || host == "::1"
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// authorized reports whether the request carries an API key, or none is wanted.
func (h *Harness) authorized(r *http.Request) bool {
	if len(h.options.APIKeys)+len(h.options.APIKeyHashes) == 0 {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	ok := 0
	for _, key := range h.options.APIKeys {
		ok |= sameKey(key, strings.TrimSpace(given))
	}
	for _, hash := range h.options.APIKeyHashes {
		ok |= subtle.ConstantTimeCompare([]byte(hash), []byte(HashKey(strings.TrimSpace(given))))
	}
	return ok == 1 && strings.EqualFold(scheme, "Bearer")
}

// HashKey is what may be kept of an API key: SHA-256 in lower-case hex. A key that
// was made at random cannot be found from it.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// sameKey is 1 for equal keys. Its time tells neither where two keys differ nor
// how long ours is.
func sameKey(ours, given string) int {
	a, b := sha256.Sum256([]byte(ours)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(a[:], b[:])
}

// environmentOf returns the environment that an environment key may claim for.
func (h *Harness) environmentOf(given string) (environment string, ok bool) {
	for key, scope := range h.options.EnvironmentKeys {
		if sameKey(key, given) == 1 {
			environment, ok = scope, true
		}
	}
	return environment, ok
}

// decode reads a JSON body of at most limit bytes into v. Unknown fields are
// ignored: newer workers may send more.
func decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &refusal{http.StatusRequestEntityTooLarge, wire.ErrorBody{Type: "too_large", Message: "The request is larger than this harness takes."}}
	case err != nil:
		return badRequest("The request could not be read to its end.")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return badRequest("The request is not the JSON object that this route takes.")
	}
	return nil
}
