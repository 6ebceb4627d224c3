package main

import (
	"context"
	"log/slog"
	"strings"
)

// libraryLog takes what the window libraries print on the standard log into
// ours. They tell of many things that hurt nobody, such as a missing tray or
// preferences that were never written; only that there can be no window is worth
// an operator's attention. The standard log does not use it concurrently.
type libraryLog struct {
	log   *slog.Logger
	level slog.Level // of the message that a line continues
}

// Write implements io.Writer. A message of Fyne's has several lines, each written
// on its own.
func (l *libraryLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "Cause:") && !strings.HasPrefix(text, "At:") {
		l.level = slog.LevelDebug
		if strings.Contains(text, "window creation error") {
			l.level = slog.LevelError
		}
	}
	l.log.Log(context.Background(), l.level, text)
	return len(line), nil
}
