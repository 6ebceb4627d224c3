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
	"slices"
	"unicode/utf8"

	"countersign/app/config"
	_ "countersign/app/quiet" // before Fyne's packages
	"countersign/worker/execute"
	"countersign/worker/safetext"
)

// version is set by the linker.
var version = "unknown"

func main() {
	execute.KeeperMain()
	os.Exit(run(os.Args[1:]))
}

// Exit codes.
const (
	exitFault = 1
	exitUsage = 2
)

// exitError carries the exit code of a command that ended as it should, but not
// well. Without an err its code is an answer, and all is said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

func run(args []string) int {
	log.SetOutput(os.Stderr)
	given, err := takeSecrets()
	if err != nil {
		return report(err)
	}
	if i := slices.IndexFunc(args, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 {
		// The parser would change it unseen.
		return report(&config.Invalid{Name: "argument", Value: fmt.Sprintf("%q", args[i]), Expected: "expected text in UTF-8"})
	}
	var c commandLine
	parser, err := newParser(&c, given)
	if err != nil {
		return report(err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "countersign: %s\nRun \"%s --help\" for what can be given.\n", safetext.Line(usage(err, args)), helpOf(err))
		return exitUsage
	}
	return report(ctx.Run())
}

// report says on stderr what went wrong, and returns the exit code for it.
func report(err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return exit.code
	}
	fmt.Fprintln(os.Stderr, "countersign: "+safetext.Block(err.Error()))
	var invalid *config.Invalid
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &invalid):
		return exitUsage
	}
	return exitFault
}
