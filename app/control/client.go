package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// Client speaks to the Countersign that runs for a data directory. Its methods
// return a *NotRunning where there is none, and errors fit for people.
type Client struct {
	dir  string
	http *http.Client
}

// maxAnswer bounds an answer: a thousand held items of a few MB are not shown
// in a terminal.
const maxAnswer = 256 << 20

// NotRunning says that nobody answers on a data directory's socket.
type NotRunning struct{ Dir string }

func (e *NotRunning) Error() string {
	return fmt.Sprintf("No Countersign is running for data directory %s. Start it with \"countersign\", or without a window with \"countersign worker\".", e.Dir)
}

// NewClient returns a client for a data directory. Close ends it.
func NewClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		name, done, err := address(dir)
		if err != nil {
			return nil, err
		}
		defer done()
		var d net.Dialer
		return d.DialContext(ctx, "unix", name)
	}
	return &Client{dir: dir, http: &http.Client{
		Timeout:   15 * time.Second,
		Transport: &http.Transport{DialContext: dial},
	}}
}

// Close releases the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for everything the instance shows.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.do(ctx, http.MethodGet, "status", nil, &s)
}

// Approve approves a hold; code says what was looked at.
func (c *Client) Approve(ctx context.Context, id worker.HoldID, code string) error {
	return c.ask(ctx, "approve", intent{ID: id, Code: code})
}

// ApproveAlways adds a rule that allows what a hold asks for and little else, which
// then decides on it, and returns the rule.
func (c *Client) ApproveAlways(ctx context.Context, id worker.HoldID, code string) (rule string, err error) {
	body, err := json.Marshal(intent{ID: id, Code: code, Always: true})
	if err != nil {
		return "", err
	}
	var a answer
	err = c.do(ctx, http.MethodPost, "approve", body, &a)
	return a.Rule, err
}

// AllowReads approves a read or a list, and those of its session below a directory
// for a quarter of an hour.
func (c *Client) AllowReads(ctx context.Context, id worker.HoldID, code, dir string) error {
	return c.ask(ctx, "approve", intent{ID: id, Code: code, Reads: dir})
}

// ApproveEdited approves another payload in the place of a hold's.
func (c *Client) ApproveEdited(ctx context.Context, id worker.HoldID, code string, payload json.RawMessage) error {
	return c.ask(ctx, "approve", intent{ID: id, Code: code, Edited: payload})
}

// ApproveForSession approves a hold, and what is identical to it until its session
// ends.
func (c *Client) ApproveForSession(ctx context.Context, id worker.HoldID, code string) error {
	return c.ask(ctx, "approve", intent{ID: id, Code: code, Session: true})
}

// Preview asks what an item that waits would meet on the disk now.
func (c *Client) Preview(ctx context.Context, id worker.HoldID) (execute.Preview, error) {
	var p execute.Preview
	body, err := json.Marshal(intent{ID: id})
	if err != nil {
		return p, err
	}
	return p, c.do(ctx, http.MethodPost, "preview", body, &p)
}

// Rules asks which rules are in force, and what waits to be seen.
func (c *Client) Rules(ctx context.Context) (policy.RulesState, error) {
	var s policy.RulesState
	return s, c.do(ctx, http.MethodGet, "rules", nil, &s)
}

// AcceptRules puts a changed rule file into force; code is the beginning of its
// hash, at least policy.CodeLength digits of it.
func (c *Client) AcceptRules(ctx context.Context, code string) error {
	return c.ask(ctx, "accept", intent{Code: code})
}

// Grants asks for the grants in force.
func (c *Client) Grants(ctx context.Context) ([]policy.Grant, error) {
	var g []policy.Grant
	return g, c.do(ctx, http.MethodGet, "grants", nil, &g)
}

// Revoke ends a grant.
func (c *Client) Revoke(ctx context.Context, grant string) error {
	return c.ask(ctx, "revoke", intent{Grant: grant})
}

// Decline declines a hold with words for the agent, which may be empty.
func (c *Client) Decline(ctx context.Context, id worker.HoldID, message string) error {
	return c.ask(ctx, "decline", intent{ID: id, Message: message})
}

// Release lets a hold go without an answer.
func (c *Client) Release(ctx context.Context, id worker.HoldID) error {
	return c.ask(ctx, "release", intent{ID: id})
}

// Stop stops a running command.
func (c *Client) Stop(ctx context.Context, id worker.HoldID) error {
	return c.ask(ctx, "stop", intent{ID: id})
}

// StopAll stops all that runs, and pauses.
func (c *Client) StopAll(ctx context.Context) error { return c.ask(ctx, "stop-all", intent{}) }

// Pause pauses until a time, or without an end for the zero time.
func (c *Client) Pause(ctx context.Context, until time.Time) error {
	return c.ask(ctx, "pause", intent{Until: until})
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context) error { return c.ask(ctx, "resume", intent{}) }

// Raise brings the instance's window to the front.
func (c *Client) Raise(ctx context.Context) error { return c.ask(ctx, "raise", intent{}) }

func (c *Client) ask(ctx context.Context, route string, in intent) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, route, body, &answer{})
}

func (c *Client) do(ctx context.Context, method, route string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://countersign/"+route, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return &NotRunning{Dir: c.dir}
		}
		if request := (*url.Error)(nil); errors.As(err, &request) && request.Timeout() {
			return fmt.Errorf("the Countersign that has data directory %s open does not answer; it may still do what it was asked for", c.dir)
		}
		return fmt.Errorf("ask the running Countersign: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the running Countersign's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var a answer
		if json.Unmarshal(text, &a) != nil || a.Error == "" {
			a.Error = "the running Countersign answered " + resp.Status
		}
		return errors.New(a.Error)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the running Countersign's answer: %w", err)
	}
	return nil
}
