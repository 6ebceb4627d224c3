package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
	var keys []string
	if !c.NoAuth {
		keys = []string{"cs_" + rand.Text()}
	}
	h, err := harness.Open(ctx, harness.Options{Path: db, Lease: time.Duration(c.LeaseMS) * time.Millisecond, APIKeys: keys, Log: log})
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	fmt.Printf("Harness at http://%s\n", l.Addr())
	if len(keys) > 0 {
		fmt.Printf("API key, shown only now: %s\n", keys[0])
	}
	return h.Serve(ctx, l)
}

func (c *harnessCommand) database(g *global) (string, error) {
	if c.DB != "" {
		return c.DB, nil
	}
	p, err := g.place()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return "", fmt.Errorf("make the directory %s: %w", p.data, err)
	}
	return filepath.Join(p.data, "harness.db"), nil
}
