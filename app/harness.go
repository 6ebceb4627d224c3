package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"countersign/app/config"
	"countersign/harness"
)

// harnessCommand serves the embedded harness.
type harnessCommand struct {
	Listen  string `help:"Address to listen on; of this machine's loopback only." default:"127.0.0.1:3000" placeholder:"HOST:PORT"`
	DB      string `name:"db" help:"Database file; harness.db in the data directory unless given." placeholder:"FILE"`
	LeaseMS int    `name:"lease-ms" help:"How long a claim is handed out for." default:"60000" placeholder:"N"`
	NoAuth  bool   `help:"Want no API key. Whoever can open the port can then have commands run."`
}

// Run implements the command.
func (c *harnessCommand) Run(g *global) error {
	log, _, err := g.logger()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil || (host != "127.0.0.1" && host != "::1" && host != "localhost") {
		return &config.Invalid{Name: "--listen", Value: c.Listen, Expected: "expected an address of the loopback, such as 127.0.0.1:3000: a harness on a network would let others have commands run"}
	}
	if err := config.IntWithin(c.LeaseMS, 200, 3_600_000); err != nil {
		return &config.Invalid{Name: "--lease-ms", Value: fmt.Sprint(c.LeaseMS), Expected: err.Error()}
	}
	db, err := c.database(g)
	if err != nil {
		return err
	}
	ctx, cancel := withSignals(context.Background())
	defer cancel(nil)
	o := harness.Options{Path: db, Lease: time.Duration(c.LeaseMS) * time.Millisecond, Log: log}
	keyFile, made := db+".key", ""
	if !c.NoAuth {
		var hash string
		if hash, made, err = keptKey(keyFile); err != nil {
			return err
		}
		o.APIKeyHashes = []string{hash}
	}
	h, err := harness.Open(ctx, o)
	if err != nil {
		return &config.Invalid{Name: "--db", Value: db, Expected: "expected a database file that can be written: " + err.Error()}
	}
	defer h.Close()
	l, err := net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &config.Invalid{Name: "--listen", Value: c.Listen, Expected: "another program has this port; end it (a harness that runs already can be used as it is), or use another, such as --listen 127.0.0.1:0 for a free one"}
	}
	if err != nil {
		return &config.Invalid{Name: "--listen", Value: c.Listen, Expected: "expected an address that can be listened on: " + err.Error()}
	}
	if made != "" { // only now: a start that fails shows no key
		if err := os.WriteFile(keyFile, []byte(o.APIKeyHashes[0]+"\n"), 0o600); err != nil {
			return fmt.Errorf("keep the hash of the API key: %w", err)
		}
	}
	fmt.Printf("Harness at http://%s\n", l.Addr())
	switch {
	case made != "":
		fmt.Printf("API key, shown only now: %s\n", made)
	case !c.NoAuth:
		fmt.Printf("API key: the one shown when it was made. For a new one end this, remove %s and start again.\n", keyFile)
	}
	return h.Serve(ctx, l)
}

// keptKey returns the hash of the API key that a file keeps. Where there is none
// a key is made. Only its hash is ever written, so that workers that have the key
// go on after a restart and nobody learns it from the file.
func keptKey(file string) (hash, made string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		made = "cs_" + rand.Text()
		return harness.HashKey(made), made, nil
	}
	if err != nil {
		return "", "", &config.Invalid{Name: "--db", Value: strings.TrimSuffix(file, ".key"), Expected: "expected a file with the hash of its API key beside it: " + err.Error()}
	}
	return strings.TrimSpace(string(text)), "", nil
}

func (c *harnessCommand) database(g *global) (string, error) {
	if c.DB != "" {
		if info, err := os.Stat(c.DB); err == nil && !info.Mode().IsRegular() {
			return "", &config.Invalid{Name: "--db", Value: c.DB, Expected: "expected the path of a file"}
		}
		return c.DB, nil
	}
	p, err := g.place()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return "", &config.Invalid{Name: "--data-dir", Value: p.data, Expected: "expected a directory that can be made and written to: " + err.Error()}
	}
	return filepath.Join(p.data, "harness.db"), nil
}
