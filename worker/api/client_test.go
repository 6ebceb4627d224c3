package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"countersign/worker/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sent is one request as a harness saw it.
type sent struct {
	method, path, body string
	header             http.Header
}

// harness answers every request with one status, content type and body, and
// remembers what it was sent.
type harness struct {
	*httptest.Server
	got atomic.Pointer[sent]
}

func answering(t *testing.T, status int, contentType, body string) *harness {
	t.Helper()
	h := &harness{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		h.got.Store(&sent{method: r.Method, path: r.URL.Path, body: string(read), header: r.Header.Clone()})
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(h.Close)
	return h
}

func client(t *testing.T, o api.Options) *api.Client {
	t.Helper()
	c, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

const (
	asJSON = "application/json"
	asText = "text/plain; charset=utf-8"
	asHTML = "text/html"
	page   = "<html><body>Bad gateway</body></html>"
	lost   = `{"error":{"type":"conflict","code":"work_lease_lost","message":"stopped"}}`
	plain  = `{"error":{"type":"x","message":"no"}}`
)

// asked names the calls that a harness answers with {"ok":true}.
var asked = map[string]func(*api.Client) error{
	"accept":    func(c *api.Client) error { return c.Accept(context.Background(), "i", "w") },
	"heartbeat": func(c *api.Client) error { return c.Heartbeat(context.Background(), "i", "w") },
	"complete":  func(c *api.Client) error { return c.Complete(context.Background(), "i", "w", nil, false) },
	"claim": func(c *api.Client) error {
		_, _, err := c.Claim(context.Background(), "w")
		return err
	},
}

func TestEveryAnswerIsARefusalOrNoAnswer(t *testing.T) {
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		want        api.Reason // "" for Unanswered
	}{
		{"lease lost", 409, asJSON, lost, api.LeaseLost},
		{"conflict without a code", 409, asJSON, plain, api.NotOurs},
		{"conflict with another code", 409, asJSON, `{"error":{"code":"other"}}`, api.NotOurs},
		{"conflict whose code is spelled CODE", 409, asJSON, `{"error":{"CODE":"work_lease_lost"}}`, api.NotOurs},
		{"conflict from a proxy", 409, asHTML, page, ""},
		{"unknown", 404, asJSON, plain, api.Unknown},
		{"unknown in plain text", 404, asText, "404 page not found", api.Unknown},
		{"a page named plain text", 404, asText, page, ""},
		{"not found from a proxy", 404, asHTML, page, ""},
		{"not found without a body", 404, asJSON, "", ""},
		{"bad credentials", 401, asJSON, plain, api.Credentials},
		{"bad credentials from a proxy", 401, asHTML, page, api.Credentials},
		{"forbidden", 403, asHTML, page, api.Credentials},
		{"too large", 413, asJSON, plain, api.TooLarge},
		{"too large for a proxy", 413, asHTML, page, api.TooLarge},
		{"invalid", 400, asJSON, plain, api.Invalid},
		{"invalid from a proxy", 400, asHTML, page, ""},
		{"unprocessable", 422, asJSON, plain, api.Invalid},
		{"another 4xx", 418, asJSON, plain, api.Invalid},
		{"method not allowed by a proxy", 405, asText, "no", ""},
		{"proxy credentials", 407, asJSON, plain, ""},
		{"request timeout", 408, asJSON, plain, ""},
		{"too many", 429, asJSON, plain, ""},
		{"server error", 500, asJSON, plain, ""},
		{"bad gateway", 502, asHTML, page, ""},
		{"created", 201, asJSON, `{"ok":true,"id":"i"}`, ""},
		{"redirect", 302, asJSON, plain, ""},
		{"a page with 200", 200, asHTML, page, ""},
		{"nothing with 200", 200, asJSON, "", ""},
		{"null", 200, asJSON, "null", ""},
		{"neither ok nor an item", 200, asJSON, `{}`, ""},
		{"not ok, id not a string", 200, asJSON, `{"ok":false,"id":7}`, ""},
		{"ok and id in other letters", 200, asJSON, `{"OK":true,"ID":"i"}`, ""},
		{"ok as text, id empty", 200, asJSON, `{"ok":"true","id":""}`, ""},
		{"more after the answer", 200, asJSON, `{"ok":true,"id":"i"} <html>`, ""},
		{"a list", 200, asJSON, `[{"ok":true,"id":"i"}]`, ""},
		{"too long", 200, asJSON, `{"ok":true,"id":"","x":"` + strings.Repeat("x", 70_000) + `"}`, ""},
	}
	for _, tt := range tests {
		h := answering(t, tt.status, tt.contentType, tt.body)
		c := client(t, api.Options{Origin: h.URL})
		for op, call := range asked {
			t.Run(tt.name+" to "+op, func(t *testing.T) {
				err := call(c)
				var refused *api.Refused
				var unanswered *api.Unanswered
				switch {
				case errors.As(err, &refused):
					if refused.Reason != tt.want || refused.Status != tt.status || refused.Op != op {
						t.Errorf("got %+v, want reason %q", refused, tt.want)
					}
				case errors.As(err, &unanswered):
					if tt.want != "" || unanswered.Status != tt.status || unanswered.Op != op || !unanswered.MaybeApplied {
						t.Errorf("got %+v, want reason %q", unanswered, tt.want)
					}
				default:
					t.Errorf("got %v, want reason %q", err, tt.want)
				}
			})
		}
	}
}

func TestOKIsASuccess(t *testing.T) {
	h := answering(t, 200, asText, ` {"ok": true, "more": 1} `)
	c := client(t, api.Options{Origin: h.URL})
	for _, op := range []string{"accept", "heartbeat", "complete"} {
		if err := asked[op](c); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestNoContentMeansNothingToDoToAClaimOnly(t *testing.T) {
	c := client(t, api.Options{Origin: answering(t, 204, "", "").URL})
	if _, found, err := c.Claim(t.Context(), "w"); found || err != nil {
		t.Errorf("claim: %v, %v", found, err)
	}
	var unanswered *api.Unanswered
	if err := c.Accept(t.Context(), "i", "w"); !errors.As(err, &unanswered) {
		t.Errorf("accept: %v", err)
	}
}

func TestProbeTellsWhetherTheHarnessHasAccept(t *testing.T) {
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		want        any // nil, an api.Reason, or *api.Unanswered
	}{
		{"it has", 400, asJSON, plain, nil},
		{"it has not, in JSON", 404, asJSON, `{"error":"not found"}`, api.NoAcceptRoute},
		{"it has not, in plain text", 404, asText, "404 Not Found", api.NoAcceptRoute},
		{"a proxy's not found", 404, asHTML, page, &api.Unanswered{}},
		{"a proxy's bad request", 400, asHTML, page, &api.Unanswered{}},
		{"bad credentials", 401, asJSON, plain, api.Credentials},
		{"forbidden", 403, asHTML, page, api.Credentials},
		{"ok to no item at all", 200, asJSON, `{"ok":true}`, &api.Unanswered{}},
		{"conflict", 409, asJSON, plain, &api.Unanswered{}},
		{"server error", 503, asJSON, plain, &api.Unanswered{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := answering(t, tt.status, tt.contentType, tt.body)
			err := client(t, api.Options{Origin: h.URL}).Probe(t.Context())
			var refused *api.Refused
			var unanswered *api.Unanswered
			switch want := tt.want.(type) {
			case nil:
				if err != nil {
					t.Error(err)
				}
			case api.Reason:
				if !errors.As(err, &refused) || refused.Reason != want {
					t.Errorf("got %v, want %q", err, want)
				}
			default:
				if !errors.As(err, &unanswered) {
					t.Errorf("got %v, want no answer", err)
				}
			}
			if got := h.got.Load(); got.method != "POST" || got.path != "/v1/x/worker/accept" || got.body != "{}\n" {
				t.Errorf("sent %+v", got)
			}
		})
	}
}

func TestHealthWantsTheWordHealthy(t *testing.T) {
	for body, healthy := range map[string]bool{
		`{"status":"healthy","version":"1"}`: true,
		`{"status":"starting"}`:              false,
		page:                                 false,
	} {
		h := answering(t, 200, asJSON, body)
		err := client(t, api.Options{Origin: h.URL}).Health(t.Context())
		if (err == nil) != healthy {
			t.Errorf("%s: %v", body, err)
		}
		if got := h.got.Load(); got.method != "GET" || got.path != "/v1/x/health" {
			t.Errorf("sent %+v", got)
		}
	}
}

func TestRequestsCarryWhatTheProtocolNames(t *testing.T) {
	h := answering(t, 200, asJSON, `{"ok":true,"id":"i"}`)
	c := client(t, api.Options{Origin: h.URL + "/base/", APIKey: "k", EnvironmentID: "env_5b", EnvironmentKey: "ek"})
	check := func(err error, path, body string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		got := h.got.Load()
		if got.path != "/base/v1/x/worker"+path || strings.TrimSpace(got.body) != body {
			t.Errorf("sent %s %s, want %s", got.path, got.body, body)
		}
		if got.header.Get("Authorization") != "Bearer k" || got.header.Get("Content-Type") != asJSON {
			t.Errorf("sent header %v", got.header)
		}
		if got.header.Get("Idempotency-Key") != "" {
			t.Error("an idempotency key lets the transport send twice")
		}
	}
	_, _, err := c.Claim(t.Context(), "w1")
	check(err, "/claim", `{"worker_id":"w1","environment_id":"env_5b","environment_key":"ek"}`)
	check(c.Accept(t.Context(), "i", "w1"), "/accept", `{"id":"i","worker_id":"w1"}`)
	check(c.Heartbeat(t.Context(), "i", "w1"), "/heartbeat", `{"id":"i","worker_id":"w1"}`)
	check(c.Complete(t.Context(), "i", "w1", nil, false), "/complete", `{"id":"i","worker_id":"w1","result":null}`)
	check(c.Complete(t.Context(), "i", "w1", json.RawMessage(`{"message":"<no>"}`), true),
		"/complete", `{"id":"i","worker_id":"w1","result":{"message":"<no>"},"failed":true}`)
}

func TestAResultThatIsNotJSONIsRefusedUnsent(t *testing.T) {
	h := answering(t, 200, asJSON, `{"ok":true}`)
	err := client(t, api.Options{Origin: h.URL}).Complete(t.Context(), "i", "w", json.RawMessage(`{`), false)
	var refused *api.Refused
	if !errors.As(err, &refused) || refused.Reason != api.Invalid || refused.Status != 0 || h.got.Load() != nil {
		t.Errorf("got %v, sent %v", err, h.got.Load())
	}
}

func TestARedirectIsNotFollowedAndLeaksNoCredentials(t *testing.T) {
	elsewhere := answering(t, 200, asJSON, `{"ok":true,"id":"i"}`)
	for _, status := range []int{301, 302, 303, 307, 308} {
		h := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/v1/x/worker/accept", status))
		defer h.Close()
		c := client(t, api.Options{Origin: h.URL, APIKey: "k", EnvironmentKey: "ek"})
		for op, call := range asked {
			var unanswered *api.Unanswered
			if err := call(c); !errors.As(err, &unanswered) || unanswered.Status != status {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
	if got := elsewhere.got.Load(); got != nil {
		t.Errorf("the redirect was followed: %+v", got)
	}
}

func TestAHarnessThatNeverAnswersIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer h.Close()
	defer close(release)
	c := client(t, api.Options{Origin: h.URL, Timeout: 20 * time.Millisecond})
	for op, call := range asked {
		var unanswered *api.Unanswered
		err := call(c)
		if !errors.As(err, &unanswered) || !unanswered.MaybeApplied || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %#v", op, err)
		}
	}
}

func TestAnAnswerThatDripsForeverIsGivenUp(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	}))
	defer h.Close()
	c := client(t, api.Options{Origin: h.URL, Timeout: 30 * time.Millisecond})
	var unanswered *api.Unanswered
	if _, _, err := c.Claim(t.Context(), "w"); !errors.As(err, &unanswered) || !unanswered.MaybeApplied {
		t.Errorf("got %v", err)
	}
}

