package execute

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// stream is one of the two that a command prints to.
type stream int

const (
	stdout stream = iota
	stderr
)

// headLimit is how much of an output is kept for search, in bytes.
const headLimit = 8 << 10

// recorder keeps what a command prints: whole, up to a limit, in a transcript
// on disk, and head and tail of each stream in memory for the report. Its
// memory is bounded, and trouble with the disk never reaches the command.
//
// The transcript has the streams as they were read. Each is in its order; of two
// pipes that something was written to before we came to read, nobody can say which
// was first. That is so for most of what one program prints to both within
// microseconds, however it is read (one loop over both gains little); programs
// that are started one after another are told apart. The pipes are not made to
// hold one write each, which would tell the order: a command would wait for us
// with every line.
type recorder struct {
	mu         sync.Mutex
	closed     bool
	streams    [2]*ends
	head       []byte // of both streams as they came
	transcript *transcriptWriter
	trouble    string // what went wrong with the transcript, for people
}

// recording is what a recorder has kept when the command has ended.
type recording struct {
	text    [2]string // for the report
	printed [2]int64  // bytes
	cut     int64     // bytes that text leaves out
	head    string
	trouble string
}

func newRecorder(transcriptPath string, transcriptLimit int64, reportLimit int) *recorder {
	rec := &recorder{streams: [2]*ends{newEnds(reportLimit), newEnds(reportLimit)}}
	if transcriptPath != "" {
		rec.transcript = newTranscriptWriter(transcriptPath, transcriptLimit)
	}
	return rec
}

func (rec *recorder) write(s stream, p []byte) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.closed {
		return
	}
	rec.streams[s].write(p)
	if room := headLimit - len(rec.head); room > 0 {
		rec.head = append(rec.head, p[:min(room, len(p))]...)
	}
	if rec.transcript != nil {
		rec.transcript.write(s, p)
	}
}

// close ends the recording; what comes later is dropped.
func (rec *recorder) close() recording {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	if rec.transcript != nil {
		if err := rec.transcript.close(); err != nil {
			rec.trouble = fmt.Sprintf("Its output could not be written to disk whole: %v.", err)
		}
		rec.transcript = nil
	}
	kept := recording{head: validPrefix(rec.head, headLimit), trouble: rec.trouble}
	for s, e := range rec.streams {
		var cut int64
		kept.text[s], cut = e.text()
		kept.printed[s] = e.total
		kept.cut += cut
	}
	return kept
}

// createPrivate makes an empty file that only this user can read, and its
// directory.
func createPrivate(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}
