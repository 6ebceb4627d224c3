package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// confinement is where one confined command can write: the work directory, a
// temporary directory of its own, and the listed places.
type confinement struct {
	writable []string
	temp     string
}

// CachePresets returns, by the name of a preset, the places that common tools
// keep downloads and build results in, below a home directory. None of them is
// on a search path for programs. They are for Options.WritablePaths.
func CachePresets(home string) map[string][]string {
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(home, filepath.FromSlash(name)))
		}
		return paths
	}
	return map[string][]string{
		"go":     in(".cache/go-build", "go/pkg"),
		"node":   in(".npm", ".cache/node-gyp", ".cache/yarn", ".cache/pnpm", ".local/share/pnpm/store"),
		"python": in(".cache/pip", ".cache/uv", ".cache/pypoetry"),
	}
}

// checkWritable refuses places whose meaning would depend on where we are.
func checkWritable(paths []string) error {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("writable path %q: is relative, expected an absolute path", path)
		}
	}
	return nil
}

// confine makes ready what a confined command needs. It returns nil where none
// is to be confined. A listed place that is missing is made: the command could
// not make it.
func (r *Runner) confine() (c *confinement, err error) {
	if !r.o.Confine {
		return nil, nil
	}
	if r.o.Keeper == nil {
		return nil, &unconfined{"there is no helper to do it"}
	}
	for _, path := range r.o.WritablePaths {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue // what else there is to say of it the helper will say
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, &unconfined{"a place that it may write to cannot be made: " + err.Error()}
		}
	}
	temp, err := os.MkdirTemp("", "countersign-")
	if err != nil {
		return nil, &unconfined{"it can have no temporary directory: " + err.Error()}
	}
	return &confinement{writable: append([]string{r.dir, temp}, r.o.WritablePaths...), temp: temp}, nil
}

// environ is what a confined command's environment has besides.
func (c *confinement) environ() []string {
	if c == nil {
		return nil
	}
	return []string{"TMPDIR=" + c.temp}
}

// end removes the temporary directory.
func (c *confinement) end() error {
	if c == nil {
		return nil
	}
	err := os.RemoveAll(c.temp)
	if errors.Is(err, fs.ErrPermission) {
		openUp(c.temp)
		err = os.RemoveAll(c.temp)
	}
	return err
}

// openUp makes all directories below one writable, as those of a module cache
// are not. os.Root keeps it from following a link out.
func openUp(dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(name, 0o700) // before it is read
		}
		return nil
	})
}
