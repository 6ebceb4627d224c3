package config

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be left alone before it is read: editors
// write a file in several steps.
const settle = 100 * time.Millisecond

// Watch calls changed for every change of the file at path, until ctx ends:
// with the new configuration, or with the last good one and the error that the
// new one was refused for. Calls come one at a time from Watch's own goroutine,
// that of the caller. last is the configuration in force, as Read returned it.
func Watch(ctx context.Context, path string, last Config, changed func(Config, error)) error {
	return WatchFile(ctx, path, func() {
		next, err := Read(path)
		if err == nil && reflect.DeepEqual(next, last) {
			return
		}
		if err == nil {
			last = next
		}
		changed(last, err)
	})
}

// WatchFile calls changed once at the beginning, because the file may have changed
// since it was read, and then whenever its text is another, until ctx ends. Calls
// come one at a time from the caller's goroutine.
//
// The directory is watched, not the file: editors replace the file by renaming
// another over it. Where the file is a link, the directory of its target is
// watched too.
func WatchFile(ctx context.Context, path string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(target) != filepath.Dir(path) {
		// Without it a change behind the link is seen at the next start only.
		_ = w.Add(filepath.Dir(target))
	}
	var known []byte
	due := time.After(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-w.Events:
			if !open {
				return nil
			}
			due = time.After(settle)
		case <-w.Errors: // an overflow: look at the file
			due = time.After(settle)
		case <-due:
			due = nil
			text, err := readSmall(path)
			if err == nil && known != nil && bytes.Equal(text, known) {
				continue
			}
			known = text
			changed()
		}
	}
}
