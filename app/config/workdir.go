package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CheckWorkDir returns the canonical path of a work directory: absolute,
// without links. It must be a directory that can be written to, and neither
// contain nor lie in one of ours, which hold what guards the machine. The
// error says what is wrong and what is expected.
func CheckWorkDir(dir string, ours ...string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("expected a path without ~: the home directory is not known")
		}
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("expected an existing directory: %w", err)
		}
		dir = abs
	}
	canonical, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("does not exist; expected an existing directory")
	}
	if err != nil {
		return "", fmt.Errorf("expected an existing directory: %w", err)
	}
	info, err := os.Stat(canonical)
	if err != nil {
		return "", fmt.Errorf("expected an existing directory: %w", err)
	}
	if !info.IsDir() {
		return "", errors.New("is not a directory; expected one")
	}
	for _, own := range ours {
		own = resolved(own)
		if within(canonical, own) || within(own, canonical) {
			return "", fmt.Errorf("contains or lies in %s, which Countersign keeps for itself; expected a directory apart from it", own)
		}
	}
	probe, err := os.CreateTemp(canonical, ".countersign-*")
	if err != nil {
		return "", errors.New("cannot be written to; expected a writable directory")
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return "", errors.New("does not let files be removed; expected a writable directory")
	}
	return canonical, nil
}

// WritablePlaces returns the places that confined commands may write to besides
// the work directory: those that are listed, and those of the presets. It refuses
// one that contains, or lies in, one of ours.
func WritablePlaces(c Confinement, presets func(home string) map[string][]string, ours ...string) ([]string, error) {
	if !c.Confine {
		return nil, nil
	}
	home, err := os.UserHomeDir()
	if err != nil && len(c.Writable)+len(c.Caches) > 0 {
		return nil, &Invalid{Name: "confinement", Expected: "the home directory is not known, which caches and ~/ need"}
	}
	var places []string
	for _, name := range c.Caches {
		places = append(places, presets(home)[name]...)
	}
	for _, place := range c.Writable {
		if rest, ok := strings.CutPrefix(place, "~/"); ok {
			place = filepath.Join(home, rest)
		}
		places = append(places, place)
	}
	for _, place := range places {
		for _, own := range ours {
			if p, own := resolved(place), resolved(own); within(p, own) || within(own, p) {
				return nil, &Invalid{Name: "confinement.writable", Value: fmt.Sprintf("%q", place),
					Expected: fmt.Sprintf("contains or lies in %s, which Countersign keeps for itself; expected a directory apart from it", own)}
			}
		}
	}
	return places, nil
}

// resolved is a path without links as far as it exists.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within says whether path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
