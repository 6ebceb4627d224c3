package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"countersign/app/config"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// rulesExplain says what the rules would decide about an item, and why.
type rulesExplain struct {
	Session string `help:"The session that asks; rules for one session apply to no other." placeholder:"S"`
	JSON    bool   `name:"json" help:"Print JSON."`

	Exec  explainExec  `cmd:"" help:"A command."`
	Read  explainRead  `cmd:"" help:"Reading a file."`
	Write explainWrite `cmd:"" help:"Writing a file, whatever its content."`
	List  explainList  `cmd:"" help:"Listing the files below a directory."`
}

// Exit codes of an explain whose verdict is not allow.
const (
	exitAsk  = 10
	exitDeny = 11
)

type explainExec struct {
	Cwd     string            `help:"The directory that it asks to run in, inside the work directory." placeholder:"DIR"`
	Env     map[string]string `help:"What it asks to have added to its environment, once for each variable." placeholder:"NAME=VALUE" mapsep:"none"`
	Command []string          `arg:"" help:"The command. Several words are joined by spaces; write -- before them."`
}

type explainRead struct {
	Path string `arg:"" help:"Path inside the work directory; a leading / means that directory."`
}

type explainWrite struct {
	Path string `arg:"" help:"Path inside the work directory; a leading / means that directory."`
}

type explainList struct {
	Path string `arg:"" optional:"" help:"Path inside the work directory; a leading / means that directory."`
}

// Run implements the command.
func (c *explainExec) Run(g *global, all *commandLine) error {
	return all.Rules.explain(g, os.Stdout, wire.KindExec, wire.Exec{Command: strings.Join(c.Command, " "), Cwd: c.Cwd, Env: c.Env})
}

// Run implements the command.
func (c *explainRead) Run(g *global, all *commandLine) error {
	return all.Rules.explain(g, os.Stdout, wire.KindRead, wire.Read{Path: c.Path})
}

// Run implements the command.
func (c *explainWrite) Run(g *global, all *commandLine) error {
	return all.Rules.explain(g, os.Stdout, wire.KindWrite, wire.Write{Path: c.Path})
}

// Run implements the command.
func (c *explainList) Run(g *global, all *commandLine) error {
	return all.Rules.explain(g, os.Stdout, wire.KindList, wire.List{Path: c.Path})
}

// explain judges an item as the running Countersign would, but for grants and
// the approve mode, and says so on w. The error carries the verdict's exit code.
func (c *rulesCommand) explain(g *global, w io.Writer, kind string, payload any) error {
	r, err := c.begin(g, true)
	if err != nil {
		return err
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	task, err := execute.Decode(kind, text)
	if err != nil {
		return &config.Invalid{Name: kind, Expected: err.Error()}
	}
	rules, where, found, err := r.rules(true)
	if err != nil {
		return unusable(os.Stderr, r.file, err)
	}
	x := explained{
		spot: r.spot, rules: rules, found: found, risks: policy.Risks(task), search: where.SearchPath,
		item: policy.Item{Task: task, Connection: r.connection, Session: c.Explain.Session},
	}
	hash := ""
	if found {
		hash = rules.Hash()
	}
	x.notInForce = r.notInForce(context.Background(), hash)
	x.Explanation = rules.Explain(x.item)
	if c.Explain.JSON {
		err = writeASCII(w, x.json())
	} else {
		x.write(w)
	}
	return errors.Join(err, x.exit())
}

// explained is an item with what the rules say of it.
type explained struct {
	policy.Explanation
	spot
	item  policy.Item
	risks []policy.Risk
	rules *policy.Rules
	found bool // there is a rule file

	notInForce string // in words, if the rule file is not

	search string // where commands find their programs
}

func (x explained) exit() error {
	switch x.Verdict {
	case policy.Allow:
		return nil
	case policy.Deny:
		return &exitError{code: exitDeny}
	}
	return &exitError{code: exitAsk}
}

func (x explained) write(w io.Writer) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name, safetext.Line(value))
		}
	}
	line("verdict", fmt.Sprintf("%s: %s", x.Verdict, x.Reason))
	line("by", x.By)
	if x.RunsCode {
		line("mind", "it runs what is in the work directory, whatever that is then")
	}
	line("rules", x.ruleFile())
	line("but", x.notInForce)
	line("work directory", fmt.Sprintf("%s (%s)", x.root, x.why))
	line("connection", x.connection)
	line("session", x.item.Session)
	if x.item.Kind != wire.KindExec {
		line(x.item.Kind, x.item.Path)
	} else {
		line("programs", "looked for on the PATH of your login shell, which commands get too: "+x.search)
	}
	line("in", x.item.Cwd)
	for _, name := range slices.Sorted(maps.Keys(x.item.Env)) {
		line("environment", name+"="+x.item.Env[name])
	}
	if x.item.Kind == wire.KindExec {
		block(w, "command", x.item.Command)
	}
	writeParts(w, x.Parts)
	writeRisks(w, x.risks)
}

