package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"countersign/app/config"
	"countersign/worker/policy"
)

// rulesName is the name of the rule file in the configuration directory.
const rulesName = "rules.toml"

func (p place) rulesFile() string { return filepath.Join(p.config, rulesName) }

// policyContext is the place that the rules of file are read and judged for, in
// the running program and on the command line alike: root is the canonical work
// directory of a connection, and env the environment that its commands get,
// before the configuration takes variables out of it.
//
// Commands run under /bin/sh, and under cmd on Windows: the defaults of
// policy.Context for the shell and for the case of file names go by the system,
// as that does.
func policyContext(p place, c config.Config, file, root string, env []string) policy.Context {
	given := func(name string) string { return givenVar(env, c.Environment.Remove, name) }
	ctx := policy.Context{
		Root:       root,
		SearchPath: given("PATH"),
		CDPath:     given("CDPATH"),
		Home:       given("HOME"),
		Own:        append(p.own(), file),
		Now:        time.Now,
	}
	if ctx.SearchPath == "" {
		// A shell without one has its own idea of where programs are, or takes them
		// from the directory it is in.
		ctx.LookPath = func(string) (string, error) { return "", errors.New("commands get no PATH") }
	}
	return ctx
}

// givenVar returns a variable as commands get it, "" where they do not. Of two
// entries of one name the last counts, as it does when a command is started.
func givenVar(env, removed []string, name string) (value string) {
	for _, pattern := range removed {
		prefix, open := strings.CutSuffix(pattern, "*")
		if strings.EqualFold(pattern, name) || open && len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return ""
		}
	}
	for _, entry := range env {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// readRules reads the rules of a file for a place. Where there is no such file
// and none has to be, found is false and the rules are empty: everything is
// asked for, but what is denied by nature. What is wrong with a file is an error
// that joins *policy.Invalid.
func readRules(file string, required bool, ctx policy.Context) (rules *policy.Rules, found bool, err error) {
	rules, err = policy.Load(file, ctx)
	if errors.Is(err, fs.ErrNotExist) && !required {
		rules, err = policy.Parse(file, nil, ctx)
		return rules, false, err
	}
	return rules, err == nil, err
}

// workRoot is the canonical path of a work directory, found without writing
// anything to it.
func workRoot(dir string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("expected a path without ~: the home directory is not known")
		}
		dir = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("expected an existing directory: %w", err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", errors.New("expected an existing directory")
	}
	return abs, nil
}
