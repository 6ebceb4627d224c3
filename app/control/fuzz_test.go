package control

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"countersign/worker/policy"
)

// FuzzNoRequestApprovesWithoutTheCode sends the socket whatever comes to mind. It
// always answers in JSON, and approves only what was named with its code.
func FuzzNoRequestApprovesWithoutTheCode(f *testing.F) {
	for _, route := range []string{"approve", "decline", "release", "stop", "stop-all", "pause", "resume", "raise"} {
		f.Add(route, []byte(`{"id":7,"code":"0123456789ab","message":"no","until":"2026-01-02T15:04:05Z"}`))
	}
	f.Add("approve", []byte(`{"id":7,"code":""}`))
	f.Add("approve", []byte(`{"ID":7,"Code":" 0123456789ABCDEF\n"}`))
	f.Add("approve", []byte("{\"id\":7e0,\"code\":\"0123456\xff\"}"))
	f.Fuzz(func(t *testing.T, route string, body []byte) {
		desk := &fakeDesk{}
		s := &Server{Desk: desk, Tell: func(string) {}, Log: slog.New(slog.DiscardHandler)}
		r, err := http.NewRequest(http.MethodPost, "http://control/"+route, bytes.NewReader(body))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: the answer is not JSON: %q", route, body, w.Body)
		}
		approved := slices.ContainsFunc(desk.asked, func(asked string) bool { return strings.HasPrefix(asked, "approve") })
		if approved && !bytes.Contains(bytes.ToLower(body), []byte(digest[:policy.CodeLength])) && !bytes.Contains(body, []byte(`\u`)) {
			t.Errorf("%s %q approved", route, body)
		}
	})
}