func TestARefusedConnectionCannotHaveApplied(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := client(t, api.Options{Origin: "http://" + l.Addr().String()})
	var unanswered *api.Unanswered
	if err := c.Complete(t.Context(), "i", "w", nil, false); !errors.As(err, &unanswered) || unanswered.MaybeApplied {
		t.Errorf("got %#v", err)
	}
}

func TestAConnectionThatBreaksMayHaveAppliedAndIsNotSentAgain(t *testing.T) {
	var requests atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if requests.Add(1) == 1 {
			io.WriteString(w, `{"ok":true}`)
			return
		}
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}))
	defer h.Close()
	c := client(t, api.Options{Origin: h.URL})
	if err := c.Accept(t.Context(), "i", "w"); err != nil {
		t.Fatal(err)
	}
	var unanswered *api.Unanswered
	err := c.Accept(t.Context(), "i", "w") // on the kept connection
	if !errors.As(err, &unanswered) || !unanswered.MaybeApplied {
		t.Errorf("got %#v", err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}

// silent is a transport that reports no connections, as in-process ones do.
type silent struct{ err error }

func (s silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, s.err }

func TestATransportThatReportsNothingMayHaveSent(t *testing.T) {
	c := client(t, api.Options{Origin: "http://h", Transport: silent{errors.New("broken")}})
	var unanswered *api.Unanswered
	if err := c.Accept(t.Context(), "i", "w"); !errors.As(err, &unanswered) || !unanswered.MaybeApplied {
		t.Errorf("got %#v", err)
	}
}

func TestCancellingIsToldApartFromATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer h.Close()
	err := client(t, api.Options{Origin: h.URL}).Accept(ctx, "i", "w")
	if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTheHarnessesWordsAreBoundedAndStayOutOfTheError(t *testing.T) {
	message := strings.Repeat("é", 400)
	h := answering(t, 400, asJSON, `{"error":{"message":"`+message+`"}}`)
	err := client(t, api.Options{Origin: h.URL}).Accept(t.Context(), "i", "w")
	var refused *api.Refused
	if !errors.As(err, &refused) || refused.Message != message[:500] {
		t.Fatalf("got %#v", err)
	}
	if strings.Contains(err.Error(), "é") {
		t.Errorf("the error repeats the harness: %v", err)
	}
}

func TestErrorsCarryNoCredentials(t *testing.T) {
	c := client(t, api.Options{
		Origin: "http://127.0.0.1:1", APIKey: "sk-secret", EnvironmentKey: "ek-secret",
		Transport: silent{errors.New(strings.Repeat("x", 5000))},
	})
	err := c.Accept(t.Context(), "i", "w")
	if strings.Contains(err.Error(), "secret") || len(err.Error()) > 500 {
		t.Errorf("got %v", err)
	}
	for _, origin := range []string{"http://user:secret@host", "http://user:se/secret@host", "http://user:%zzsecret@host"} {
		if _, err := api.New(api.Options{Origin: origin}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", origin, err)
		}
	}
	if _, err := api.New(api.Options{Origin: "http://h", APIKey: "secret\n"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("API key: %v", err)
	}
}

func TestAddressesHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:3000":      "http://127.0.0.1:3000",
		"http://127.0.0.1:3000/":     "http://127.0.0.1:3000",
		"HTTPS://Example.COM:443/":   "https://example.com",
		"http://example.com:80":      "http://example.com",
		"http://example.com:443":     "http://example.com:443",
		"https://example.com/a//b/":  "https://example.com/a/b",
		"https://example.com/a/../b": "https://example.com/b",
		"http://[::1]:3000":          "http://[::1]:3000",
	} {
		if got, err := api.ParseOrigin(in); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestUnusableOptionsAreNamed(t *testing.T) {
	tests := []struct {
		options api.Options
		want    string
	}{
		{api.Options{}, "the harness address is empty"},
		{api.Options{Origin: "127.0.0.1:3000"}, `harness address "127.0.0.1:3000"`},
		{api.Options{Origin: "localhost:3000"}, `scheme "localhost": expected http or https`},
		{api.Options{Origin: "//host"}, "the scheme is missing"},
		{api.Options{Origin: "ftp://host"}, `scheme "ftp": expected http or https`},
		{api.Options{Origin: "http://"}, "the host is missing"},
		{api.Options{Origin: "http://:3000"}, "the host is missing"},
		{api.Options{Origin: "http://host:"}, "the port after the colon is missing"},
		{api.Options{Origin: "http://host:99999"}, "port 99999: expected 1 to 65535"},
		{api.Options{Origin: "http://host:x"}, "invalid port"},
		{api.Options{Origin: "http://host/?a=b"}, "a query (?) does not belong"},
		{api.Options{Origin: "http://host/#a"}, "a fragment (#) does not belong"},
		{api.Options{Origin: "http://host", APIKey: "a b"}, "the API key must be printable ASCII"},
		{api.Options{Origin: "http://host", Timeout: -time.Second}, "timeout -1s: must not be negative"},
	}
	for _, tt := range tests {
		if _, err := api.New(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.options, err, tt.want)
		}
	}
}
