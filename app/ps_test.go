package main

import (
	"bytes"
	"strings"
	"testing"

	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

func TestPsSaysThatAConnectionIsFull(t *testing.T) {
	waiting := worker.View{Hold: nastyHold()}
	waiting.Outcome, waiting.Delivery = nil, worker.NothingToDeliver
	running, elsewhere, declined := waiting, waiting, waiting
	running.Execution = worker.Running
	elsewhere.Connection = "other"
	declined.Delivery = worker.Delivering
	status := control.Status{Snapshot: worker.Snapshot{
		Waiting: []worker.View{waiting, elsewhere, declined}, Running: []worker.View{running},
		Connections: []worker.ConnectionView{{Name: "c", MaxHeld: 1}, {Name: "other", MaxHeld: 2}},
	}}
	var out bytes.Buffer
	if err := writeStatus(&out, status, nil, "countersign"); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "Full: ") != 1 || !strings.Contains(out.String(), "Full: 1 of 1 held, so nothing more is claimed") {
		t.Error(out.String())
	}
	l := listing(status, nil).Connections
	if l[0].Held != 1 || !l[0].Full || l[1].Held != 1 || l[1].Full {
		t.Errorf("listed %+v", l)
	}
}

func TestTheListsSayOfWhatWasReportedThatItFailed(t *testing.T) {
	done := nastyHold()
	done.Outcome = &execute.Outcome{How: execute.Ended, Exit: 3}
	var ps, history bytes.Buffer
	status := control.Status{Snapshot: worker.Snapshot{Finished: []worker.View{{Hold: done, Word: worker.WordReported}}}}
	if err := writeStatus(&ps, status, nil, "countersign"); err != nil {
		t.Fatal(err)
	}
	if err := writeHistory(&history, []worker.Hold{done}, func(worker.Hold) string { return worker.WordReported }); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{ps.String(), history.String()} {
		if !strings.Contains(out, "  Reported · exit 3  ") {
			t.Error(out)
		}
	}
}

func TestPsSaysWhatOfTheRuleFileIsNotInForce(t *testing.T) {
	changed := policy.RulesState{File: "/r", Hash: strings.Repeat("a", 64), Pending: &policy.Change{Hash: strings.Repeat("b", 64)}}
	for _, c := range []struct {
		rules policy.RulesState
		want  string
	}{
		{changed, "The rule file was changed outside Countersign; what was in force before still is. \"countersign rules pending\" shows the change.\n"},
		{policy.RulesState{Broken: "/r:3: no"}, "The rule file cannot be used; no rule is in force, so every item is asked for. \"countersign rules pending\" tells why.\n"},
		{policy.RulesState{Hash: changed.Hash}, ""},
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, control.Status{}, &c.rules, "countersign"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) || c.want == "" && strings.Contains(out.String(), "rule file") {
			t.Errorf("%q is not in %s", c.want, out.String())
		}
	}
	if l := listing(control.Status{}, &changed).Rules; l.Hash != changed.Hash || l.Pending != "bbbbbbbbbbbb" || l.Broken != "" {
		t.Errorf("listed %+v", l)
	}
}
