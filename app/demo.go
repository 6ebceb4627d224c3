package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"countersign/app/config"
	"countersign/app/demo"
	"countersign/harness"
	"countersign/worker/api"

	"github.com/zalando/go-keyring"
)

// demoCommand is the desktop app on an embedded harness with sample sessions.
type demoCommand struct {
	running
}

// demoLease is short, so that a lost lease is noticed while one watches.
const demoLease = 15 * time.Second

// Run implements the command.
func (c *demoCommand) Run(g *global) (err error) {
	a := assembly{grace: c.Grace, fromFile: config.Default()}
	if a.approve, err = c.check(); err != nil {
		return err
	}
	if a.log, a.level, err = g.logger(); err != nil {
		return err
	}
	a.levelGiven = g.LogLevel != ""
	if a.place, err = g.place(); err != nil {
		return err
	}
	work := filepath.Join(a.place.data, "demo-work")
	a.place = place{data: filepath.Join(a.place.data, "demo"), config: filepath.Join(a.place.data, "demo", "config")}
	release, err := a.place.open()
	var other *inUse
	if errors.As(err, &other) {
		return raiseFirst(context.Background(), a.place.data)
	}
	if err != nil {
		return err
	}
	defer release()
	if !hasDisplay() {
		return noDisplay{}
	}
	return c.play(a, work)
}

// play starts afresh: the journal of the last demo is of no use to this one,
// whose harness is another, and so is what its sessions have written.
func (c *demoCommand) play(a assembly, work string) error {
	if err := a.place.clear(); err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil { // a demo that was killed left it
		return fmt.Errorf("clear the last demo: %w", err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return fmt.Errorf("make the demo's work directory: %w", err)
	}
	defer os.RemoveAll(work)
	if err := demo.CopyProject(work); err != nil {
		return fmt.Errorf("copy the sample project: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the demo's harness: %w", err)
	}
	origin, key := "http://"+l.Addr().String(), "cs_"+rand.Text()
	h, err := harness.Open(context.Background(), harness.Options{
		Path: filepath.Join(a.place.data, "harness.db"), Lease: demoLease, APIKeys: []string{key}, Log: a.log,
	})
	if err != nil {
		l.Close()
		return err
	}
	defer h.Close()
	serving, stopServing := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.Serve(serving, l) }()
	defer func() { stopServing(); <-served }() // after the window: results are delivered to it

	conn := config.DefaultConnection()
	conn.Name, conn.Harness, conn.EnvironmentID = "demo", origin, demo.Environment
	conn.WorkDir, conn.Lease, conn.Interval = work, demoLease, 250*time.Millisecond
	a.config = a.fromFile
	a.config.Connections = []config.Connection{conn}
	a.given = config.Credentials{APIKey: key}
	a.keyring = func(string, string) (string, error) { return "", keyring.ErrNotFound }
	other, err := api.New(api.Options{Origin: origin, APIKey: key})
	if err != nil {
		return err
	}
	sessions := demo.Rival{ID: "another machine", GiveAway: h.GiveAway, Complete: other.Complete}
	hello := "This is the demo: sample sessions ask for work on a small project in " + work + ". Nothing runs before you approve it."
	return openWindow(a, " – demo", hello, func(ctx context.Context) {
		demo.Play(ctx, harness.NewClient(origin, key, nil), sessions, a.log)
	})
}

// clear removes what an earlier demo left.
func (p place) clear() error {
	for _, name := range []string{p.database(), filepath.Join(p.data, "harness.db")} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(name + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("clear the last demo: %w", err)
			}
		}
	}
	if err := os.Remove(p.rulesFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clear the last demo: %w", err)
	}
	if err := os.RemoveAll(p.outputs()); err != nil {
		return fmt.Errorf("clear the last demo: %w", err)
	}
	return os.MkdirAll(p.outputs(), 0o700)
}
