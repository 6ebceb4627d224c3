package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"countersign/app/config"
	"countersign/worker/api"
	"countersign/worker/policy"
)

// workerCommand runs the engine without a window.
type workerCommand struct {
	running
	Harness         string         `help:"Address of the harness, such as http://127.0.0.1:3000. Without it the connections of config.toml are used." placeholder:"URL"`
	Workdir         string         `help:"Directory that commands run in." placeholder:"DIR"`
	EnvironmentID   string         `help:"Environment to claim for." placeholder:"E"`
	EnvironmentKey  string         `help:"Its key. Others on this machine can see it here: better give MANAGED_AGENTS_ENVIRONMENT_KEY." placeholder:"K"`
	APIKey          string         `name:"api-key" help:"API key. Others on this machine can see it here: better give MANAGED_AGENTS_API_KEY." placeholder:"K"`
	WorkerID        *string        `help:"Instead of the one kept in the data directory. It must be unique: two workers of one id run work twice." placeholder:"W"`
	Once            bool           `help:"Claim one item if there is one, see it through, and end."`
	IntervalMS      *int           `name:"interval-ms" help:"Time between polls; 250 while there is work and 1000 when idle, unless given." placeholder:"N"`
	LeaseMS         *int           `name:"lease-ms" help:"The harness's lease window; 60000 unless given." placeholder:"N"`
	MaxHeld         *int           `help:"How many items may wait here; 8 unless given." placeholder:"N"`
	MaxRunning      *int           `help:"How many run at once; 2 unless given." placeholder:"N"`
	Rules           string         `help:"Rule file, instead of rules.toml in the configuration directory. Naming it puts it into force." placeholder:"FILE"`
	DecisionTimeout *time.Duration `help:"How long an item waits for a decision, from its creation, but a minute at least here; 4m unless given." placeholder:"D"`
}

// Run implements the command.
func (c *workerCommand) Run(g *global, given config.Credentials) error {
	a, err := c.assemble(g, given)
	if err != nil {
		return err
	}
	release, err := a.place.open()
	if err != nil {
		return err
	}
	defer release()
	a.warnOfStrayKeys()
	ctx, cancel := withSignals(context.Background())
	defer cancel(nil)
	s, err := openStation(ctx, a)
	if err != nil {
		return err
	}
	defer s.close()
	if a.workerID != "" {
		s.log.Warn("--worker-id is given: it must be unique; two workers of one id run work twice", "worker-id", a.workerID)
	}
	if a.approve == policy.ModeAll {
		s.log.Warn("--approve all is on: everything that the harness accepts runs unasked, but what a rule denies")
	} else {
		s.log.Info(`what no rule decides waits for "countersign approve": "countersign ps" lists it, "countersign show ID" tells the code`, "data-dir", a.place.data)
	}
	err = s.run(ctx)
	if ctx.Err() != nil && err == nil {
		s.log.Info("ended, as it was told to; what waited stays in the journal for the next start")
	}
	return err
}

// assemble checks what was given, before anything is made or claimed.
func (c *workerCommand) assemble(g *global, given config.Credentials) (a assembly, err error) {
	a = assembly{once: c.Once, grace: c.Grace, given: given}
	if a.approve, err = c.check(); err != nil {
		return a, err
	}
	if c.WorkerID != nil {
		if err := config.OneLine(*c.WorkerID, "a worker id", 256); err != nil {
			return a, &config.Invalid{Name: "--worker-id", Value: fmt.Sprintf("%q", *c.WorkerID), Expected: err.Error()}
		}
		a.workerID = *c.WorkerID
	}
	if err := a.fromGlobal(g); err != nil {
		return a, err
	}
	if c.Rules != "" {
		if a.rulesFile, err = filepath.Abs(c.Rules); err != nil {
			return a, &config.Invalid{Name: "--rules", Value: c.Rules, Expected: "expected the path of a file"}
		}
		if _, err := os.Stat(a.rulesFile); err != nil {
			return a, &config.Invalid{Name: "--rules", Value: c.Rules, Expected: "expected a rule file that can be read: " + err.Error()}
		}
	}
	if c.EnvironmentKey != "" {
		a.given.EnvironmentKey = c.EnvironmentKey
	}
	if c.APIKey != "" {
		a.given.APIKey = c.APIKey
	}
	if c.Harness != "" {
		conn, err := c.connection()
		if err != nil {
			return a, err
		}
		a.config.Connections, a.flagged = []config.Connection{conn}, true
	} else if err := c.onlyWithHarness(); err != nil {
		return a, err
	}
	switch n := len(a.config.Connections); {
	case n == 0:
		return a, &config.Invalid{Name: "--harness", Expected: fmt.Sprintf("missing, and %s has no [[connection]]; expected the address of a harness", a.place.configFile())}
	case n > 1 && (a.workerID != "" || c.Once):
		return a, &config.Invalid{Name: "--worker-id and --once", Expected: "expected with one connection only; config.toml has several"}
	}
	return a, a.checkWorkDirs()
}

