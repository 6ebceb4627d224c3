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
	f, _, why := r.openToRead(root, t.Path)
	if why != "" {
		return fileFailed("Cannot read %q: it %s.", t.Path, why)
	}
	defer f.Close()
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

// openToRead opens a regular file that is not too large to read, or says why it
// cannot be read. It never waits for another program.
func (r *Runner) openToRead(root *os.Root, path string) (f *os.File, info fs.FileInfo, why string) {
	f, info, why = openRegular(root, filepath.FromSlash(inRoot(path)))
	if why == "" && info.Size() > r.o.ReadLimit {
		f.Close()
		return nil, info, fmt.Sprintf("has %d bytes, and at most %d can be read at once", info.Size(), r.o.ReadLimit)
	}
	return f, info, why
}

// openRegular opens a regular file to be read, or says why not. info is nil only
// if nothing is known of what is there.
func openRegular(root *os.Root, name string) (f *os.File, info fs.FileInfo, why string) {
	// Before it is opened, since to open a device can have an effect; and again
	// after, since it may have been swapped.
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, explain(err)
	}
	if what := notRegular(info.Mode()); what != "" {
		return nil, info, "is " + what
	}
	f, err = root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, info, explain(err)
	}
	info, err = f.Stat()
	if err != nil {
		why = explain(err)
	} else if what := notRegular(info.Mode()); what != "" {
		why = "is " + what
	}
	if why != "" {
		f.Close()
		return nil, info, why
	}
	return f, info, ""
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
	d := findDestination(root, t.Path)
	if d.why != "" {
		return fileFailed("Cannot write %q: it %s. Nothing was written.", t.Path, d.why)
	}
	if d.old == nil {
		if err := root.MkdirAll(dirOf(d.name), 0o777); err != nil {
			return fileFailed("Cannot write %q: its directory %s. Nothing was written.", t.Path, explain(err))
		}
	}
	if err := replace(root, d.name, t.Content, d.old); err != nil {
		return fileFailed("Cannot write %q: it %s. Nothing was written.", t.Path, explain(err))
	}
	o := fileDone(encode(wire.OK{OK: true}))
	if n := linkCount(d.old); n > 1 {
		o.note(fmt.Sprintf("The file had %d names (hard links); the others keep the old content.", n))
	}
	return o
}

// destination is what a write meets.
type destination struct {
	name string      // of the file, where its links lead
	old  fs.FileInfo // nil if there is none
	why  string      // why it cannot be written, if that is known beforehand
}

// findDestination looks at what is at a path, without effects.
func findDestination(root *os.Root, path string) (d destination) {
	d.name = inRoot(path)
	if d.name == "." || strings.HasSuffix(d.name, "/") {
		d.why = "is a directory"
		return d
	}
	name, err := followLinks(root, filepath.FromSlash(d.name))
	if err != nil {
		d.why = explain(err)
		return d
	}
	d.name = name
	old, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d
	case err != nil:
		d.why = explain(err)
		return d
	case !old.Mode().IsRegular():
		d.why = "is " + notRegular(old.Mode())
	default:
		if err := mayWrite(root, name); err != nil {
			d.why = explain(err)
		}
	}
	d.old = old
	return d
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
