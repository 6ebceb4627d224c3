package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/worker"
)

// doctor is one of a bench, beside a running Countersign with some connections.
func (b *bench) doctor(running ...worker.ConnectionView) *doctor {
	d := &doctor{place: b.place, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if running != nil {
		d.running = &control.Status{Version: version, Snapshot: worker.Snapshot{Connections: running}}
	}
	return d
}

func find(found []finding, connection, check string) finding {
	for _, f := range found {
		if f.Connection == connection && f.Check == check {
			return f
		}
	}
	return finding{}
}

func TestDoctorLooksAtWhatTheRunningCountersignWorksForThoughTheFileHasItNot(t *testing.T) {
	b := newBench(t)
	b.connect("mine")
	d := b.doctor(worker.ConnectionView{Name: "other", Origin: "http://127.0.0.1:4000", WorkDir: b.work + "/gone",
		State: worker.WorkDirUnusable, Detail: "the work directory is gone"})
	d.configuration()
	if f, has := d.atWork(d.config.Connections[0]); !has || f.Grade != isWarning || !strings.Contains(f.Means, "or with --harness") {
		t.Errorf("of what it has not: %+v", f)
	}
	found := d.onlyRunning()
	if f := find(found, "other", "configuration"); !strings.Contains(f.Means, "running Countersign's alone") {
		t.Errorf("got %+v", found)
	}
	if f := find(found, "other", "at work"); f.Grade != isProblem || !strings.Contains(f.Means, "gets no work here (work directory unusable). the work directory is gone") {
		t.Errorf("at work: %+v", f)
	}
	if f := find(found, "other", "work directory"); f.Grade != isProblem {
		t.Errorf("work directory: %+v", f)
	}
	d.flagged = &config.Connection{} // then only that one is asked about
	if found := d.onlyRunning(); len(found) != 0 {
		t.Errorf("got %+v", found)
	}
}

func TestDoctorCallsAConnectionThatIsBeingMadeNoProblem(t *testing.T) {
	if f := working(worker.ConnectionView{State: worker.Connecting}); f.Grade != isWarning || !strings.Contains(f.Means, "may just be starting") {
		t.Errorf("got %+v", f)
	}
}

func TestDoctorTellsTheConfinementOfWhatRuns(t *testing.T) {
	b := newBench(t)
	none, _ := confinement(false)
	for _, c := range []struct {
		confinement string
		grade       grade
		want        string
	}{
		{"writes only in the work directory", isWarning, "In the running Countersign: writes only in the work directory."},
		{none, isOK, "In the running Countersign: " + none},
		{"", isOK, upperFirst(none)},
	} {
		d := b.doctor(worker.ConnectionView{Confinement: c.confinement})
		d.config = config.Default()
		if f := d.confinement(); f.Grade != c.grade || !strings.HasPrefix(f.Means, c.want) {
			t.Errorf("%q: %+v", c.confinement, f)
		}
	}
}

func TestDoctorDoesNotCallAConfigurationUsableThatNothingStartsWith(t *testing.T) {
	b := newBench(t)
	b.write(b.place.configFile(), fmt.Sprintf("[[connection]]\nharness = \"http://127.0.0.1:1\"\nworkdir = %q\n", b.work+"/gone"))
	f := b.doctor().configuration()
	if f.Grade != isProblem || !strings.Contains(f.Means, "config.toml:3: connection.workdir") {
		t.Errorf("got %+v", f)
	}
}

func TestWhatDoctorSaysAreSentences(t *testing.T) {
	b := newBench(t)
	b.write(b.place.configFile(), "zzz = 1\nyyy = 2\n")
	d := b.doctor(worker.ConnectionView{Name: "c", State: worker.Unreachable, Detail: "No usable answer from the harness; trying again. connection refused"})
	found := append(d.onlyRunning(), d.configuration())
	sentences(found)
	var out bytes.Buffer
	if err := writeFindings(&out, b.place, found); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"connection refused.\n", "notifications. Mend the file", "; " + b.place.configFile() + ":2: yyy"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "is unreachable. No usable") {
		t.Error(out.String())
	}
}

func TestKeysThatNoConnectionGetsAreToldAtAStartAndByDoctor(t *testing.T) {
	b := newBench(t)
	b.connect("mine")
	b.write(b.place.config+"/credentials.toml", "[mein]\napi-key = \"secret-4711\"\n")
	d := b.doctor()
	d.configuration()
	found := d.strayKeys()
	var log bytes.Buffer
	read, err := config.Read(b.place.configFile())
	if err != nil {
		t.Fatal(err)
	}
	a := assembly{place: b.place, config: read, fromFile: read, log: slog.New(slog.NewTextHandler(&log, nil))}
	a.warnOfStrayKeys()
	if len(found) != 1 || found[0].Grade != isWarning {
		t.Fatalf("got %+v", found)
	}
	for where, text := range map[string]string{"doctor": found[0].Means, "the log": log.String()} {
		if !strings.Contains(text, "credentials.toml:1: [") || !strings.Contains(text, "expected one of mine") || strings.Contains(text, "4711") {
			t.Errorf("%s: %s", where, text)
		}
	}
}
