//go:build linux

package keep

import (
	"bytes"
	"io"
	"reflect"
	"testing"
	"time"
)

var some = Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo \n ‹x›", ""}, Env: []string{"A=b=c", "D="}, Until: 4711,
	Grace: 5 * time.Second, LeftGrace: time.Second, TimerSlack: time.Microsecond, Confine: true, Writable: []string{"/a", "/b c"}}

func TestACommandComesThroughThePipeAsItWasAndOrdersAfterIt(t *testing.T) {
	for _, c := range []Command{some, {Path: "x", Args: []string{}, Env: []string{}, Writable: []string{}}} {
		pipe := bytes.NewReader(append(c.Encode(), Kill))
		got, err := readCommand(pipe)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v, %v, want %+v", got, err, c)
		}
		if rest, _ := io.ReadAll(pipe); string(rest) != string(rune(Kill)) {
			t.Errorf("left in the pipe: %q", rest)
		}
	}
}

func TestHalfACommandIsNone(t *testing.T) {
	whole := some.Encode()
	for n := range whole {
		if c, err := readCommand(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("of %d bytes it reads %+v", n, c)
		}
	}
}

func TestACommandOfAnotherVersionIsNone(t *testing.T) {
	other := bytes.Replace(some.Encode(), []byte(version), []byte("countersign-keeper 0"), 1)
	if c, err := readCommand(bytes.NewReader(other)); err == nil {
		t.Errorf("it reads %+v", c)
	}
}

func FuzzReadCommand(f *testing.F) {
	f.Add(some.Encode())
	f.Add([]byte("99999999999999\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readCommand(bytes.NewReader(data))
		if err != nil {
			return
		}
		if again, err := readCommand(bytes.NewReader(c.Encode())); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v, again %+v, %v", c, again, err)
		}
	})
}

func TestAProcessIsReadWhateverItsName(t *testing.T) {
	const rest = " S 10 20 30 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 4711 2703360 400"
	for _, name := range []string{"sh", "a) Z 1 1", "\n", ") ) )"} {
		p, ok := parseStat(5, "5 ("+name+")"+rest)
		if want := (Proc{PID: 5, Parent: 10, Group: 20, Session: 30, Start: 4711}); !ok || p != want {
			t.Errorf("%q: %+v, want %+v", name, p, want)
		}
	}
	if _, ok := parseStat(5, "5 (sh) S 1"); ok {
		t.Error("half a line was read")
	}
}

func TestOnlyWhatHasNoThreadLeftIsDead(t *testing.T) {
	for _, c := range []struct {
		state, threads string
		dead           bool
	}{{"Z", "1", true}, {"Z", "3", false}, {"X", "0", true}, {"S", "1", false}, {"T", "1", false}} {
		p, ok := parseStat(5, "5 (sh) "+c.state+" 10 20 30 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 "+c.threads+" 0 4711 2703360")
		if !ok || p.Dead != c.dead {
			t.Errorf("state %s with %s threads: dead %v", c.state, c.threads, p.Dead)
		}
	}
}

func TestBelowFindsAllGenerationsInAnyOrder(t *testing.T) {
	procs := []Proc{{PID: 9, Parent: 8}, {PID: 2, Parent: 1}, {PID: 8, Parent: 7}, {PID: 7, Parent: 1}, {PID: 3, Parent: 2}, {PID: 4, Parent: 0}}
	found := Below(procs, func(p Proc) bool { return p.PID == 7 })
	if want := []Proc{{PID: 7, Parent: 1}, {PID: 8, Parent: 7}, {PID: 9, Parent: 8}}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %+v", found)
	}
}
