//go:build unix

package execute

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const printed = 64 << 20

// BenchmarkOutput prints 64 MB through a command. The figure that does not
// depend on the machine is times-plain-copy: the time relative to a plain
// copy of as many bytes from a pipe to a file.
func BenchmarkOutput(b *testing.B) {
	task := sh("head -c 67108864 /dev/zero")
	plain := plainCopy(b)
	r := newRunner(b)
	path := filepath.Join(b.TempDir(), "transcript")
	b.SetBytes(printed)
	for b.Loop() {
		if o := r.Run(b.Context(), task, path); o.StdoutBytes != printed {
			b.Fatalf("outcome %+v", o.How)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(plain), "times-plain-copy")
}

// plainCopy is how long it takes to copy as many zeros through a pipe to a file.
func plainCopy(b *testing.B) time.Duration {
	file, err := os.Create(filepath.Join(b.TempDir(), "copy"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		b.Fatal(err)
	}
	defer zero.Close()
	from, to, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	go func() {
		io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(zero, printed), make([]byte, 32<<10))
		to.Close()
	}()
	if n, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{from}, make([]byte, 32<<10)); n != printed || err != nil {
		b.Fatal(n, err)
	}
	from.Close()
	return time.Since(began)
}

// BenchmarkTrue is what one command costs at least.
func BenchmarkTrue(b *testing.B) {
	r := newRunner(b)
	path := filepath.Join(b.TempDir(), "transcript")
	for b.Loop() {
		r.Run(b.Context(), sh("true"), path)
	}
}

// BenchmarkIndex is the first look at a transcript of 64 MB in short lines.
func BenchmarkIndex(b *testing.B) {
	w, _, path := newTranscript(b, printed)
	line := []byte("a line of output as programs print it\n")
	for range printed / len(line) {
		w.write(stdout, line)
	}
	closeWriter(b, w)
	b.SetBytes(printed)
	for b.Loop() {
		r, err := OpenTranscript(path)
		if err != nil {
			b.Fatal(err)
		}
		n, err := r.Count()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Lines(n/2, 50); err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}
