package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"countersign/app/config"
	"countersign/app/control"

	"github.com/adrg/xdg"
	"github.com/gofrs/flock"
)

// place is where one Countersign keeps what is its own.
type place struct {
	data   string
	config string
}

// place finds the directories; nothing is made yet.
func (g *global) place() (place, error) {
	p := place{data: filepath.Join(xdg.DataHome, "countersign"), config: filepath.Join(xdg.ConfigHome, "countersign")}
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
		} else {
			p.config = abs
		}
	}
	return p, nil
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
			return nil, fmt.Errorf("make the directory %s: %w", dir, err)
		}
	}
	if err := control.Private(p.data); err != nil {
		return nil, &config.Invalid{Name: "--data-dir", Value: p.data, Expected: err.Error()}
	}
	lock := flock.New(filepath.Join(p.data, "lock"), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data directory %s: %w", p.data, err)
	}
	if !got {
		return nil, &inUse{p.data}
	}
	return func() { lock.Close() }, nil
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
