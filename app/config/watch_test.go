package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

type change struct {
	c   Config
	err error
}

// watched starts a Watch of a file and returns what it reports.
func watched(t *testing.T, path string, last Config) <-chan change {
	t.Helper()
	changes := make(chan change, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, path, last, func(c Config, err error) { changes <- change{c, err} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t)
	})
	return changes
}

func next(t *testing.T, changes <-chan change) change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("the change was not seen")
		return change{}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace does what editors do: write beside, rename over.
func replace(t *testing.T, path, text string) {
	t.Helper()
	put(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeIsSeenAndAWrongOneKeepsTheLastGood(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	changes := watched(t, path, Default())
	put(t, path, "log-level = \"debug\"\n")
	if c := next(t, changes); c.err != nil || c.c.LogLevel.String() != "DEBUG" {
		t.Fatalf("got %+v", c)
	}
	replace(t, path, "log-level = 7\n")
	if c := next(t, changes); c.err == nil || !strings.Contains(c.err.Error(), "config.toml:1: log-level = 7") || c.c.LogLevel.String() != "DEBUG" {
		t.Fatalf("got %+v", c)
	}
	replace(t, path, "log-level = \"warn\"\n")
	if c := next(t, changes); c.err != nil || c.c.LogLevel.String() != "WARN" {
		t.Fatalf("got %+v", c)
	}
}

func TestAChangeMadeBetweenReadingAndWatchingIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	put(t, path, "log-level = \"error\"\n")
	if c := next(t, watched(t, path, Default())); c.err != nil || c.c.LogLevel.String() != "ERROR" {
		t.Fatalf("got %+v", c)
	}
}

func TestAChangeBehindALinkIsSeen(t *testing.T) {
	path, target := filepath.Join(t.TempDir(), FileName), filepath.Join(t.TempDir(), "real.toml")
	put(t, target, "")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	changes := watched(t, path, Default())
	replace(t, target, "log-level = \"warn\"\n")
	if c := next(t, changes); c.err != nil || c.c.LogLevel.String() != "WARN" {
		t.Fatalf("got %+v", c)
	}
}
