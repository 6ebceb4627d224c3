package execute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/worker/api/wire"
)

// keep writes p in pieces to ends of a limit and returns what it reports.
func keepEnds(p []byte, limit, piece int) (string, int64) {
	e := newEnds(limit)
	for len(p) > 0 {
		n := min(piece, len(p))
		e.write(p[:n])
		p = p[n:]
	}
	return e.text()
}

func TestAReportKeepsHeadAndTailAtCharacters(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
		cut   int64
	}{
		{"", 10, "", 0},
		{"0123456789", 10, "0123456789", 0},
		{"0123456789a", 10, "01234\n… 1 bytes cut …\n6789a", 1},
		{"€€€€", 12, "€€€€", 0},
		{"€€€€€", 12, "€€\n… 3 bytes cut …\n€€", 3},
		{"€€€€€", 10, "€\n… 9 bytes cut …\n€", 9},
		{"a\xffb", 5, "a\ufffdb", 0},
		{"\xff\xff\xff\xff", 12, "\ufffd\ufffd\ufffd\ufffd", 0},
		{"\xff\xff\xff\xff", 8, "\ufffd\n… 2 bytes cut …\n\ufffd", 2},
		{"a\x00b", 5, "a\x00b", 0},
		{"01234567890123456789\xe2\x82", 10, "01234\n… 16 bytes cut …\n\ufffd", 16},
	} {
		for piece := 1; piece <= len(c.in)+1; piece++ {
			got, cut := keepEnds([]byte(c.in), c.limit, piece)
			if got != c.want || cut != c.cut {
				t.Errorf("%q in %d by %d: %q, %d cut, want %q, %d", c.in, c.limit, piece, got, cut, c.want, c.cut)
			}
		}
	}
}

func TestAReportAlwaysAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "é", "€", "🙂", "\xff", "\x80", "\xe2\x82", "\xf0\x9f", "\x00", "\n"}
	for range 20_000 {
		var in []byte
		for range random.IntN(60) {
			in = append(in, alphabet[random.IntN(len(alphabet))]...)
		}
		limit := 1 + random.IntN(80)
		got, cut := keepEnds(in, limit, 1+random.IntN(9))
		if !utf8.ValidString(got) {
			t.Fatalf("%q in %d: %q is not UTF-8", in, limit, got)
		}
		if cut == 0 {
			if got != each(in) || len(got) > limit {
				t.Fatalf("%q in %d: %q", in, limit, got)
			}
			continue
		}
		head, tail, ok := strings.Cut(got, cutLine(cut))
		if !ok || len(head)+len(tail) > limit || !strings.HasPrefix(each(in), head) || !strings.HasSuffix(each(in), tail) {
			t.Fatalf("%q in %d: %q", in, limit, got)
		}
	}
}

func TestARingKeepsTheLastBytes(t *testing.T) {
	for _, piece := range []int{1, 3, 7, 10, 23, 100} {
		r := ring{size: 10}
		all := bytes.Repeat([]byte("0123456789abcdef"), 7)
		for p := all; len(p) > 0; p = p[min(piece, len(p)):] {
			r.write(p[:min(piece, len(p))])
		}
		if got := r.bytes(); !bytes.Equal(got, all[len(all)-10:]) {
			t.Errorf("by %d: %q", piece, got)
		}
	}
}

func TestAShortenedResultIsOfTheSameKindAndSaysThatItWasCut(t *testing.T) {
	long := strings.Repeat("<€\x00\n", 20_000)
	var paths []string
	for i := range 10_000 {
		paths = append(paths, fmt.Sprintf("dir/file%d", i))
	}
	for _, limit := range []int{500, 5000, 50_000} {
		exec := Outcome{How: Ended, Exit: 3, Result: encode(wire.ExecResult{ExitCode: 3, Stdout: long, Stderr: "why", TimedOut: true})}
		var res wire.ExecResult
		short := Shorten(exec, limit)
		if err := json.Unmarshal(short, &res); err != nil || len(short) > limit || res.ExitCode != 3 || !res.TimedOut ||
			res.Stderr != "why" || !strings.Contains(res.Stdout, "bytes cut") || len(short) < limit/3 {
			t.Errorf("exec in %d: %d bytes, %.200s, %v", limit, len(short), short, err)
		}
		var text string
		short = Shorten(Outcome{How: Ended, Result: encode(long)}, limit)
		if err := json.Unmarshal(short, &text); err != nil || len(short) > limit || !strings.Contains(text, "bytes cut") {
			t.Errorf("read in %d: %d bytes, %v", limit, len(short), err)
		}
		var list []string
		short = Shorten(Outcome{How: Ended, Result: encode(paths)}, limit)
		if err := json.Unmarshal(short, &list); err != nil || len(short) > limit ||
			list[len(list)-1] != fmt.Sprintf("… %d more entries cut …", len(paths)-len(list)+1) {
			t.Errorf("list in %d: %d bytes, %v", limit, len(short), err)
		}
		var failure wire.Failure
		short = Shorten(fileFailed("%s", long), limit)
		if err := json.Unmarshal(short, &failure); err != nil || len(short) > limit || !strings.Contains(failure.Message, "bytes cut") {
			t.Errorf("failure in %d: %d bytes, %v", limit, len(short), err)
		}
	}
}

func TestAResultThatFitsIsNotShortened(t *testing.T) {
	o := Outcome{Result: encode("text")}
	if got := Shorten(o, 100); string(got) != `"text"` {
		t.Errorf("Shorten = %s", got)
	}
	if got := Shorten(o, 0); !json.Valid(got) || len(got) == 0 {
		t.Errorf("Shorten to nothing = %s", got)
	}
}
