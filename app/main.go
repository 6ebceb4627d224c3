// Countersign shows the tool calls of remote agent sessions to the operator of
// this machine, runs what the operator countersigned and the harness accepted,
// and reports what happened. This package is the program: command line, wiring
// and lifecycle.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	"countersign/app/config"
	_ "countersign/app/quiet" // before Fyne's packages
	"countersign/worker/safetext"

	"github.com/alecthomas/kong"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run(os.Args[1:])) }

// Exit codes.
const (
	exitFault = 1
	exitUsage = 2
)

// exitError carries the exit code of a command that ended as it should, but not
// well.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func run(args []string) int {
	log.SetOutput(os.Stderr)
	given, err := takeSecrets()
	if err != nil {
		return report(err)
	}
	var c commandLine
	parser, err := kong.New(&c,
		kong.Name("countersign"),
		kong.Description("Countersign the tool calls of remote agent sessions: see each one, approve it, and know what ran."),
		kong.Bind(&c, &c.Global, given),
	)
	if err != nil {
		return report(err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "countersign: %s\nRun \"countersign --help\" for what can be given.\n", safetext.Line(err.Error()))
		return exitUsage
	}
	return report(ctx.Run())
}

// report says on stderr what went wrong, and returns the exit code for it.
func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "countersign: "+safetext.Block(err.Error()))
	var exit *exitError
	var invalid *config.Invalid
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &invalid):
		return exitUsage
	}
	return exitFault
}
