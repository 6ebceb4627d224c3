package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"countersign/app/config"
	"countersign/store"
	"countersign/worker/policy"
	"countersign/worker/safetext"

	"github.com/aymanbagabas/go-udiff"
)

// guarding is the text of what guards this machine in a configuration: what confines
// commands, what of the environment reaches them, and where work comes from and runs.
// It has one "key = value" a line, sorted; values are quoted, so that no two
// configurations have one text. What a value looks like is its writer's choice: it
// is drawn by way of safetext.
func guarding(c config.Config) string {
	lines := []string{fmt.Sprintf("confinement.confine = %t", c.Confinement.Confine)}
	add := func(key string, values ...string) {
		for _, v := range values {
			lines = append(lines, key+" = "+strconv.Quote(v))
		}
	}
	add("confinement.writable", c.Confinement.Writable...)
	add("confinement.caches", c.Confinement.Caches...)
	add("environment.pass", c.Environment.Pass...)
	add("environment.remove", c.Environment.Remove...)
	for _, conn := range c.Connections {
		of := ofConnection + strconv.Quote(conn.Name)
		add(of+".harness", conn.Harness)
		add(of+".environment-id", conn.EnvironmentID)
		add(of+".workdir", conn.WorkDir)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

// ofConnection begins the lines that are about a connection.
const ofConnection = "connection."

// guards is what guards this machine in a configuration file: as it was last in
// force, and as the file has it now. As an error it says that the two differ and
// that the operator has not seen it, so that nothing starts.
type guards struct {
	place  place
	before string // "" where none was ever in force
	now    string
}

// readGuards compares a configuration with what was last in force.
func readGuards(s *store.Store, p place, fromFile config.Config) (guards, error) {
	before, err := s.GuardsInForce(p.configFile())
	return guards{place: p, before: before, now: guarding(fromFile)}, err
}

// wait says whether a change waits to be seen. The connections of the file are no
// part of a start that flags give the connection for.
func (g guards) wait(flagged bool) bool {
	before, now := g.before, g.now
	if flagged {
		before, now = withoutConnections(before), withoutConnections(now)
	}
	return g.before != "" && before != now
}

func withoutConnections(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, ofConnection) }), "\n")
}

// diff is the change; untrusted.
func (g guards) diff() string {
	return udiff.Unified("in force", filepath.Base(g.place.configFile()), g.before, g.now)
}

// code is what an operator types to accept exactly this.
func (g guards) code() string { return policy.Code(g.hash()) }

func (g guards) hash() string { return hashOf([]byte(g.now)) }

// accepts says whether a code that was typed is for this change.
func (g guards) accepts(code string) bool {
	code = strings.ToLower(strings.TrimSpace(code))
	return len(code) >= policy.CodeLength && strings.HasPrefix(g.hash(), code)
}

func (g guards) keep(s *store.Store) error { return s.KeepGuards(g.place.configFile(), g.now) }

// title, what and doubt say of a change what it is and what to think of it.
func (g guards) title() string { return "What guards this machine was changed" }

func (g guards) what() string { return g.title() + " in " + g.since() }

func (g guards) since() string {
	return safetext.Line(g.place.configFile()) + " since it was last in force."
}

const (
	nothingRan = "Nothing was claimed or run."
	doubt      = "A tool call could have made this change. Accept it only if you know it."
)

func (g guards) how() string { return g.place.self() + " config accept " + g.code() }

func (g guards) Error() string {
	return g.what() + " " + nothingRan + "\n\n" + g.diff() + "\n" + doubt + "\nTo put exactly this into force:  " + g.how()
}

// guard puts into force what guards this machine where nothing ever did, and ends a
// start with a change of it that the operator has not seen: what was run before
// could have made it. Where there is no connection there is nothing to guard.
func (s *station) guard() error {
	g, err := readGuards(s.store, s.place, s.fromFile)
	switch {
	case err != nil:
		return err
	case g.wait(s.flagged):
		return &exitError{exitUsage, g}
	case g.before == "" && len(s.config.Connections) > 0:
		return g.keep(s.store)
	}
	return nil
}
