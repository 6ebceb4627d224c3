package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// ApproveForSession approves a hold, and from then on what is identical to it,
// until its session ends (APPROVALS.md, "What the operator can answer"). Unlike
// other intents it waits for the disk: the grant outlasts a restart.
func (e *Engine) ApproveForSession(id HoldID, digest, by string) error {
	return e.approveWithGrant(id, digest, by, func(i policy.Item, why policy.Explanation, now time.Time) policy.Grant {
		return policy.GrantExactly(i, why, now, time.Time{})
	})
}

// AllowReads approves a read or a list, and for a while every read and list of
// its session below a directory of the work directory: a clean relative path, "."
// for all of it. Of other work it says so. It waits for the disk.
func (e *Engine) AllowReads(id HoldID, digest, dir string, within time.Duration, by string) error {
	if item, err := e.Asked(id); err == nil && item.Kind != wire.KindRead && item.Kind != wire.KindList {
		return errNoRead
	}
	return e.approveWithGrant(id, digest, by, func(i policy.Item, _ policy.Explanation, now time.Time) policy.Grant {
		return policy.GrantReads(i, dir, now, now.Add(within))
	})
}

type granting func(policy.Item, policy.Explanation, time.Time) policy.Grant

func (e *Engine) approveWithGrant(id HoldID, digest, by string, make granting) error {
	grants := e.cfg.Policy.Grants()
	e.mu.Lock()
	h, err := e.shown(id, digest)
	if err == nil && (grants == nil || !h.rec.Shown.Explanation.Grantable()) {
		err = ErrNoGrant
	}
	if err != nil {
		e.mu.Unlock()
		return err
	}
	grant := make(h.asked(), h.rec.Shown.Explanation, e.clock.Now())
	e.mu.Unlock()
	if grant.ID == "" {
		return ErrNoGrant
	}
	if err := grants.Add(grant); err != nil {
		return fmt.Errorf("it was not approved: %w", err)
	}
	if err := e.Approve(id, digest, by); err != nil {
		return errors.Join(err, grants.Revoke(grant.ID))
	}
	e.Rejudge()
	return nil
}

// endGrants ends the grants of a session that has stopped.
func (h *hold) endGrants() {
	if g := h.e.cfg.Policy.Grants(); g != nil && h.rec.Item.SessionID != "" {
		if err := g.EndSession(h.e.from(), h.rec.Item.SessionID); err != nil {
			h.e.log.Warn("a grant of a session that stopped is still kept on disk; nothing uses it", "error", err)
		}
	}
}

// ApproveEdited approves other work of the same kind in the place of a hold's:
// payload is what runs, and the report tells the agent so. What the rules deny is
// refused here too. It waits for the disk.
func (e *Engine) ApproveEdited(id HoldID, digest string, payload json.RawMessage, by string) error {
	e.mu.Lock()
	h, err := e.shown(id, digest)
	if err != nil {
		e.mu.Unlock()
		return err
	}
	kind, item := h.rec.Item.Kind, h.asked()
	e.mu.Unlock()
	if kind != wire.KindExec && kind != wire.KindWrite {
		return errNotEditable
	}
	task, err := execute.Decode(kind, payload)
	if err == nil {
		err = e.cfg.Runner.Check(task)
	}
	if err != nil {
		return fmt.Errorf("the edited text cannot be run: %w", err)
	}
	item.Task = task
	if why := e.cfg.Policy.Explain(item); why.Verdict == policy.Deny {
		return fmt.Errorf("the edited text is denied by %s: %s", why.By, why.Reason)
	}
	return e.decideFor(id, digest, answer{decision: Approved, by: by + ", edited", words: editedWords, edited: payload, task: task,
		files: e.files(context.Background(), item)})
}

// EditPayload returns an item's payload with another command, or another content,
// and everything else as it was. The last line end of a command is left out.
func EditPayload(item Item, text string) (json.RawMessage, error) {
	name := "content"
	if item.Kind == wire.KindExec {
		name, text = "command", strings.TrimSuffix(text, "\n")
	} else if item.Kind != wire.KindWrite {
		return nil, errNotEditable
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(item.Payload, &members); err != nil {
		return nil, fmt.Errorf("the item cannot be edited: %w", err)
	}
	encoded, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	members[name] = encoded
	return json.Marshal(members)
}

var errNoRead = errors.New("only reads and lists can be approved together with those below a directory")

var errNotEditable = errors.New("only a command or a write can be edited")

// Preview says what a hold's item would meet on the disk now: the difference that
// a write would make, what a read would read. It waits for the disk.
func (e *Engine) Preview(ctx context.Context, id HoldID) (execute.Preview, error) {
	item, err := e.Asked(id)
	if err != nil {
		return execute.Preview{}, err
	}
	return e.cfg.Runner.Preview(ctx, item.Task), nil
}

// NarrowRule writes a rule, as TOML, that allows what a hold asks for and little
// else: what "always" offers.
func (e *Engine) NarrowRule(id HoldID) (string, error) {
	item, err := e.Asked(id)
	if err != nil {
		return "", err
	}
	return policy.Narrow(fmt.Sprintf("like #%d", id), item)
}

// Asked returns a hold's item as the policy judges it.
func (e *Engine) Asked(id HoldID) (policy.Item, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.find(id)
	if h == nil {
		return policy.Item{}, ErrNoHold
	}
	return h.asked(), nil
}
