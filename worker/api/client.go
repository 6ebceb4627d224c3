// Package api is the client of a harness's HTTP API: the worker routes and the
// health route of PROTOCOL.md §2. Every answer becomes nil, a *Refused (the
// harness said no, and why) or an *Unanswered (whatever came back, it was not
// the harness's answer). What follows from each is the engine's business (§3).
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"countersign/worker/api/wire"
)

// DefaultTimeout bounds each request where Options gives no other time.
const DefaultTimeout = 10 * time.Second

// Sizes of the answers that are read at most, in bytes. An item can carry a
// command or a file to write of some megabytes; all else is small.
const (
	maxItemBody = 32 << 20
	maxBody     = 64 << 10
)

// Options says which harness to speak to, and as whom.
type Options struct {
	Origin         string // scheme://host[:port], with an optional base path
	APIKey         string // sent as a bearer token; "" where the harness has no keys
	EnvironmentID  string // sent with each claim; "" for none
	EnvironmentKey string // sent with each claim; "" for none

	// Timeout bounds each request as a whole, its answer's body included.
	// Zero means DefaultTimeout.
	Timeout time.Duration

	// Transport carries the requests. Nil means a transport of the client's own
	// over TCP, which honours HTTP_PROXY and HTTPS_PROXY except for loopback.
	Transport http.RoundTripper
}

// Client speaks to one harness. It is safe for concurrent use. It follows no
// redirect and never sends a request twice on its own account.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client, or says which option is unusable. It sends nothing.
func New(o Options) (*Client, error) {
	base, err := parseOrigin(o.Origin)
	if err != nil {
		return nil, err
	}
	if !isToken(o.APIKey) {
		return nil, errors.New("the API key must be printable ASCII without spaces")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("timeout %s: must not be negative", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	return &Client{base: base, options: o, http: &http.Client{
		Transport: o.Transport,
		// A redirect is not the harness's answer, and following it would carry
		// credentials to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// isToken reports whether s can stand in a header as it is.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// newTransport speaks HTTP/1.1 only: there a request that timed out takes its
// connection with it, while one dead HTTP/2 connection (after a suspend, say)
// would swallow the requests of all holds.
func newTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		Protocols:              &protocols,
	}
}

// proxy is the environment's proxy. The error of an unusable one names it with
// its password, so it is replaced.
func proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errors.New("the proxy that HTTP_PROXY or HTTPS_PROXY names is not a usable address")
	}
	return u, nil
}

// Origin returns the harness's address as ParseOrigin normalizes it.
func (c *Client) Origin() string { return c.base.String() }

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Probe asks whether the harness has the accept route, without naming an item:
// nil means that it has. A *Refused with NoAcceptRoute means that it has not,
// so that nothing may be claimed there; one with Credentials, that the API key
// was not taken.
func (c *Client) Probe(ctx context.Context) error {
	a, err := c.post(ctx, "probe", wire.AcceptPath, struct{}{}, maxBody)
	if err != nil {
		return err
	}
	err = a.refusal()
	var refused *Refused
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Status == http.StatusBadRequest:
		return nil
	case refused.Status == http.StatusNotFound:
		refused.Reason = NoAcceptRoute
		return refused
	case refused.Reason == Credentials:
		return refused
	}
	return a.unusable(errors.New("not an answer to the question whether it has accept"))
}

// Claim asks for one item. It returns false where there is nothing to do.
func (c *Client) Claim(ctx context.Context, workerID string) (Item, bool, error) {
	a, err := c.post(ctx, "claim", wire.ClaimPath, wire.ClaimRequest{
		WorkerID:       workerID,
		EnvironmentID:  c.options.EnvironmentID,
		EnvironmentKey: c.options.EnvironmentKey,
	}, maxItemBody)
	switch {
	case err != nil:
		return Item{}, false, err
	case a.status == http.StatusNoContent:
		return Item{}, false, nil
	case a.status != http.StatusOK:
		return Item{}, false, a.refusal()
	}
	item, err := decodeItem(a.body)
	if err != nil {
		return Item{}, false, a.unusable(err)
	}
	return item, true, nil
}

