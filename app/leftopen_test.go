package main

import (
	"bytes"
	"strings"
	"testing"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/worker"
)

func TestWhatNoConnectionIsToIsToldWithCountAndNumbers(t *testing.T) {
	left := []worker.LeftOpen{
		{Origin: "http://a", Environment: "env", Holds: []worker.HoldID{1}},
		{Origin: "http://a", Holds: []worker.HoldID{2, 3, 4, 5, 6, 7, 8}},
		{Origin: "http://b", Environment: "env", Holds: []worker.HoldID{9}},
	}
	got := untended(left, []config.Connection{{Harness: "http://a", EnvironmentID: "env"}})
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	words := leftOpenWords(got[0])
	for _, want := range []string{"7 items of harness http://a were left unfinished (#2, #3, #4, #5, #6, and 2 more)", "Add the connection again"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %q", want, words)
		}
	}
	if words := leftOpenWords(got[1]); !strings.HasPrefix(words, "1 item of harness http://b environment env was left unfinished (#9), and") {
		t.Errorf("%q", words)
	}
}

func TestPsSaysThatItQuitsAndWhatIsLeftOpen(t *testing.T) {
	status := control.Status{Quitting: true, LeftOpen: []worker.LeftOpen{{Origin: "http://a\x1b", Holds: []worker.HoldID{2}}},
		Snapshot: worker.Snapshot{Paused: true, Connections: []worker.ConnectionView{{RemovedEnv: []string{"DISPLAY"}, Confinement: "none"}}}}
	var out bytes.Buffer
	if err := writeStatus(&out, status, nil, "countersign"); err != nil {
		t.Fatal(err)
	}
	safe(t, "ps", out.String())
	for _, want := range []string{"Quitting: nothing more is claimed", "1 item of harness http://a"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	l := listing(status, nil)
	if !l.Quitting || len(l.LeftOpen) != 1 || l.LeftOpen[0].Items[0] != 2 || l.Connections[0].RemovedEnv[0] != "DISPLAY" || l.Connections[0].Confinement != "none" {
		t.Errorf("listed %+v", l)
	}
}
