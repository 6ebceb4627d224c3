package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// doctorCommand looks at all that Countersign needs and says what to do where
// something is amiss. It works beside a running Countersign and without one: it
// takes no lock, claims nothing, and asks a harness nothing that changes anything.
type doctorCommand struct {
	Harness       string `help:"Look at this harness instead of the connections of config.toml." placeholder:"URL"`
	Workdir       string `help:"Its work directory." placeholder:"DIR"`
	EnvironmentID string `help:"Its environment." placeholder:"E"`
	JSON          bool   `name:"json" help:"Print JSON."`
}

// doctorPatience bounds the whole; each question to a harness has 10 s.
const doctorPatience = time.Minute

// Run implements the command. Its exit code is 1 where there is a problem.
func (c *doctorCommand) Run(g *global, given config.Credentials) error {
	d := doctor{given: given, keyring: config.SystemKeyring(), log: slog.New(slog.DiscardHandler)}
	var err error
	if d.place, err = g.place(); err != nil {
		return err
	}
	if c.Harness != "" {
		flags := workerCommand{Harness: c.Harness, Workdir: c.Workdir, EnvironmentID: c.EnvironmentID}
		conn, err := flags.connection()
		if err != nil {
			return err
		}
		d.flagged = &conn
	} else if c.Workdir != "" || c.EnvironmentID != "" {
		return &config.Invalid{Name: "--workdir and --environment-id", Expected: "expected together with --harness; the connections of config.toml have their own"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorPatience)
	defer cancel()
	found := d.examine(ctx)
	if c.JSON {
		err = writeASCII(os.Stdout, diagnosis(d.place, found))
	} else {
		err = writeFindings(os.Stdout, d.place, found)
	}
	if err == nil && count(found, isProblem) > 0 {
		return &exitError{code: exitFault}
	}
	return err
}

// grade says how bad a finding is.
type grade string

const (
	isOK      grade = "ok"
	isWarning grade = "warning" // works, but not as well as it could
	isProblem grade = "problem" // something does not work
)

// finding is what one check found: in words, what it means and what to do.
type finding struct {
	Check      string `json:"check"`
	Connection string `json:"connection,omitempty"`
	Grade      grade  `json:"state"`
	Means      string `json:"means"`
	Do         string `json:"do,omitempty"`
}

// doctor is what the checks have to go by.
type doctor struct {
	place   place
	given   config.Credentials
	keyring config.Keyring
	flagged *config.Connection // instead of those of the file
	log     *slog.Logger

	config   config.Config
	fromFile *config.Config     // without what flags put in the place of its connections; nil where it cannot be used
	running  *control.Status    // nil where none answers
	inForce  *policy.RulesState // the running one's rules; nil where they are not known
	env      []string           // the login environment
}

// examine makes all checks: those of this machine one after another, since later
// ones go by what earlier ones found, and those of connections at once.
func (d *doctor) examine(ctx context.Context) []finding {
	found := d.machine(ctx)
	each := make([][]finding, len(d.config.Connections))
	var all sync.WaitGroup
	for i, c := range d.config.Connections {
		all.Go(func() {
			each[i] = d.connection(ctx, c)
			for j := range each[i] {
				each[i][j].Connection = c.Name
			}
		})
	}
	all.Wait()
	for _, f := range each {
		found = append(found, f...)
	}
	found = append(found, d.onlyRunning()...)
	sentences(found)
	return found
}

// sentences makes one line of what was found, which ends as a sentence: it may be
// an error's, of several lines, and what to do is said after it.
func sentences(found []finding) {
	for i, f := range found {
		means := strings.ReplaceAll(f.Means, "\n", "; ")
		if means != "" && !strings.ContainsRune(".:!?", rune(means[len(means)-1])) {
			means += "."
		}
		found[i].Means = means
	}
}

// machine makes the checks that are about no connection alone.
func (d *doctor) machine(ctx context.Context) []finding {
	found := []finding{d.configuration(), d.instance(ctx)}
	found = append(found, d.strayKeys()...)
	found = append(found, d.dataDirectory(), d.journal(ctx))
	found = append(found, d.guards(ctx)...)
	found = append(found, d.unfinished(ctx)...)
	found = append(found, d.environment(ctx), d.helper(ctx), d.confinement(), d.rules(ctx))
	return append(found, d.desktop(ctx)...)
}

func (d *doctor) configuration() finding {
	f := finding{Check: "configuration"}
	read, err := config.Read(d.place.configFile())
	if err != nil {
		d.config = config.Default()
		f.Grade, f.Means, f.Do = isProblem, err.Error(), "Mend the file: nothing starts with it."
	} else {
		d.config, d.fromFile = read, &read
		f.Grade, f.Means = isOK, d.place.configFile()+" can be used."
		if bad := d.noStart(); bad != nil {
			f.Grade, f.Means, f.Do = isProblem, bad.Error(), "Nothing starts with it."
		} else if _, err := os.Stat(d.place.configFile()); errors.Is(err, fs.ErrNotExist) {
			f.Means = d.place.configFile() + " is not there: the defaults hold."
		}
	}
	if d.flagged != nil {
		d.config.Connections = []config.Connection{*d.flagged}
	}
	if err == nil && len(d.config.Connections) == 0 {
		f.Grade, f.Means = isWarning, "There is no connection, so there is nothing to work for."
		f.Do = "Add a [[connection]] to " + d.place.configFile() + `, or try "countersign demo".`
	}
	return f
}

// noStart is what keeps a start from using a configuration that was read well.
func (d *doctor) noStart() error {
	a := assembly{place: d.place, config: d.config}
	return a.checkWorkDirs()
}

// strayKeys tells of keys that no connection gets.
func (d *doctor) strayKeys() (found []finding) {
	if d.fromFile == nil {
		return nil
	}
	for _, stray := range config.StrayCredentials(d.place.config, connectionsNamed(*d.fromFile, d.config)) {
		found = append(found, finding{Check: "credentials", Grade: isWarning, Means: stray.Error(), Do: "Mend the name of the table, or remove it."})
	}
	return found
}

// instance asks whether a Countersign runs for the data directory.
func (d *doctor) instance(ctx context.Context) finding {
	f := finding{Check: "running", Grade: isOK}
	client := control.NewClient(d.place.data)
	defer client.Close()
	s, err := client.Status(ctx)
	var none *control.NotRunning
	switch {
	case errors.As(err, &none):
		f.Means = "No Countersign runs for data directory " + d.place.data + "."
		return f
	case err != nil:
		f.Grade, f.Means, f.Do = isProblem, "The Countersign that runs does not answer as it should: "+err.Error(), "End it and start it again."
		return f
	}
	d.running = &s
	if state, err := client.Rules(ctx); err == nil {
		d.inForce = &state
	}
	f.Means = fmt.Sprintf("Countersign %s runs as process %d.", s.Version, s.PID)
	switch snap := s.Snapshot; {
	case s.Version != version:
		f.Grade, f.Do = isWarning, "This program is version "+version+": restart the other one."
	case s.Quitting:
		f.Grade, f.Means, f.Do = isWarning, f.Means+" It is quitting, and claims nothing more.", "Wait for what runs, or stop it."
	case snap.Paused:
		f.Grade, f.Means, f.Do = isWarning, f.Means+" It is paused, and claims nothing.", `"countersign resume" goes on.`
	case snap.Away:
		f.Grade, f.Means, f.Do = isWarning, f.Means+" Nobody answered, so it claims nothing.", `"countersign resume" goes on.`
	case snap.ApproveAll:
		f.Grade, f.Means, f.Do = isWarning, f.Means+" With --approve all it runs everything unasked but what a rule denies.", "Restart it without, unless nobody is there to ask."
	}
	return f
}

// atWork says how the running Countersign is connected, if it has this connection.
func (d *doctor) atWork(c config.Connection) (f finding, has bool) {
	if d.running == nil {
		return f, false
	}
	for _, v := range d.running.Snapshot.Connections {
		if v.Origin == c.Harness && v.Environment == c.EnvironmentID {
			f := working(v)
			if f.Grade != isOK {
				f.Do = "See the lines below."
				if v.State == worker.CredentialsRejected {
					f.Do += " If they are well, start Countersign again: it reads keys at its start."
				}
			}
			return f, true
		}
	}
	f = finding{Check: "at work", Grade: isWarning, Means: "The running Countersign does not have this connection: it was started before it was added, or with --harness."}
	f.Do = "Restart it, without --harness, to have it work here."
	return f, true
}

// working says how the running Countersign is with one of its connections.
func working(v worker.ConnectionView) finding {
	f := finding{Check: "at work", Grade: isOK, Means: "The running Countersign is connected to the harness."}
	switch v.State {
	case worker.Connected:
	case worker.Connecting:
		f.Grade, f.Means = isWarning, "The running Countersign has not had an answer of the harness yet; it may just be starting."
	default:
		f.Grade = isProblem
		f.Means = fmt.Sprintf("The running Countersign gets no work here (%s). %s", v.State, v.Detail)
	}
	return f
}

// onlyRunning looks at the connections that the running Countersign has and the
// configuration has not: those of flags, or of a file that was changed. Their keys
// are not known here, so how they are with their harness is what it says.
func (d *doctor) onlyRunning() (found []finding) {
	if d.running == nil || d.flagged != nil {
		return nil
	}
	for _, v := range d.running.Snapshot.Connections {
		if slices.ContainsFunc(d.config.Connections, func(c config.Connection) bool { return c.Harness == v.Origin && c.EnvironmentID == v.Environment }) {
			continue
		}
		for _, f := range []finding{
			{Check: "configuration", Grade: isOK, Means: "It is the running Countersign's alone: " + d.place.configFile() + " does not have it."},
			working(v), d.workDirectory(config.Connection{WorkDir: v.WorkDir}),
		} {
			f.Connection = joinNonEmpty(" ", v.Name, v.Environment)
			found = append(found, f)
		}
	}
	return found
}

func count(found []finding, g grade) (n int) {
	for _, f := range found {
		if f.Grade == g {
			n++
		}
	}
	return n
}

// diagnosisJSON is what doctor --json prints.
type diagnosisJSON struct {
	Version  string    `json:"version"`
	DataDir  string    `json:"data_dir"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Checks   []finding `json:"checks"`
}

func diagnosis(p place, found []finding) diagnosisJSON {
	return diagnosisJSON{version, p.data, count(found, isProblem), count(found, isWarning), found}
}

// writeFindings draws a line for each check.
func writeFindings(w io.Writer, p place, found []finding) error {
	fmt.Fprintf(w, "Countersign %s, data directory %s\n", safetext.Line(version), safetext.Line(p.data))
	width := 0
	for _, f := range found {
		width = max(width, len(f.Check))
	}
	last := ""
	for _, f := range found {
		if f.Connection != last {
			fmt.Fprintf(w, "connection %s\n", safetext.Line(f.Connection))
			last = f.Connection
		}
		fmt.Fprintf(w, "%-7s  %-*s  %s\n", f.Grade, width, f.Check, safetext.Line(joinNonEmpty(" ", f.Means, f.Do)))
	}
	problems, warnings := count(found, isProblem), count(found, isWarning)
	if problems+warnings == 0 {
		_, err := fmt.Fprintln(w, "All is well.")
		return err
	}
	_, err := fmt.Fprintf(w, "%s, %s.\n", counted(problems, "problem"), counted(warnings, "warning"))
	return err
}
