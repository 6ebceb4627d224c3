// Package execute runs one tool call on this machine: a command with its
// output, or a file inside the work directory (PROTOCOL.md §4, DESIGN.md
// "Running a tool call"). It decides nothing about whether one may run.
package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/worker/api/wire"
)

// Options say where and how a Runner works. Zero fields take the defaults named
// here.
type Options struct {
	Dir       string          // work directory; required
	Env       func() []string // base environment; asked for once, when a command first needs it; default os.Environ
	PassEnv   []string        // names that reach commands although they would be removed
	RemoveEnv []string        // more names that do not; both may end in *
	Shell     []string        // what a command is appended to; default /bin/sh -c, cmd /S /C
	Keeper    *Keeper         // starts commands under a helper; nil: in a process group or a job

	Confine       bool     // commands write only where they may, or do not run: see ConfinementLevel
	WritablePaths []string // where they may, besides the work directory and a TMPDIR of their own

	Grace           time.Duration // between asking a command to end and killing it; default 5 s
	ReportLimit     int           // bytes of each stream in a report; default 256 KB
	TranscriptLimit int64         // bytes of a transcript; default 64 MB
	ReadLimit       int64         // bytes of a file that is read; default 10 MB
	ListLimit       int           // entries of a list; default 50,000

	// Hidden reports whether a list leaves out an entry: a file, or a directory
	// with all that is below it. rel is relative to the work directory, with
	// slashes. It is called often, from several goroutines. Nil: none is.
	Hidden func(t Task, rel string) bool
}

// Runner runs tool calls in one work directory. It is safe for concurrent use.
type Runner struct {
	o   Options
	dir string
	env func() splitEnv
}

