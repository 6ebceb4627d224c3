package execute

import (
	"context"
	"time"
)

// Options say where and how a Runner works. Zero fields take the defaults named
// here.
type Options struct {
	Dir       string   // work directory; required
	Env       []string // base environment; default os.Environ()
	PassEnv   []string // names that reach commands although they would be removed
	RemoveEnv []string // more names that do not
	Shell     []string // what a command is appended to; default /bin/sh -c, cmd /S /C

	Grace           time.Duration // between asking a command to end and killing it; default 5 s
	ReportLimit     int           // bytes of each stream in a report; default 256 KB
	TranscriptLimit int64         // bytes of a transcript; default 64 MB
	ReadLimit       int64         // bytes of a file that is read; default 10 MB
	ListLimit       int           // entries of a list; default 50,000
}

// Runner runs tool calls in one work directory. It is safe for concurrent use.
type Runner struct{ o Options }

// New returns a Runner.
func New(o Options) (*Runner, error) { return &Runner{o}, nil }

// Dir is the canonical work directory.
func (r *Runner) Dir() string { return r.o.Dir }

// RemovedEnv names the variables that commands do not get.
func (r *Runner) RemovedEnv() []string { return nil }

// Check reports what about t cannot be done here. It has no effects.
func (r *Runner) Check(t Task) error { return nil }

// Run does t and returns what came of it.
func (r *Runner) Run(ctx context.Context, t Task, transcriptPath string) Outcome { return Outcome{} }

// CaptureLoginEnv returns the environment of the user's login shell.
func CaptureLoginEnv(ctx context.Context, timeout time.Duration) ([]string, error) { return nil, nil }
