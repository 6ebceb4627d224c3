package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

const (
	requestTimeout = 10 * time.Second // per request, beside the time that a wait asks for
	maxAnswer      = 64 << 20         // bytes
)

// Client speaks the routes of a harness that are not a worker's. It is safe for
// concurrent use. Every request is bounded in time, and no redirect is followed.
type Client struct {
	origin string
	apiKey string
	http   *http.Client
}

// NewClient returns a client of the harness at origin ("http://127.0.0.1:3000").
// apiKey is "" where the harness wants none, and c nil for a plain http.Client. A
// Timeout of c is not used: each request has its own, and a wait the one it asks for.
func NewClient(origin, apiKey string, c *http.Client) *Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.Timeout = 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{origin: strings.TrimSuffix(origin, "/"), apiKey: apiKey, http: &own}
}

// AnswerError is an answer other than success.
type AnswerError struct {
	HTTPStatus int
	Code       string // "" where the harness gave none
	Message    string // for people
}

func (e *AnswerError) Error() string { return e.Message }

// AwaitError is a wait that ended without a result (PROTOCOL.md §5).
type AwaitError struct {
	Code        string // wire.CodeQueueTimeout, wire.CodeOutcomeUnknown or wire.CodeLeaseLost
	RetryStatus string // wire.Retryable or wire.NotRetryable
	Message     string // for people
}

func (e *AwaitError) Error() string { return e.Message }

// CreateSession makes a session; its status is queued.
func (c *Client) CreateSession(ctx context.Context, n NewSession) (s Session, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/sessions", n, &s)
	return s, err
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (s Session, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(id), nil, &s)
	return s, err
}

// SetStatus moves a session to a status. A terminal one stops its unfinished work.
func (c *Client) SetStatus(ctx context.Context, id string, to SessionStatus) (s Session, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(id)+"/status", NewStatus{to}, &s)
	return s, err
}

// StopSession stops a session's unfinished work and returns how many items it
// stopped. The session can go on.
func (c *Client) StopSession(ctx context.Context, id string) (int, error) {
	var s Stopped
	err := c.do(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(id)+"/stop", struct{}{}, &s)
	return s.Stopped, err
}

// Enqueue puts one item into a session's queue. The payload is what encodes to
// the kind's JSON: wire.Exec and its like.
func (c *Client) Enqueue(ctx context.Context, session, kind string, payload any) (wire.Item, error) {
	var item wire.Item
	raw, err := json.Marshal(payload)
	if err != nil {
		return item, fmt.Errorf("encode %s payload: %w", kind, err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/sessions/"+url.PathEscape(session)+"/work-items", Work{kind, raw}, &item)
	return item, err
}

// Await waits at most timeout for an item's result. A wait that ends without one
// is an *AwaitError.
func (c *Client) Await(ctx context.Context, itemID string, timeout time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+requestTimeout)
	defer cancel()
	path := "/v1/work-items/" + url.PathEscape(itemID) + "/result?timeout_ms=" + strconv.FormatInt(timeout.Milliseconds(), 10)
	var result Result
	err := c.exchange(ctx, http.MethodGet, path, nil, &result)
	return result, err
}

// WorkItems returns an environment's newest items and its counts by status.
func (c *Client) WorkItems(ctx context.Context, environment string) (list WorkItems, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/environments/"+url.PathEscape(environment)+"/work-items", nil, &list)
	return list, err
}

// do is one exchange in the usual time.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.exchange(ctx, method, path, body, into)
}

func (c *Client) exchange(ctx context.Context, method, path string, body, into any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the harness: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the harness's answer: %w", err)
	case len(answer) > maxAnswer:
		return errors.New("the harness's answer is too large")
	case resp.StatusCode/100 != 2:
		return refused(resp.StatusCode, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer of %s is not a harness's: %w", c.origin, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.origin+path, content)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.apiKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.apiKey)
	}
	return req, nil
}

// refused turns a refusal into an error. A retry status marks the end of a wait.
func refused(status int, answer []byte) error {
	var no wire.Error
	if json.Unmarshal(answer, &no) != nil || no.Error.Message == "" {
		return &AnswerError{HTTPStatus: status, Message: fmt.Sprintf("the answer is not a harness's: HTTP status %d", status)}
	}
	if no.Error.RetryStatus != "" {
		return &AwaitError{Code: no.Error.Code, RetryStatus: no.Error.RetryStatus, Message: no.Error.Message}
	}
	return &AnswerError{HTTPStatus: status, Code: no.Error.Code, Message: no.Error.Message}
}
