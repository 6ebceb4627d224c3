// Package control carries the operator's intents from the command line to the
// Countersign that is running: HTTP and JSON over a socket in the data
// directory that only this user can open.
package control

import (
	"context"
	"encoding/json"
	"time"

	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// SocketName is the name of the socket in the data directory.
const SocketName = "control.sock"

// ByCommandLine is who decided, for what came over the socket.
const ByCommandLine = "operator (command line)"

// Desk is where decisions are taken. *worker.Desk is one.
type Desk interface {
	Snapshot() worker.Snapshot
	Approve(id worker.HoldID, digest, by string) error
	Decline(id worker.HoldID, digest, words, by string) error
	Release(id worker.HoldID) error
	Stop(id worker.HoldID) error
	StopEverything()
	Pause(until time.Time)
	Resume()
	ApproveForSession(id worker.HoldID, digest, by string) error
	ApproveEdited(id worker.HoldID, digest string, payload json.RawMessage, by string) error
	AllowReads(id worker.HoldID, digest, dir string, within time.Duration, by string) error
	NarrowRule(id worker.HoldID) (string, error)
	Preview(ctx context.Context, id worker.HoldID) (execute.Preview, error)
	Grants() []policy.Grant
	Revoke(grant string) error
}

// Rulebook is what is asked for of the operator's rules.
type Rulebook interface {
	State() policy.RulesState
	Accept(hash string) error
	Add(id worker.HoldID, rule string) error
}

// Status is what a running instance says about itself.
type Status struct {
	PID      int
	Window   bool // false for the headless worker
	Version  string
	Quitting bool // nothing more is claimed; it ends when what runs has
	Snapshot worker.Snapshot
	LeftOpen []worker.LeftOpen // unfinished in the journal, and no connection here is to it
}

// Find returns the hold of a number, waiting, running or just finished.
func (s Status) Find(id worker.HoldID) (worker.View, bool) {
	for _, views := range [][]worker.View{s.Snapshot.Waiting, s.Snapshot.Running, s.Snapshot.Finished} {
		for _, v := range views {
			if v.ID == id {
				return v, true
			}
		}
	}
	return worker.View{}, false
}

// Code is what an operator types to approve exactly what a hold shows.
func Code(v worker.View) string { return policy.Code(v.Digest) }

// intent is the body of every request that asks for something.
type intent struct {
	ID      worker.HoldID `json:"id,omitempty"`
	Code    string        `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	Until   time.Time     `json:"until,omitzero"`

	// How to approve, once unless one of these is given.
	Session bool            `json:"session,omitempty"` // what is identical too, until the session ends
	Always  bool            `json:"always,omitempty"`  // by a rule that allows this and little else
	Reads   string          `json:"reads,omitempty"`   // reads and lists below this directory too, for readsFor
	Edited  json.RawMessage `json:"edited,omitempty"`  // this payload in its place

	Grant string `json:"grant,omitempty"`
}

// readsFor is how long reads and lists are allowed by an approval.
const readsFor = 15 * time.Minute

// answer is the body of every answer to one.
type answer struct {
	Error string `json:"error,omitempty"` // for people
	Rule  string `json:"rule,omitempty"`  // that was added
}
