package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"countersign/app/config"
	"countersign/store"
)

// historyVerify checks the chain of the journal.
type historyVerify struct {
	Head string `help:"A head that an earlier check printed: it has to be in the journal still." placeholder:"HASH"`
}

// Run implements the command.
func (c *historyVerify) Run(g *global) error {
	head := strings.ToLower(strings.TrimSpace(c.Head))
	if head != "" && len(head) != 64 {
		return &config.Invalid{Name: "--head", Value: c.Head, Expected: "expected the 64 digits that an earlier check printed"}
	}
	p, err := g.place()
	if err != nil {
		return err
	}
	var v store.Verification
	err = withHistory(context.Background(), p, func(s *store.Store) (err error) {
		v, err = s.Verify(context.Background(), head)
		return err
	})
	if err != nil {
		return fmt.Errorf("check the journal: %w", err)
	}
	return writeVerification(os.Stdout, v)
}

func writeVerification(w io.Writer, v store.Verification) error {
	fmt.Fprintf(w, "%d entries of %d items follow one another", v.Entries, v.Holds)
	if v.Older > 0 {
		fmt.Fprintf(w, "; %d are older than the chain and cannot be checked", v.Older)
	}
	fmt.Fprintln(w, ".")
	for _, problem := range v.Problems {
		fmt.Fprintln(w, "  "+problem)
	}
	if v.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", v.More)
	}
	if v.Head != "" {
		fmt.Fprintf(w, "head %s\nNote it elsewhere: with --head it shows later that nothing before it was taken away.\n", v.Head)
	}
	switch {
	case len(v.Problems) > 0:
		return errors.New("the journal was changed from outside, or is damaged; what is listed does not fit")
	case !v.HasHead:
		return errors.New("the head that was given is not in the journal: entries were taken away, or all was written anew")
	}
	return nil
}