// Accept asks whether the item may be started now. Only nil authorizes a start.
// Asking again is safe for the holder.
func (c *Client) Accept(ctx context.Context, itemID, workerID string) error {
	a, err := c.post(ctx, "accept", wire.AcceptPath, wire.HoldRequest{ID: itemID, WorkerID: workerID}, maxBody)
	if err != nil {
		return err
	}
	return a.ok()
}

// Heartbeat restarts the item's lease.
func (c *Client) Heartbeat(ctx context.Context, itemID, workerID string) error {
	a, err := c.post(ctx, "heartbeat", wire.HeartbeatPath, wire.HoldRequest{ID: itemID, WorkerID: workerID}, maxBody)
	if err != nil {
		return err
	}
	return a.ok()
}

// Complete reports the item's result, or with failed that there is none and
// why. workerID must be the one that claimed it. A nil result is sent as null.
// A result that is not JSON is a *Refused with Invalid and Status 0: nothing
// was sent, and trying again cannot help.
func (c *Client) Complete(ctx context.Context, itemID, workerID string, result json.RawMessage, failed bool) error {
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	if !json.Valid(result) {
		return &Refused{Op: "complete", Reason: Invalid, Message: "the result is not JSON"}
	}
	a, err := c.post(ctx, "complete", wire.CompletePath, wire.CompleteRequest{
		ID: itemID, WorkerID: workerID, Result: result, Failed: failed,
	}, maxBody)
	if err != nil {
		return err
	}
	return a.ok()
}

// Health returns nil where the harness says that it is healthy.
func (c *Client) Health(ctx context.Context) error {
	a, err := c.send(ctx, "health", http.MethodGet, wire.HealthPath, nil, maxBody)
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK:
		return a.refusal()
	}
	if fields, ok := object(a.body); !ok || text(fields, "status") != "healthy" {
		return a.unusable(errors.New("it does not say that it is healthy"))
	}
	return nil
}

func (c *Client) post(ctx context.Context, op, path string, request any, limit int64) (answer, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // a result full of < would grow sixfold
	if err := encoder.Encode(request); err != nil {
		return answer{}, fmt.Errorf("%s: encode the request: %w", op, err)
	}
	return c.send(ctx, op, http.MethodPost, path, body.Bytes(), limit)
}

// send makes one request, once, and reads its answer whole. Its error is an
// *Unanswered; any status that came with a whole body is an answer.
func (c *Client) send(ctx context.Context, op, method, path string, body []byte, limit int64) (answer, error) {
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var trace wireTrace
	bounded = httptrace.WithClientTrace(bounded, trace.hooks())

	unanswered := func(status int, err error) error {
		if ctx.Err() != nil {
			err = ctx.Err() // the caller's reason, not the transport's words for it
		}
		return &Unanswered{Op: op, Status: status, MaybeApplied: trace.maybeSent(), Err: withoutURL(err)}
	}
	request, err := c.request(bounded, method, path, body)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", op, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, unanswered(0, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return answer{}, unanswered(response.StatusCode, err)
	}
	if int64(len(read)) > limit {
		return answer{}, unanswered(response.StatusCode, fmt.Errorf("the answer is longer than %d bytes", limit))
	}
	return answer{op: op, status: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: read,
		keyless: c.options.APIKey == "" && c.options.EnvironmentKey == ""}, nil
}

func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), reader)
	if err != nil {
		return nil, withoutURL(err)
	}
	request.GetBody = nil // without it the transport cannot send the body again
	request.Header.Set("User-Agent", "countersign")
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.options.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.APIKey)
	}
	return request, nil
}

// withoutURL drops the address that net/http puts before its errors: it is the
// harness's own, and says nothing new.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// wireTrace learns whether a request can have left this machine: it cannot
// while the transport still looks for a connection. A transport that reports
// nothing is taken to have sent.
type wireTrace struct{ asked, got atomic.Bool }

func (t *wireTrace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	}
}

func (t *wireTrace) maybeSent() bool { return !t.asked.Load() || t.got.Load() }
