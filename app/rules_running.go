package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"countersign/app/control"
	"countersign/assets"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

type rulesPending struct{}

type rulesAccept struct {
	Code string `arg:"" help:"The code that pending tells: it stands for exactly the change that was shown."`
}

type rulesShipped struct {
	Set string `arg:"" enum:"starter,developer" help:"starter: looking around. developer: tests and builds, which run what is in the work directory."`
}

// Run implements the command.
func (c *rulesShipped) Run() error {
	text, err := assets.Rules(c.Set)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

type rulesGrants struct {
	JSON bool `help:"Print them as JSON."`
}

type rulesRevoke struct {
	Grant string `arg:"" help:"The grant, as grants lists it."`
}

// Run implements the command.
func (c *rulesPending) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		state, err := client.Rules(ctx)
		if err != nil {
			return err
		}
		return writePending(os.Stdout, state, g.self())
	})
}

// writePending shows a change of the rule file, and how it is put into force.
func writePending(w io.Writer, state policy.RulesState, self string) error {
	if state.Broken != "" {
		return errors.New("the rule file cannot be used; " + inForceWords(state) + " " + safetext.Block(state.Broken))
	}
	if state.Pending == nil {
		fmt.Fprintf(w, "Nothing waits: %s is as it was when it came into force.\n", safetext.Line(state.File))
		return nil
	}
	fmt.Fprintf(w, "%s was changed outside Countersign:\n\n%s\n", safetext.Line(state.File), safetext.Block(state.Pending.Diff))
	fmt.Fprintf(w, "To put exactly this into force:  %s rules accept %s\n", self, ruleCode(state))
	return nil
}

// ruleCode is what an operator types to accept exactly the change that waits.
func ruleCode(state policy.RulesState) string {
	return policy.Code(state.Pending.Hash)
}

// Run implements the command.
func (c *rulesAccept) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if err := client.AcceptRules(ctx, c.Code); err != nil {
			return fmt.Errorf("accept the rules: %w", err)
		}
		fmt.Println("The changed rules are in force. What waits was judged by them.")
		return nil
	})
}

// Run implements the command.
func (c *rulesGrants) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		grants, err := client.Grants(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeASCII(os.Stdout, grants)
		}
		return writeGrants(os.Stdout, grants)
	})
}

func writeGrants(w io.Writer, grants []policy.Grant) error {
	if len(grants) == 0 {
		fmt.Fprintln(w, "Nothing is approved for a session or for a while.")
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GRANT\tCONNECTION\tSESSION\tGIVEN\tUNTIL\tUSED\tFOR")
	for _, g := range grants {
		until := "its session ends"
		if !g.Until.IsZero() {
			until = g.Until.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", g.ID, safetext.Line(g.Connection), safetext.Clip(g.Session, 40),
			g.Made.Local().Format(time.DateTime), until, g.Matched, safetext.Clip(g.Text, 80))
	}
	return table.Flush()
}

// Run implements the command.
func (c *rulesRevoke) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if err := client.Revoke(ctx, c.Grant); err != nil {
			return fmt.Errorf("revoke %s: %w", c.Grant, err)
		}
		fmt.Printf("Ended %s. What is asked for from now on waits for you.\n", safetext.Line(c.Grant))
		return nil
	})
}
