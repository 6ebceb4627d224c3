package main

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

func TestTheLibrariesAreHeardOnlyWhenNoWindowCanBeMade(t *testing.T) {
	var heard bytes.Buffer
	std := log.New(&libraryLog{log: slog.New(slog.NewTextHandler(&heard, nil))}, "", 0)
	std.Println("Fyne error: ", "Preferences load error:")
	std.Println("  Cause:", "EOF")
	std.Println("systray error: failed to register")
	if heard.Len() > 0 {
		t.Errorf("heard %s", heard.String())
	}
	std.Println("Fyne error: ", "window creation error")
	std.Println("  Cause:", "APIUnavailable")
	if s := heard.String(); strings.Count(s, "level=ERROR") != 2 || !strings.Contains(s, "APIUnavailable") {
		t.Errorf("heard %q", s)
	}
}
