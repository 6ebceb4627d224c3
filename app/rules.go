package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/app/config"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"

	"github.com/BurntSushi/toml"
)

// rulesCommand is about rules: whether a file can be used, what it says of an item and
// why, what could be added to it; and what is in force in the Countersign that
// runs, which these commands ask: pending, accept, grants, revoke.
type rulesCommand struct {
	File       string `name:"rules" help:"The rule file; rules.toml in the configuration directory unless given." placeholder:"FILE"`
	Workdir    string `help:"The work directory that the rules are read for; the connection's unless given, and without a connection the current one." placeholder:"DIR"`
	Connection string `help:"The connection that the rules are read for, where config.toml has several." placeholder:"NAME"`

	Check   rulesCheck   `cmd:"" help:"Load a rule file with its own tests: print what it holds, or each mistake with its line."`
	Explain rulesExplain `cmd:"" help:"What the rules say of an item, part by part, and why. Grants and --approve are not looked at. Exit code 0 is allow, 10 ask, 11 deny."`
	Pending rulesPending `cmd:"" help:"What was changed in the rule file outside the running Countersign, with the code that puts it into force. Like accept, grants and revoke it asks the one that runs."`
	Accept  rulesAccept  `cmd:"" help:"Put a changed rule file into force."`
	Grants  rulesGrants  `cmd:"" help:"What was approved for a session or for a while, and is still in force."`
	Revoke  rulesRevoke  `cmd:"" help:"End a grant."`
	Shipped rulesShipped `cmd:"" help:"Print a set of rules to begin with; none of them is in force unless you add it."`
	Suggest rulesSuggest `cmd:"" help:"Rules for what was approved by hand again and again, to be looked at and added."`
}

type rulesCheck struct{}

// Run implements the command.
func (c *rulesCheck) Run(g *global, all *commandLine) error {
	return all.Rules.check(g, os.Stdout, os.Stderr)
}

// reading is what the commands about rules begin with: which file, and for
// which place.
type reading struct {
	place  place
	config config.Config
	file   string
	named  bool // on the command line: then it has to be there
	spot
	running atWork
	self    string // how this program is called for the running one
	log     *slog.Logger
}

// spot is a work directory, and the connection it belongs to.
type spot struct {
	connection string // "" for none: rules for one connection do not apply
	root       string // canonical
	why        string // in words, why it is this one
}

// begin reads the flags and the configuration. Where the connection matters and
// there are several, one has to be named.
func (c *rulesCommand) begin(g *global, matters bool) (r reading, err error) {
	if r.log, _, err = g.logger(); err != nil {
		return r, err
	}
	if r.place, err = g.place(); err != nil {
		return r, err
	}
	if r.config, err = config.Read(r.place.configFile()); err != nil {
		return r, &exitError{exitUsage, err}
	}
	r.running, r.self = askRunning(context.Background(), r.place.data), g.self()
	r.file, r.named = r.place.rulesFile(), c.File != ""
	switch {
	case r.running.rules != nil && !r.named:
		r.file = r.running.rules.File // it may have been named at the start
	case r.named:
		if r.file, err = filepath.Abs(c.File); err != nil {
			return r, &config.Invalid{Name: "--rules", Value: c.File, Expected: "expected the path of a file"}
		}
	}
	r.spot, err = c.spot(r.known(), matters)
	return r, err
}

// connections are the ones that are known.
type connections struct {
	list []config.Connection
	of   string // whose they are
}

// known are the configured connections or, where there are none, those of the
// Countersign that runs.
func (r reading) known() connections {
	if len(r.config.Connections) > 0 {
		return connections{r.config.Connections, "config.toml"}
	}
	return connections{r.running.connections, "the Countersign that runs"}
}

// unnamed is the error where one of several has to be named.
func (c connections) unnamed() *config.Invalid {
	return &config.Invalid{Name: "--connection", Expected: "missing, and " + c.of + " has several connections; expected one of " + connectionNames(c.list)}
}

// meant is the one that was named, or the only one there is. A name is free where
// none is known.
func (c connections) meant(name string) (*config.Connection, error) {
	if name == "" {
		if len(c.list) == 1 {
			return &c.list[0], nil
		}
		return nil, nil
	}
	i := slices.IndexFunc(c.list, func(k config.Connection) bool { return k.Name == name })
	switch {
	case i >= 0:
		return &c.list[i], nil
	case len(c.list) > 0:
		return nil, &config.Invalid{Name: "--connection", Value: fmt.Sprintf("%q", name), Expected: "expected one of " + connectionNames(c.list) + ", which " + c.of + " has"}
	}
	return nil, nil
}

// spot finds the place that is meant.
func (c *rulesCommand) spot(known connections, matters bool) (s spot, err error) {
	conn, err := known.meant(c.Connection)
	if err != nil {
		return s, err
	}
	s.connection = c.Connection
	dir, name := "", "--connection"
	switch {
	case c.Workdir != "":
		dir, name, s.why = c.Workdir, "--workdir", "as given"
	case conn != nil:
		dir, name, s.why = conn.WorkDir, "the work directory of "+conn.Name, "of connection "+conn.Name
	case len(known.list) > 1 && matters:
		bad := known.unnamed()
		bad.Expected += ", or --workdir"
		return s, bad
	default:
		dir, name, s.why = ".", "--workdir", "the current directory; --workdir names another"
	}
	if conn != nil {
		s.connection = conn.Name
	}
	if s.root, err = workRoot(dir); err != nil {
		return s, &config.Invalid{Name: name, Value: fmt.Sprintf("%q", dir), Expected: err.Error()}
	}
	return s, nil
}

