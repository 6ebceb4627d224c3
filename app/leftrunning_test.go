package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/execute"
)

// startedHold is one that the journal has the start of and not the end.
func startedHold() worker.Hold {
	h := nastyHold()
	h.Facts = worker.Facts{Decision: worker.Approved, Acceptance: worker.Accepted, Execution: worker.Starting}
	h.Outcome = nil
	return h
}

func TestWhatRanWhenCountersignEndedIsNotCalledRunning(t *testing.T) {
	client := control.NewClient(t.TempDir())
	defer client.Close()
	status := statusesNow(t.Context(), client)
	if got := status(startedHold()); got != wordWasRunning {
		t.Errorf("got %s", got)
	}
	var out bytes.Buffer
	if err := writeHistory(&out, []worker.Hold{startedHold()}, status); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "  Was running  ") || !strings.Contains(out.String(), "\nWas running: Countersign ended while it ran") {
		t.Error(out.String())
	}
	waiting, done := startedHold(), startedHold()
	waiting.Execution, waiting.Decision, waiting.Acceptance = worker.NotStarted, worker.Undecided, worker.NotAsked
	done.Execution, done.Delivery, done.Closed = worker.Finished, worker.Delivered, true
	for want, h := range map[string]worker.Hold{worker.WordWaiting: waiting, worker.WordReported: done} {
		if got := status(h); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestShowOfWhatWasInterruptedSaysWhatIsOnDiskAndWhenItStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started := time.Date(2030, 1, 2, 3, 4, 6, 0, time.Local)
	v := worker.View{Hold: startedHold(), Word: wordWasRunning, Steps: []worker.Entry{{Step: worker.StepStarting, At: started}}}
	v.OutputPath = path
	found := v
	found.Word, found.Execution = worker.WordInterrupted, worker.Interrupted
	found.Outcome = &execute.Outcome{How: execute.Lost, Exit: 125, FinishedAt: started.Add(time.Hour)}
	for what, v := range map[string]worker.View{"before the next start": v, "after it": found} {
		var out bytes.Buffer
		writeView(&out, v, nil, "")
		for _, want := range []string{"\nstarted         2030-01-02 03:04:06\n", "\noutput          6 bytes on disk"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in %s", what, want, out.String())
			}
		}
		if strings.Contains(out.String(), "0 bytes on stdout") {
			t.Errorf("%s: %s", what, out.String())
		}
	}
}
