package execute

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/worker/api/wire"
)

// tempPrefix begins the names of files that are not finished.
const tempPrefix = ".countersign-"

// maxLinks is how many links one path may lead through, as on Linux.
const maxLinks = 40

// fileFailed is the outcome of a file operation that was not done.
func fileFailed(format string, args ...any) Outcome {
	text := fmt.Sprintf(format, args...)
	return Outcome{How: FileFailed, Failed: true, Reason: text, Result: encode(wire.Failure{Message: text})}
}

func fileDone(result json.RawMessage) Outcome { return Outcome{How: Ended, Result: result} }

// read returns a regular file's text.
func (r *Runner) read(root *os.Root, t Task) Outcome {
	name := filepath.FromSlash(inRoot(t.Path))
	// Before it is opened, since to open a device can have an effect; and again
	// after, since it may have been swapped.
	info, err := root.Stat(name)
	if err != nil {
		return fileFailed("Cannot read %q: it %s.", t.Path, explain(err))
	}
	if what := notRegular(info.Mode()); what != "" {
		return fileFailed("Cannot read %q: it is %s.", t.Path, what)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return fileFailed("Cannot read %q: it %s.", t.Path, explain(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return fileFailed("Cannot read %q: it %s.", t.Path, explain(err))
	}
	if what := notRegular(info.Mode()); what != "" {
		return fileFailed("Cannot read %q: it is %s.", t.Path, what)
	}
	if info.Size() > r.o.ReadLimit {
		return fileFailed("Cannot read %q: it has %d bytes, and at most %d can be read at once.", t.Path, info.Size(), r.o.ReadLimit)
	}
	data, err := readAtMost(f, r.o.ReadLimit)
	if err != nil && int64(len(data)) > r.o.ReadLimit {
		return fileFailed("Cannot read %q: it has more than the %d bytes that can be read at once.", t.Path, r.o.ReadLimit)
	}
	if err != nil {
		return fileFailed("Cannot read %q: it %s.", t.Path, explain(err))
	}
	o := fileDone(encode(each(data)))
	o.Head = validPrefix(data, headLimit)
	return o
}

// notRegular says what a file is that is not a regular one, else "".
func notRegular(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe, not a regular file"
	case mode&fs.ModeSocket != 0:
		return "a socket, not a regular file"
	case mode&fs.ModeDevice != 0:
		return "a device, not a regular file"
	}
	return "not a regular file"
}

// write replaces or makes a file: wholly or not at all.
func (r *Runner) write(root *os.Root, t Task) Outcome {
	failed := func(why string) Outcome {
		return fileFailed("Cannot write %q: it %s. Nothing was written.", t.Path, why)
	}
	name := inRoot(t.Path)
	if name == "." || strings.HasSuffix(name, "/") {
		return failed("is a directory")
	}
	name, err := followLinks(root, filepath.FromSlash(name))
	if err != nil {
		return failed(explain(err))
	}
	old, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
		if err := root.MkdirAll(dirOf(name), 0o777); err != nil {
			return fileFailed("Cannot write %q: its directory %s. Nothing was written.", t.Path, explain(err))
		}
	case err != nil:
		return failed(explain(err))
	case !old.Mode().IsRegular():
		return failed("is " + notRegular(old.Mode()))
	default:
		if err := mayWrite(root, name); err != nil {
			return failed(explain(err))
		}
	}
	if err := replace(root, name, t.Content, old); err != nil {
		return failed(explain(err))
	}
	return fileDone(encode(wire.OK{OK: true}))
}

// followLinks returns the name of the file that a link stands for, so that the
// link stays when the file is replaced. Whether it lies inside is for os.Root
// to judge, at every use.
func followLinks(root *os.Root, name string) (string, error) {
	for range maxLinks {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		to, err := root.Readlink(name)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			return "", errOutside
		}
		name = dirOf(name) + string(filepath.Separator) + to
	}
	return "", errors.New("too many links")
}

// dirOf is filepath.Dir without its cleaning: ".." after a link does not mean
// what it spells.
func dirOf(name string) string {
	for i := len(name) - 1; i > 0; i-- {
		if os.IsPathSeparator(name[i]) {
			return name[:i]
		}
	}
	return "."
}

// mayWrite fails where the file itself is write-protected, which a rename over
// it would not notice.
func mayWrite(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|openNonblock, 0)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // a program that runs now, for one, may be replaced
}

// replace writes content to a temporary file beside the file and puts it in its
// place, with its mode. After an error the file is as it was.
func replace(root *os.Root, name, content string, old fs.FileInfo) (err error) {
	dir := dirOf(name)
	temp := dir + string(filepath.Separator) + tempPrefix + rand.Text() + ".tmp"
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = root.Remove(temp)
		}
	}()
	if old != nil {
		if err = f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err = f.WriteString(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = root.Rename(temp, name); err != nil {
		return err
	}
	if d, openErr := root.Open(dir); openErr == nil {
		_ = syncDir(d) // it is written; not every file system can sync a directory
		d.Close()
	}
	return nil
}