func connectionNames(known []config.Connection) string {
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = k.Name
	}
	return strings.Join(list, ", ")
}

// rules reads the rule file. With the login environment the programs of the
// rules are those that the running Countersign would find.
func (r reading) rules(login bool) (*policy.Rules, policy.Context, bool, error) {
	env := os.Environ()
	if login {
		began := time.Now()
		var err error
		if env, err = execute.CaptureLoginEnv(context.Background(), 5*time.Second); err != nil {
			r.log.Warn("the login environment could not be had; programs are looked for with the PATH of this process", "error", err)
		}
		r.log.Debug("the login environment was captured, as for commands", "took", time.Since(began), "PATH", givenVar(env, nil, "PATH"))
	}
	ctx := policyContext(r.place, r.config, r.file, r.root, env)
	rules, found, err := readRules(r.file, r.named, ctx)
	return rules, ctx, found, err
}

// check loads the rules with their tests and says what came of it. Tests look at
// neither files nor programs, so neither the login environment nor one of several
// connections matters.
func (c *rulesCommand) check(g *global, w, mistakes io.Writer) error {
	r, err := c.begin(g, false)
	if err != nil {
		return err
	}
	r.named = true
	rules, _, _, err := r.rules(false)
	if errors.Is(err, fs.ErrNotExist) {
		if yet := r.notInForce(context.Background(), ""); yet != "" {
			return fmt.Errorf("there is no %s; %s", r.file, yet)
		}
		return fmt.Errorf("there is no %s; without rules everything is asked for, but what is always denied", r.file)
	}
	if err != nil {
		return unusable(mistakes, r.file, err)
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	var held outline
	if _, err := toml.Decode(string(text), &held); err != nil {
		return fmt.Errorf("read the rules: %w", err) // it was changed at this moment
	}
	return held.write(w, rules, r.notInForce(context.Background(), rules.Hash()))
}

// unusable prints each mistake of a rule file on a line of its own, as compilers
// do, and sums up.
func unusable(w io.Writer, file string, err error) error {
	list := mistakesIn(err)
	if len(list) == 0 {
		return err
	}
	for _, bad := range list {
		fmt.Fprintln(w, safetext.Line(bad.Error()))
	}
	return fmt.Errorf("%s: %s; none of its rules can be used", file, counted(len(list), "mistake"))
}

func mistakesIn(err error) (list []*policy.Invalid) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, mistakesIn(e)...)
		}
		return list
	}
	var bad *policy.Invalid
	if errors.As(err, &bad) {
		return []*policy.Invalid{bad}
	}
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// outline is what check tells of a rule file that can be used.
type outline struct {
	Rules []outlined `toml:"rule"`
	Tests []any      `toml:"test"`
}

type outlined struct {
	Name       string    `toml:"name"`
	Kind       any       `toml:"kind"` // these are strings or lists of them
	Allow      any       `toml:"allow"`
	Deny       any       `toml:"deny"`
	Ask        any       `toml:"ask"`
	AllowPaths any       `toml:"allow-paths"`
	DenyPaths  any       `toml:"deny-paths"`
	RunsCode   bool      `toml:"runs-code"`
	Connection string    `toml:"connection"`
	Session    string    `toml:"session"`
	Cwd        string    `toml:"cwd"`
	Until      time.Time `toml:"until"`
}

func (o outline) write(w io.Writer, rules *policy.Rules, notInForce string) error {
	fmt.Fprintf(w, "%s can be used: %s, %s passed\n", safetext.Line(rules.File()), counted(len(o.Rules), "rule"), counted(len(o.Tests), "test"))
	fmt.Fprintf(w, "SHA-256 %s\n", rules.Hash())
	if notInForce != "" {
		fmt.Fprintf(w, "But %s\n", safetext.Line(notInForce))
	}
	if len(o.Rules) == 0 {
		fmt.Fprintln(w, "It has no rules: everything is asked for.")
		return nil
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tKIND\tSAYS\tONLY")
	for _, rule := range o.Rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", safetext.Line(rule.Name), safetext.Line(strings.Join(stringsIn(rule.Kind), ", ")), rule.says(), safetext.Line(rule.only(time.Now())))
	}
	return t.Flush()
}

// says counts what a rule holds.
func (o outlined) says() string {
	var list []string
	for _, part := range []struct {
		what  string
		texts any
	}{{"allow", o.Allow}, {"deny", o.Deny}, {"ask", o.Ask}, {"allow-paths", o.AllowPaths}, {"deny-paths", o.DenyPaths}} {
		if n := len(stringsIn(part.texts)); n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, part.what))
		}
	}
	if o.RunsCode {
		list = append(list, "runs code")
	}
	return strings.Join(list, ", ")
}

// only says what a rule is bound to.
func (o outlined) only(now time.Time) string {
	var list []string
	for _, bound := range []struct{ what, to string }{{"connection", o.Connection}, {"session", o.Session}, {"in", o.Cwd}} {
		if bound.to != "" {
			list = append(list, bound.what+" "+bound.to)
		}
	}
	switch {
	case o.Until.IsZero():
	case now.Before(o.Until):
		list = append(list, "until "+o.Until.Local().Format(time.DateTime))
	default:
		list = append(list, "over since "+o.Until.Local().Format(time.DateTime))
	}
	return strings.Join(list, ", ")
}

// stringsIn reads a string or a list of strings.
func stringsIn(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
