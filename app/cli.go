package main

import (
	stdlog "log"
	"log/slog"
	"os"
	"time"

	"countersign/app/config"
	"countersign/worker/policy"

	"github.com/alecthomas/kong"
)

// commandLine is the grammar of the command line.
type commandLine struct {
	Global      global           `embed:""`
	VersionFlag kong.VersionFlag `name:"version" hidden:"" help:"Print the version."`

	Desktop desktopCommand `cmd:"" default:"withargs" help:"The desktop app (what \"countersign\" alone does)."`
	Demo    demoCommand    `cmd:"" help:"The desktop app with an embedded harness and sample sessions to try it on."`
	Worker  workerCommand  `cmd:"" help:"The same engine without a window."`
	Harness harnessCommand `cmd:"" help:"The embedded harness as a server on this machine."`
	Enqueue enqueueCommand `cmd:"" help:"Put work in an embedded harness and wait for its result."`

	Ps      psCommand      `cmd:"" help:"What the running Countersign holds, with its accept status."`
	Show    showCommand    `cmd:"" help:"One item whole, with the code that approves exactly this."`
	Approve approveCommand `cmd:"" help:"Approve an item."`
	Decline declineCommand `cmd:"" help:"Decline an item; its session is told."`
	Release releaseCommand `cmd:"" help:"Let an item go without an answer; the harness hands it out again once its lease is over."`
	Stop    stopCommand    `cmd:"" help:"Stop a running item, or everything."`
	Pause   pauseCommand   `cmd:"" help:"Claim and start nothing until resumed; what runs goes on."`
	Resume  resumeCommand  `cmd:"" help:"End a pause."`
	Tail    tailCommand    `cmd:"" help:"Follow the output of an item."`
	History historyCommand `cmd:"" help:"What was ever held here, newest first."`
	Doctor  doctorCommand  `cmd:"" help:"Look at all that Countersign needs, and say what to do where something is amiss."`
	Rules   rulesCommand   `cmd:"" help:"The rules that decide without asking: check them, explain them, suggest more."`
	Config  configCommand  `cmd:"" help:"A change of config.toml to what guards this machine: see it and accept it."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// global holds the flags of every command.
type global struct {
	DataDir   string `help:"Where the journal, outputs and the control socket are kept. Default ${data}." placeholder:"DIR"`
	ConfigDir string `help:"Where config.toml and credentials.toml are. Default ${config}." placeholder:"DIR"`
	LogLevel  string `help:"debug, info, warn or error; the configuration's unless given." placeholder:"LEVEL"`
	LogFormat string `help:"text or json." default:"text" placeholder:"FORMAT"`
}

// logger makes the log on stderr, for the libraries too. The level can be
// changed while it is used.
func (g *global) logger() (*slog.Logger, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	if g.LogLevel != "" {
		l, err := config.ParseLevel(g.LogLevel)
		if err != nil {
			return nil, nil, &config.Invalid{Name: "--log-level", Value: g.LogLevel, Expected: err.Error()}
		}
		level.Set(l)
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch g.LogFormat {
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	default:
		return nil, nil, &config.Invalid{Name: "--log-format", Value: g.LogFormat, Expected: "expected one of text, json"}
	}
	log := slog.New(handler)
	slog.SetDefault(log)
	stdlog.SetFlags(0)
	stdlog.SetOutput(&libraryLog{log: log})
	return log, level, nil
}

// running holds the flags of the commands that run the engine.
type running struct {
	Approve string        `help:"rules: the rules decide, and a person where they ask. ask: a person decides on every item. all: what would be asked runs unasked; for unattended machines, and in force for this start only." default:"rules" placeholder:"rules|ask|all"`
	Grace   time.Duration `help:"How long running commands may go on after the program was told to end." default:"10s" placeholder:"D"`
}

// check returns the approve mode.
func (r running) check() (policy.Mode, error) {
	if err := config.DurationWithin(r.Grace, 0, time.Hour); err != nil {
		return "", &config.Invalid{Name: "--grace", Value: r.Grace.String(), Expected: err.Error()}
	}
	switch mode := policy.Mode(r.Approve); mode {
	case policy.ModeRules, policy.ModeAsk, policy.ModeAll:
		return mode, nil
	}
	return "", &config.Invalid{Name: "--approve", Value: r.Approve, Expected: "expected one of rules, ask, all"}
}
