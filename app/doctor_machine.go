package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// dataDirectory looks at the directory that the journal is in. One that is not
// there yet is not made.
func (d *doctor) dataDirectory() finding {
	f := finding{Check: "data directory", Grade: isOK, Means: d.place.data + " is there, and only yours."}
	err := control.Private(d.place.data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := canMakeIn(d.place.data); err != nil {
			f.Grade, f.Means = isProblem, d.place.data+" is not there and cannot be made: "+err.Error()
			f.Do = "Make it, or name another with --data-dir."
			return f
		}
		f.Means = d.place.data + " is not there yet; the first start makes it."
	case err != nil:
		f.Grade, f.Means = isProblem, err.Error()
	default:
		if err := canMakeIn(filepath.Join(d.place.data, "new")); err != nil {
			f.Grade, f.Means, f.Do = isProblem, d.place.data+" cannot be written to: "+err.Error(), "Nothing starts without it: make room, or give it back to yourself."
		}
	}
	return f
}

// canMakeIn says why something new cannot be made at a path, by making and
// removing a file in the nearest directory above it.
func canMakeIn(path string) error {
	dir := filepath.Dir(path)
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	probe, err := os.CreateTemp(dir, ".countersign-*")
	if err != nil {
		return err
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// journal looks whether steps can be written down. Of a running Countersign that
// is for it to say: its file is not opened by a program that may be of another
// version.
func (d *doctor) journal(ctx context.Context) finding {
	f := finding{Check: "journal", Grade: isOK}
	if d.running != nil {
		f.Means = "The running Countersign writes it."
		return f
	}
	err := d.withJournal(ctx, func(s *store.Store) error { return s.Usable(ctx) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Means = "There is none yet; the first start makes it."
	case err != nil:
		f.Grade, f.Means, f.Do = isProblem, err.Error(), "Nothing is claimed without it. Is the disk full?"
	default:
		f.Means = d.place.database() + " can be written."
	}
	return f
}

func (d *doctor) withJournal(ctx context.Context, ask func(*store.Store) error) error {
	if _, err := os.Stat(d.place.database()); err != nil {
		return err
	}
	s, err := store.Open(ctx, d.place.database())
	if err != nil {
		return err
	}
	return errors.Join(ask(s), s.Close())
}

// guards tells of a change of what guards this machine that keeps the next start
// from running anything. A running Countersign told of it as it was made.
func (d *doctor) guards(ctx context.Context) (found []finding) {
	if d.running != nil || d.fromFile == nil {
		return nil
	}
	_ = d.withJournal(ctx, func(s *store.Store) error { // what is wrong with it is said already
		g, err := readGuards(s, d.place, *d.fromFile)
		if err == nil && g.wait(d.flagged != nil) {
			found = append(found, finding{Check: "configuration", Grade: isProblem, Means: g.what(),
				Do: `Nothing starts before you accept that: "` + g.place.self() + ` config pending" shows it, with the command that does.`})
		}
		return err
	})
	return found
}

// unfinished tells of what connections that are gone left in the journal.
func (d *doctor) unfinished(ctx context.Context) (found []finding) {
	tell := func(words string) {
		found = append(found, finding{Check: "left unfinished", Grade: isWarning, Means: words})
	}
	if d.running != nil {
		for _, l := range d.running.LeftOpen {
			tell(leftOpenWords(l))
		}
		return found
	}
	_ = d.withJournal(ctx, func(s *store.Store) error { // what is wrong with it is said already
		left, err := s.LeftOpen(ctx)
		for _, l := range untended(left, d.config.Connections) {
			tell(leftOpenWords(l))
		}
		ids, ended := wasRunning(ctx, s)
		if len(ids) > 0 {
			found = append(found, finding{Check: "interrupted", Grade: isWarning,
				Means: fmt.Sprintf("%s when Countersign ended (%s), and may have run wholly, partly or not at all.", wasOrWere(len(ids)), idList(ids)),
				Do:    `The next start with its connection marks that as Interrupted and never runs it again; "countersign tail ID" prints what was kept of its output.`})
		}
		return errors.Join(err, ended)
	})
	return found
}

func wasOrWere(n int) string {
	if n == 1 {
		return "1 item was running"
	}
	return fmt.Sprintf("%d items were running", n)
}

// environment captures the login environment, as each start does, and names what
// of it commands do not get.
func (d *doctor) environment(ctx context.Context) finding {
	f := finding{Check: "environment", Grade: isOK}
	begun := time.Now()
	var err error
	d.env, err = execute.CaptureLoginEnv(ctx, 5*time.Second)
	took := time.Since(begun).Round(10 * time.Millisecond)
	if err != nil {
		f.Grade, f.Means = isWarning, "The login environment could not be had ("+err.Error()+"); commands get the one that Countersign is started with."
		f.Do = "Look at what your profile does when a login shell is started without a terminal."
	} else {
		f.Means = fmt.Sprintf("Commands get the login environment, captured in %v.", took)
	}
	_ = d.inTrialDir(func(dir string) error {
		r, err := execute.New(execute.Options{Dir: dir, Env: func() []string { return d.env },
			PassEnv: d.config.Environment.Pass, RemoveEnv: d.config.Environment.Remove})
		if err == nil && len(r.RemovedEnv()) > 0 {
			f.Means += " Without " + strings.Join(r.RemovedEnv(), ", ") + "."
		}
		return err
	})
	return f
}

// inTrialDir makes a directory to try something in, and removes it.
func (d *doctor) inTrialDir(try func(dir string) error) error {
	dir, err := os.MkdirTemp("", "countersign-doctor-")
	if err != nil {
		return err
	}
	return errors.Join(try(dir), os.RemoveAll(dir))
}

// helper runs a command that does nothing, as every command is run.
func (d *doctor) helper(ctx context.Context) finding {
	f := finding{Check: "helper", Grade: isOK}
	keeper, keeperErr := execute.NewKeeper()
	var o execute.Outcome
	begun := time.Now()
	err := d.inTrialDir(func(dir string) error {
		r, err := execute.New(execute.Options{Dir: dir, Keeper: keeper, Confine: d.config.Confinement.Confine, Env: func() []string { return d.env }})
		if err != nil {
			return err
		}
		begun = time.Now()
		o = r.Run(ctx, execute.Task{Kind: wire.KindExec, Command: ":", TimeLimit: 10 * time.Second}, "")
		return nil
	})
	took := time.Since(begun).Round(100 * time.Microsecond)
	switch {
	case err != nil:
		f.Grade, f.Means = isProblem, "No command could be tried: "+err.Error()
	case o.How != execute.Ended || o.Exit != 0:
		f.Grade, f.Means, f.Do = isProblem, fmt.Sprintf("A command that does nothing ended with exit %d. %s", o.Exit, o.Reason), "No command will run here."
	case keeperErr != nil:
		f.Grade, f.Means = isWarning, "Commands run without a helper ("+keeperErr.Error()+"): what leaves their process group is not ended with them."
		f.Do = "Install countersign-keeper beside countersign."
	default:
		f.Means = fmt.Sprintf("A command that does nothing took %v under %s.", took, keeper.Program())
	}
	return f
}

// confinement says what commands are kept from: beside a running Countersign by
// that one, which has it from its start.
func (d *doctor) confinement() finding {
	words, err := confinement(d.config.Confinement.Confine)
	f := finding{Check: "confinement", Grade: isOK, Means: upperFirst(words) + "."}
	if err != nil {
		f.Grade, f.Do = isProblem, "Set confine = false in config.toml, or use a kernel with Landlock."
	} else if _, none := execute.ConfinementLevel(); none == nil && !d.config.Confinement.Confine {
		f.Do = "With [confinement] confine = true they would write only in the work directory and the places that you list."
	}
	if d.running == nil {
		return f
	}
	for _, v := range d.running.Snapshot.Connections {
		if v.Confinement == "" {
			continue
		}
		f.Means = "In the running Countersign: " + v.Confinement + "."
		if v.Confinement != words {
			f.Grade, f.Do = isWarning, d.place.configFile()+" says otherwise by now ("+words+"): restart it for that."
			break
		}
	}
	return f
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// rules looks at the rule file, for each connection.
func (d *doctor) rules(ctx context.Context) finding {
	file := d.place.rulesFile()
	if d.inForce != nil && d.inForce.File != "" {
		file = d.inForce.File // it may have been named at the start
	}
	f := finding{Check: "rules", Grade: isOK, Means: file + " is not there: every item is asked for."}
	roots := []string{d.place.config}
	for _, c := range d.config.Connections {
		if root, err := workRoot(c.WorkDir); err == nil {
			roots = append(roots, root)
		}
	}
	for _, root := range roots[min(1, len(roots)-1):] {
		rules, there, err := readRules(file, false, policyContext(d.place, d.config, file, root, d.env))
		if err != nil {
			f.Grade, f.Means, f.Do = isProblem, "The rule file cannot be used: "+err.Error(), `"countersign rules check" names each mistake; what was in force before stays.`
			return f
		}
		if there {
			f.Means = fmt.Sprintf("%s can be used (%s).", file, counted(len(rules.Counts()), "rule"))
		}
	}
	if d.rulesChanged(ctx, file) {
		f.Grade, f.Do = isWarning, `It was changed outside Countersign, and the change is not in force: "countersign rules pending" shows it, while Countersign runs.`
	}
	return f
}

// rulesChanged says whether the file is not what was last in force.
func (d *doctor) rulesChanged(ctx context.Context, file string) (changed bool) {
	if d.running != nil {
		return d.inForce != nil && d.inForce.Pending != nil
	}
	_ = d.withJournal(ctx, func(s *store.Store) error {
		var kept policy.KeptRules = s
		before, err := kept.RulesInForce(file)
		if err != nil || before == nil {
			return err
		}
		text, err := os.ReadFile(file)
		changed = (err == nil || errors.Is(err, fs.ErrNotExist)) && !bytes.Equal(before, text)
		return nil
	})
	return changed
}

func (d *doctor) credentialsFile() string {
	return filepath.Join(d.place.config, config.CredentialsFile)
}
