package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/policy"
)

// stand-ins for what the command line asks of a running Countersign.
type (
	runningDesk struct {
		control.Desk
		snapshot worker.Snapshot
	}
	runningRules struct {
		control.Rulebook
		state policy.RulesState
	}
)

func (d runningDesk) Snapshot() worker.Snapshot { return d.snapshot }
func (r runningRules) State() policy.RulesState { return r.state }

// runs has a Countersign answer for the data directory until the test ends.
func (b *bench) runs(state policy.RulesState, connections ...worker.ConnectionView) {
	b.t.Helper()
	l, err := control.Listen(b.place.data)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := control.Server{Desk: runningDesk{snapshot: worker.Snapshot{Connections: connections}}, Rules: runningRules{state: state}, Log: slog.New(slog.DiscardHandler)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	b.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.t.Error(err)
		}
	})
}

// keeps notes which rules were in force last.
func (b *bench) keeps(rules string) {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), b.place.database())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := s.KeepRules(b.place.rulesFile(), []byte(rules)); err != nil {
		b.t.Error(err)
	}
	if err := s.Close(); err != nil {
		b.t.Error(err)
	}
}

// notYet is what check, explain and explain --json say about the file's being in
// force, which is one of these sentences or nothing.
func (b *bench) notYet() (said []string) {
	b.t.Helper()
	out, _, err := b.check(rulesCommand{})
	if err != nil {
		out = err.Error()
	}
	said = append(said, out)
	explained, exit := b.explainExec("ls")
	text, jsonExit, _ := b.explain(rulesCommand{Explain: rulesExplain{JSON: true}}, wire.KindExec, wire.Exec{Command: "ls"})
	var got struct {
		NotInForce string `json:"not_in_force"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || exit != jsonExit {
		b.t.Errorf("exits %d and %d, %v\n%s", exit, jsonExit, err, text)
	}
	return append(said, explained, got.NotInForce)
}

func TestCheckAndExplainSayThatAChangedFileIsNotInForceYet(t *testing.T) {
	const pending = ` rules pending" shows the change`
	const yet = "this file is not in force yet: it was changed outside Countersign; "
	for what, c := range map[string]struct {
		before  string
		nothing bool // neither was anything in force, nor does the file exist
		now     string
		runs    bool
		want    string // "" for nothing
	}{
		"it runs with these rules":             {before: someRules, now: someRules, runs: true},
		"it runs with others":                  {before: fewRules, now: someRules, runs: true, want: yet + "what was in force before still is."},
		"it runs without rules":                {before: "", now: someRules, runs: true, want: yet + "no rule is in force, so every item is asked for."},
		"it runs with rules that were removed": {before: fewRules, runs: true, want: "that it is gone is not in force yet; what was in force before still is."},
		"these were in force last":             {before: someRules, now: someRules},
		"others were in force last":            {before: fewRules, now: someRules, want: yet + "what was in force before still is, also at the next start. While Countersign runs,"},
		"none ever were":                       {nothing: true, now: someRules},
	} {
		b := newBench(t)
		if c.now != "" {
			b.rules(c.now)
		}
		switch {
		case c.runs:
			state := policy.RulesState{File: b.place.rulesFile(), Text: c.before, Mode: policy.ModeRules}
			if c.before != "" {
				state.Hash = hashOf([]byte(c.before))
			}
			b.runs(state)
		case !c.nothing:
			b.keeps(c.before)
		}
		for i, said := range b.notYet() {
			says := strings.Contains(said, c.want) && strings.Contains(said, pending)
			if says != (c.want != "") || c.want == "" && strings.Contains(said, "in force yet") {
				t.Errorf("%s: %d: %s", what, i, said)
			}
		}
	}
}

func TestRulesAreReadFromTheFileThatIsInForce(t *testing.T) {
	b := newBench(t)
	other := filepath.Join(filepath.Dir(b.work), "other.toml")
	b.write(other, someRules)
	b.runs(policy.RulesState{File: other, Hash: hashOf([]byte(someRules)), Mode: policy.ModeRules})
	if out, exit := b.explainExec("ls"); exit != 0 || !strings.Contains(out, other) || strings.Contains(out, "in force yet") {
		t.Errorf("exit %d\n%s", exit, out)
	}
}
