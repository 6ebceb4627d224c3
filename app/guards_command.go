package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"countersign/app/config"
	"countersign/store"
	"countersign/worker/safetext"
)

// configCommand is about a change of config.toml that waits to be seen.
type configCommand struct {
	Pending configPending `cmd:"" help:"What was changed since it was last in force, with the code that puts it into force."`
	Accept  configAccept  `cmd:"" help:"Put it into force, while Countersign does not run."`
}

type configPending struct{}

type configAccept struct {
	Code string `arg:"" help:"The code that pending tells: it stands for exactly the change that was shown."`
}

// Run implements the command. It reads the database itself, so it works whether or
// not Countersign runs.
func (c *configPending) Run(g *global) error {
	p, err := g.place()
	if err != nil {
		return err
	}
	return p.withGuards(func(_ *store.Store, now guards) error { return writeChange(os.Stdout, now) })
}

func writeChange(w io.Writer, g guards) error {
	file := safetext.Line(g.place.configFile())
	switch {
	case g.before == "":
		fmt.Fprintf(w, "Nothing waits: nothing of %s was in force yet, so the first start puts it into force.\n", file)
	case !g.wait(false):
		fmt.Fprintf(w, "Nothing waits: what guards this machine in %s is as it was last in force.\n", file)
	default:
		_, err := fmt.Fprintf(w, "%s\n\n%s\n%s\nTo put exactly this into force, while Countersign does not run:  %s\n", g.what(), safetext.Block(g.diff()), doubt, g.how())
		return err
	}
	return nil
}

// Run implements the command. It takes the lock of the data directory: a tool call
// runs only below a Countersign that has it, so it cannot accept what it changed.
// What a tool call had others start, as by cron, is not told apart from the operator,
// nor could it be: unconfined, it can write the database too.
func (c *configAccept) Run(g *global) error {
	p, err := g.place()
	if err != nil {
		return err
	}
	release, err := p.open()
	if errors.As(err, new(*inUse)) {
		return fmt.Errorf("accept the change: a Countersign is running for data directory %s, and a tool call of its could ask for this. "+
			"End it, accept the change, and start it again", p.data)
	}
	if err != nil {
		return err
	}
	defer release()
	return p.withGuards(func(s *store.Store, now guards) error {
		switch {
		case !now.wait(false):
			return errors.New("no change of what guards this machine waits to be accepted")
		case !now.accepts(c.Code):
			return fmt.Errorf("the code does not belong to what %s says now; look at the change again: %s config pending", p.configFile(), p.self())
		}
		if err := now.keep(s); err != nil {
			return err
		}
		fmt.Println("The changed configuration is in force from the next start on.")
		return nil
	})
}

// withGuards calls fn with what guards this machine. Where there is no database,
// nothing was ever in force, and the store is nil.
func (p place) withGuards(fn func(*store.Store, guards) error) error {
	c, err := config.Read(p.configFile())
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if _, err := os.Stat(p.database()); errors.Is(err, fs.ErrNotExist) {
		return fn(nil, guards{place: p, now: guarding(c)})
	}
	return withHistory(context.Background(), p, func(s *store.Store) error {
		g, err := readGuards(s, p, c)
		if err != nil {
			return err
		}
		return fn(s, g)
	})
}
