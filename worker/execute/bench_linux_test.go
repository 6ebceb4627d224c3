package execute

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/worker/execute/keep"
)

// BenchmarkStart is what it costs to start "sh -c true" and see its end: as
// os/exec does it, in a process group, under the helper as a program of its own
// that waited or (fresh) is started for it, under this program once more, and
// confined. median-ms is what to compare: the mean is of the machine's other work.
func BenchmarkStart(b *testing.B) {
	small := filepath.Join(b.TempDir(), keep.Name)
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", small, "./keeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	own := testKeeper(b)
	beside := newKeeper(small, own.mark)
	b.Run("plain", func(b *testing.B) {
		medianOf(b, func() {
			if err := exec.Command("/bin/sh", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		})
	})
	for _, c := range []struct {
		name    string
		keeper  *Keeper
		confine bool
		fresh   bool
	}{{"group", nil, false, false}, {"helper", beside, false, false}, {"fresh", beside, false, true},
		{"confined", beside, true, false}, {"self", own, false, false}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRunner(b, func(o *Options) { o.Keeper, o.Confine = c.keeper, c.confine })
			medianOf(b, func() {
				if o := r.Run(b.Context(), sh("true"), ""); o.How != Ended {
					b.Fatal(o.Reason)
				}
				if c.fresh {
					c.keeper.Dismiss()
				}
			})
		})
	}
}

func medianOf(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		f()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
}

// BenchmarkYes takes 1 GB from yes. peak-MB is by how much the memory of this
// process grew at most.
func BenchmarkYes(b *testing.B) {
	r := newRunner(b)
	path := filepath.Join(b.TempDir(), "transcript")
	const size = 1 << 30
	b.SetBytes(size)
	before := forgetPeak(b)
	for b.Loop() {
		if o := r.Run(b.Context(), sh("yes | head -c 1073741824"), path); o.StdoutBytes != size {
			b.Fatalf("%d bytes, %s", o.StdoutBytes, o.Reason)
		}
	}
	b.ReportMetric(float64(memory(b, "VmHWM:")-before)/1024, "peak-MB")
}

// forgetPeak makes the peak what is in use now, which it returns in KB.
func forgetPeak(b *testing.B) int {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Skip(err)
	}
	return memory(b, "VmRSS:")
}

func memory(b *testing.B, name string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(status))
	for i, f := range fields {
		if f == name {
			kb, _ := strconv.Atoi(fields[i+1])
			return kb
		}
	}
	b.Fatalf("no %s", name)
	return 0
}