// New returns a Runner for a work directory that exists and can be written to.
// Its errors name the directory and say what is expected of it.
func New(o Options) (*Runner, error) {
	dir, err := workDir(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkWritable(o.WritablePaths); err != nil {
		return nil, err
	}
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.ReportLimit = cmp.Or(o.ReportLimit, 256<<10)
	o.TranscriptLimit = cmp.Or(o.TranscriptLimit, 64<<20)
	o.ReadLimit = cmp.Or(o.ReadLimit, 10<<20)
	o.ListLimit = cmp.Or(o.ListLimit, 50_000)
	if len(o.Shell) == 0 {
		o.Shell = defaultShell
	}
	if o.Env == nil {
		o.Env = os.Environ
	}
	return &Runner{o: o, dir: dir, env: sync.OnceValue(func() splitEnv {
		return filterEnv(o.Env(), o.RemoveEnv, o.PassEnv)
	})}, nil
}

// workDir returns the canonical path of a usable work directory.
func workDir(name string) (string, error) {
	if name == "" {
		return "", errors.New("work directory: none given, expected the path of an existing directory")
	}
	dir, err := filepath.Abs(name)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("work directory %s: does not exist, expected an existing directory", name)
	}
	if err != nil {
		return "", fmt.Errorf("work directory %s: cannot be used, expected an existing directory: %w", name, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("work directory %s: cannot be used, expected an existing directory: %w", name, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("work directory %s: is a file, expected a directory", name)
	}
	// Trying is the only test that knows of read-only file systems and of ACLs.
	probe, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", fmt.Errorf("work directory %s: cannot be written to, expected a directory that can: %w", name, err)
	}
	probe.Close()
	return dir, os.Remove(probe.Name())
}

// open opens the work directory, anew for each task: where it was deleted and
// made again, by a fresh clone for one, the new one is meant.
func (r *Runner) open() (*os.Root, error) {
	dir, err := filepath.EvalSymlinks(r.dir)
	if err == nil && dir != r.dir {
		err = errors.New("a link has taken its place")
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(r.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the work directory %s", explain(err))
	}
	return root, nil
}

// Usable reports why the work directory cannot be used any more, if that is so.
// It makes a file in it for a moment.
func (r *Runner) Usable() error {
	dir, err := workDir(r.dir)
	if err == nil && dir != r.dir {
		err = fmt.Errorf("work directory %s: a link has taken its place, expected a directory", r.dir)
	}
	return err
}

// Dir is the canonical work directory.
func (r *Runner) Dir() string { return r.dir }

// RemovedEnv names the variables of the base environment that commands do not
// get, sorted. It has no values.
func (r *Runner) RemovedEnv() []string { return slices.Clone(r.env().unpassed) }

// Check reports, as an *Unfit, what about t could not be done here as things
// are now, before anyone is asked about it. It has no effects.
func (r *Runner) Check(t Task) error {
	root, err := r.open()
	if err != nil {
		return unfit("%s", err)
	}
	defer root.Close()
	if t.Kind == wire.KindExec {
		if _, err := r.commandDir(root, t.Cwd); err != nil {
			return unfit("%s", err)
		}
		if _, err := ConfinementLevel(); r.o.Confine && err != nil {
			return unfit("%s", &unconfined{err.Error()})
		}
	}
	return nil
}

// Run does t and returns what came of it. It always returns, whatever t does,
// and the outcome always has a Result to report.
//
// To cancel ctx stops the task; the text of context.Cause becomes part of the
// outcome's Reason. What a command prints is written to a file at
// transcriptPath, and beside it, unless that is "".
func (r *Runner) Run(ctx context.Context, t Task, transcriptPath string) (o Outcome) {
	started := time.Now()
	defer func() {
		if p := recover(); p != nil {
			o = broken(t, fmt.Sprint(p))
		}
		o.StartedAt, o.FinishedAt = started, time.Now()
	}()
	return r.run(ctx, t, transcriptPath)
}

func (r *Runner) run(ctx context.Context, t Task, transcriptPath string) Outcome {
	if ctx.Err() != nil {
		return notStarted(ctx, t)
	}
	root, err := r.open()
	if err != nil {
		return couldNotStart(t, 126, err.Error())
	}
	defer root.Close()
	switch t.Kind {
	case wire.KindExec:
		return r.exec(ctx, root, t, transcriptPath)
	case wire.KindRead:
		return r.read(root, t)
	case wire.KindWrite:
		return r.write(root, t)
	case wire.KindList:
		return r.list(ctx, root, t)
	}
	return fileFailed("Work of kind %q cannot be done by this worker. Nothing was done.", t.Kind)
}

// couldNotStart is the outcome of a task of which nothing was done. Of a command
// that is a result, as a shell would report it.
func couldNotStart(t Task, exit int, reason string) Outcome {
	if t.Kind != wire.KindExec {
		return fileFailed("Nothing was done: %s.", reason)
	}
	text := "Not run: " + reason + "."
	return Outcome{How: CouldNotStart, Exit: exit, Reason: text,
		Result: encode(wire.ExecResult{ExitCode: exit, Stderr: text + "\n"})}
}

// notStarted is the outcome of a task that was stopped before its start: no
// process was made.
func notStarted(ctx context.Context, t Task) Outcome {
	text := "Stopped before it started: " + cause(ctx) + "."
	if t.Kind != wire.KindExec {
		return fileFailed("%s", text)
	}
	return Outcome{How: CouldNotStart, Exit: 126, Reason: text,
		Result: encode(wire.ExecResult{ExitCode: 126, Stderr: text + "\n", Aborted: true})}
}

func cause(ctx context.Context) string {
	return strings.TrimSuffix(context.Cause(ctx).Error(), ".")
}

// broken is the outcome after a mistake of ours in the middle of a task.
func broken(t Task, why string) Outcome {
	const text = "Outcome unknown: the worker failed while this ran. It may have run wholly, partly or not at all."
	if t.Kind == wire.KindExec {
		return Outcome{How: Lost, Exit: 125, Reason: text + " (" + why + ")",
			Result: encode(wire.ExecResult{ExitCode: 125, Stderr: text, Aborted: true})}
	}
	o := fileFailed("%s", text)
	o.Reason += " (" + why + ")"
	return o
}

// encode is json.Marshal for our own result types, which always encode. It does
// not escape <, > and &: agents read these texts.
func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// inRoot is a path of an item as os.Root takes it: a leading / means the root.
// It is not cleaned, because ".." after a link does not mean what it spells.
func inRoot(path string) string {
	path = strings.TrimLeft(path, "/")
	if path == "" {
		return "."
	}
	return path
}

// errOutside is the one refusal that is about where a path leads. Absolute links
// are refused wherever they lead: what is at an absolute path can change hands.
var errOutside = errors.New("leads outside the work directory, or through an absolute link")

// explain puts an error of os.Root into words without our machine's paths.
func explain(err error) string {
	if perr := (*fs.PathError)(nil); errors.As(err, &perr) {
		err = perr.Err
	} else if lerr := (*os.LinkError)(nil); errors.As(err, &lerr) {
		err = lerr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "is not accessible: permission denied"
	case errors.Is(err, errOutside), strings.Contains(err.Error(), "escapes"): // os.Root exports no value for it
		return errOutside.Error()
	}
	return "cannot be used: " + err.Error()
}

// readAtMost reads to the end, and fails for more than limit bytes.
func readAtMost(from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return data, err
}