// connection is the one that the flags describe.
func (c *workerCommand) connection() (config.Connection, error) {
	conn := config.DefaultConnection()
	origin, err := api.ParseOrigin(c.Harness)
	if err != nil {
		return conn, &config.Invalid{Name: "--harness", Value: c.Harness, Expected: err.Error()}
	}
	if c.Workdir == "" {
		return conn, &config.Invalid{Name: "--workdir", Expected: "missing; expected the directory that commands run in"}
	}
	conn.Harness, conn.WorkDir, conn.EnvironmentID = origin, c.Workdir, c.EnvironmentID
	if u, err := url.Parse(origin); err == nil {
		conn.Name = u.Host
	}
	if c.EnvironmentID != "" {
		if err := config.OneLine(c.EnvironmentID, "an environment id", 256); err != nil {
			return conn, &config.Invalid{Name: "--environment-id", Value: fmt.Sprintf("%q", c.EnvironmentID), Expected: err.Error()}
		}
	}
	if c.IntervalMS != nil && *c.IntervalMS == 0 { // which would be the engine's choice
		return conn, &config.Invalid{Name: "--interval-ms", Value: "0", Expected: config.IntWithin(0, 1, config.MaxIntervalMS).Error()}
	}
	for _, n := range []struct {
		given *int
		to    *int
	}{{c.MaxHeld, &conn.MaxHeld}, {c.MaxRunning, &conn.MaxRunning}} {
		if n.given != nil {
			*n.to = *n.given
		}
	}
	for _, n := range []struct {
		given *int
		to    *time.Duration
	}{{c.LeaseMS, &conn.Lease}, {c.IntervalMS, &conn.Interval}} {
		if n.given != nil {
			*n.to = time.Duration(*n.given) * time.Millisecond
		}
	}
	if c.DecisionTimeout != nil {
		conn.DecisionTimeout = *c.DecisionTimeout
	}
	return conn, conn.Check(func(key string) string { return "--" + key })
}

// onlyWithHarness refuses flags that describe a connection where none is
// described: those of config.toml have their own.
func (c *workerCommand) onlyWithHarness() error {
	for name, given := range map[string]bool{
		"--workdir": c.Workdir != "", "--environment-id": c.EnvironmentID != "", "--interval-ms": c.IntervalMS != nil,
		"--lease-ms": c.LeaseMS != nil, "--max-held": c.MaxHeld != nil, "--max-running": c.MaxRunning != nil,
		"--decision-timeout": c.DecisionTimeout != nil,
	} {
		if given {
			return &config.Invalid{Name: name, Expected: "expected together with --harness; the connections of config.toml have their own"}
		}
	}
	return nil
}

// checkWorkDirs refuses a work directory that cannot be used, before anything is
// made.
func (a *assembly) checkWorkDirs() error {
	for i, conn := range a.config.Connections {
		_, err := config.CheckWorkDir(conn.WorkDir, a.place.own()...)
		switch {
		case err == nil:
		case a.flagged:
			return &config.Invalid{Name: "--workdir", Value: conn.WorkDir, Expected: err.Error()}
		default:
			return config.At(a.place.configFile(), i, "workdir", conn.Name, conn.WorkDir, err)
		}
	}
	return nil
}

// warnOfStrayKeys tells of keys that are given to no connection: their table is
// misspelt, or its connection is gone.
func (a *assembly) warnOfStrayKeys() {
	for _, stray := range config.StrayCredentials(a.place.config, connectionsNamed(a.fromFile, a.config)) {
		a.log.Warn(stray.Error())
	}
}

// connectionsNamed are the names of the connections of some configurations.
func connectionsNamed(of ...config.Config) (names []string) {
	for _, c := range of {
		for _, conn := range c.Connections {
			if !slices.Contains(names, conn.Name) {
				names = append(names, conn.Name)
			}
		}
	}
	return names
}

// fromGlobal fills in what the global flags and the configuration file say.
func (a *assembly) fromGlobal(g *global) (err error) {
	if a.log, a.level, err = g.logger(); err != nil {
		return err
	}
	a.levelGiven = g.LogLevel != ""
	if a.place, err = g.place(); err != nil {
		return err
	}
	if a.fromFile, err = config.Read(a.place.configFile()); err != nil {
		return &exitError{exitUsage, err}
	}
	a.config = a.fromFile
	a.keyring = config.SystemKeyring()
	return nil
}
