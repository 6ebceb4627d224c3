package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/worker/safetext"

	"github.com/adrg/xdg"
	"github.com/gofrs/flock"
)

// place is where one Countersign keeps what is its own.
type place struct {
	data   string
	config string
}

// defaultPlace is where things are kept unless flags say otherwise.
func defaultPlace() place {
	return place{data: filepath.Join(xdg.DataHome, "countersign"), config: filepath.Join(xdg.ConfigHome, "countersign")}
}

// place finds the directories; nothing is made yet. A directory of configuration
// that is named has to be there: a mistyped one would be an empty one.
func (g *global) place() (place, error) {
	p := defaultPlace()
	for _, dir := range []struct{ flag, given string }{{"--data-dir", g.DataDir}, {"--config-dir", g.ConfigDir}} {
		if dir.given == "" {
			continue
		}
		abs, err := filepath.Abs(dir.given)
		if err != nil {
			return p, &config.Invalid{Name: dir.flag, Value: dir.given, Expected: "expected the path of a directory"}
		}
		if dir.flag == "--data-dir" {
			p.data = abs
			continue
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return p, &config.Invalid{Name: dir.flag, Value: dir.given, Expected: "expected an existing directory"}
		}
		p.config = abs
	}
	return p, nil
}

// self is how this program is called again for the same data directory, to be
// pasted into a shell.
func (g *global) self() string {
	p, err := g.place()
	if err != nil {
		return "countersign"
	}
	return "countersign" + flagFor("--data-dir", p.data, defaultPlace().data)
}

// self is the same for what goes by the configuration too.
func (p place) self() string {
	usual := defaultPlace()
	return "countersign" + flagFor("--data-dir", p.data, usual.data) + flagFor("--config-dir", p.config, usual.config)
}

// flagFor is the flag that names a directory, to be pasted into a shell; none for
// the one that is used without.
func flagFor(flag, dir, usual string) string {
	if dir == usual {
		return ""
	}
	dir = safetext.Line(dir)
	if strings.ContainsFunc(dir, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:@%", r)
	}) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return " " + flag + " " + dir
}

func (p place) database() string   { return filepath.Join(p.data, "countersign.db") }
func (p place) outputs() string    { return filepath.Join(p.data, "output") }
func (p place) configFile() string { return filepath.Join(p.config, config.FileName) }

// own lists the directories that a work directory must keep away from.
func (p place) own() []string {
	return []string{p.data, p.config, filepath.Join(xdg.StateHome, "countersign")}
}

// inUse says that another Countersign has the data directory.
type inUse struct{ dir string }

func (e *inUse) Error() string {
	return fmt.Sprintf("A Countersign is already running for data directory %s. Use another --data-dir, or end that one first.", e.dir)
}

// open makes the directories and takes the data directory for this process. The
// error is an *inUse where another process has it.
func (p place) open() (release func(), err error) {
	for _, dir := range []string{p.data, p.config, p.outputs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &config.Invalid{Name: p.flag(dir), Value: dir, Expected: "expected a directory that can be made and written to: " + err.Error()}
		}
	}
	if err := control.Private(p.data); err != nil {
		return nil, &config.Invalid{Name: "--data-dir", Value: p.data, Expected: err.Error()}
	}
	lock := flock.New(filepath.Join(p.data, "lock"), flock.SetPermissions(0o600))
	// A program that the last Countersign was just starting when it was killed holds
	// the lock for a moment longer.
	wait, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	got, err := lock.TryLockContext(wait, 50*time.Millisecond)
	if err != nil && wait.Err() == nil {
		return nil, &config.Invalid{Name: "--data-dir", Value: p.data, Expected: "expected a directory that can be written to: " + err.Error()}
	}
	if !got {
		return nil, &inUse{p.data}
	}
	return func() { lock.Close() }, nil
}

// isOpen says whether a Countersign has the data directory.
func (p place) isOpen() bool {
	path := filepath.Join(p.data, "lock")
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock := flock.New(path)
	defer lock.Close()
	got, err := lock.TryRLock()
	return err == nil && !got
}

// flag is what names one of the directories on the command line.
func (p place) flag(dir string) string {
	if dir == p.config {
		return "--config-dir"
	}
	return "--data-dir"
}

// keepCrashes has the runtime write a crash to a file in the data directory
// besides stderr, which nobody reads of a desktop app.
func (p place) keepCrashes() error {
	file, err := os.OpenFile(filepath.Join(p.data, "crash.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the crash file: %w", err)
	}
	defer file.Close() // the runtime keeps a descriptor of its own
	return debug.SetCrashOutput(file, debug.CrashOptions{})
}