// writeParts draws what an item is taken apart into, each part with its verdict.
func writeParts(w io.Writer, parts []policy.Part) {
	fmt.Fprintln(w, "\nparts")
	inside := false
	for _, p := range parts {
		if p.Inner && !inside {
			inside = true
			fmt.Fprintln(w, "  inside them")
		}
		writePart(w, p)
	}
}

func writeRisks(w io.Writer, risks []policy.Risk) {
	if len(risks) == 0 {
		return
	}
	fmt.Fprintln(w, "\nmarks")
	for _, r := range risks {
		fmt.Fprintf(w, "  %s: %s\n", r.Mark, safetext.Line(r.Reason))
	}
}

// ruleFile says which rules those were.
func (x explained) ruleFile() string {
	if !x.found {
		return fmt.Sprintf("none: there is no %s; everything is asked for, but what is always denied", x.rules.File())
	}
	return fmt.Sprintf("%s (%s)", x.rules.File(), x.rules.Hash()[:12])
}

// writePart draws a part with its verdict; what was found inside another comes
// after them all and stands further in.
func writePart(w io.Writer, p policy.Part) {
	indent := "  "
	if p.Inner {
		indent = "    "
	}
	fmt.Fprintf(w, "%s%-5s  %s\n", indent, p.Verdict, safetext.Line(p.Text))
	fmt.Fprintf(w, "%s       %s\n", indent, safetext.Line(p.Reason))
	if p.RunsCode {
		fmt.Fprintf(w, "%s       it runs what is in the work directory\n", indent)
	}
}

// explainedJSON is what explain prints as JSON: the explanation, and what was
// asked about.
type explainedJSON struct {
	policy.Explanation
	Risks      []policy.Risk     `json:"risks"`
	Kind       string            `json:"kind"`
	Command    string            `json:"command,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Path       string            `json:"path,omitempty"`
	Connection string            `json:"connection,omitempty"`
	Session    string            `json:"session_id,omitempty"`
	WorkDir    string            `json:"workdir"`
	File       string            `json:"rules_file,omitempty"` // with its hash; neither where there is none
	Hash       string            `json:"rules_sha256,omitempty"`
	NotInForce string            `json:"not_in_force,omitempty"` // in words, where a change of the file waits to be seen
}

func (x explained) json() explainedJSON {
	out := explainedJSON{
		Explanation: x.Explanation, Risks: append([]policy.Risk{}, x.risks...),
		Kind: x.item.Kind, Command: x.item.Command, Cwd: x.item.Cwd, Env: x.item.Env, Path: x.item.Path,
		Connection: x.connection, Session: x.item.Session, WorkDir: x.root, NotInForce: x.notInForce,
	}
	if x.found {
		out.File, out.Hash = x.rules.File(), x.rules.Hash()
	}
	return out
}
