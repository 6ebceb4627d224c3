package main

import (
	"bytes"
	"strings"
	"testing"

	"countersign/app/config"
)

// parsed parses a command line, and returns what is said of one that cannot be used.
func parsed(t *testing.T, args ...string) (said, more string) {
	t.Helper()
	parser, err := newParser(new(commandLine), config.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = parser.Parse(args); err != nil {
		return usage(err, args), helpOf(err)
	}
	return "", ""
}

func TestWhatIsWrongWithACommandLineIsSaidInWords(t *testing.T) {
	for line, want := range map[string]string{
		"pause --for":                            `--for: nothing is given; expected a duration, such as "90s" or "4m"|countersign pause`,
		"pause --for 3":                          `--for: "3" is given; expected a duration, such as "90s" or "4m"|countersign pause`,
		"worker --max-held x":                    `--max-held: "x" is given; expected a whole number|countersign worker`,
		"worker --harness":                       `--harness: nothing is given; write --harness=URL|countersign worker`,
		"worker --environment-id --workdir /w":   `--environment-id: nothing is given; write --environment-id=E|countersign worker`,
		"history --search":                       `--search: nothing is given; write --search=Q|countersign history`,
		"ps --data-dir":                          `--data-dir: nothing is given; write --data-dir=DIR|countersign ps`,
		"history --search=--no-such":             "|",
		"rules explain exec --env A= -- ls":      "|",
		"history --search -x":                    "|",
		"decline 7 --message=":                   `--message: nothing is given; write --message=|countersign decline`,
		"enqueue --session s exec -- ls --all":   "|",
		"enqueue --session":                      `--session: nothing is given; write --session=S|countersign enqueue`,
		"show abc":                               `<id>: "abc" is given; expected the number of an item, as ps and history list it|countersign show`,
		"rules":                                  `expected one of check, explain, pending, accept, grants, revoke, shipped, suggest|countersign rules`,
		"enqueue --session s exec date -u":       `unknown flag -u; if it belongs to the command to be run, write -- before that: countersign enqueue exec -- COMMAND|countersign enqueue exec`,
		"rules explain exec ls -l":               `unknown flag -l; if it belongs to the command to be run, write -- before that: countersign rules explain exec -- COMMAND|countersign rules explain exec`,
		"no-such":                                `unknown command no-such; see countersign --help|countersign`,
		"rules --workdir . grants":               `--rules, --workdir and --connection are for rules check, explain and suggest; grants has no use for them|countersign rules grants`,
		"history --no-such":                      `unknown flag --no-such|countersign history`,
		"rules --workdir . explain exec -- true": "|",
		"pause --for 90s":                        "|",
		"tail 3":                                 "|",
	} {
		said, more := parsed(t, strings.Fields(line)...)
		wanted, help, _ := strings.Cut(want, "|")
		if !strings.HasPrefix(strings.ReplaceAll(said, "rules: --rules", "--rules"), wanted) || said != "" && wanted == "" || more != help {
			t.Errorf("%s: %q, see %q", line, said, more)
		}
	}
}

func TestTheVersionIsPrintedForTheFlagThatOtherProgramsHave(t *testing.T) {
	var out bytes.Buffer
	parser, err := newParser(new(commandLine), config.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	code := -1
	parser.Exit, parser.Stdout = func(c int) { code = c }, &out
	if _, err := parser.Parse([]string{"--version"}); err != nil || code != 0 || out.String() != "countersign "+version+"\n" {
		t.Errorf("exit %d, %v, prints %q", code, err, &out)
	}
}

func TestHelpListsTheFlagsThatMeanSomething(t *testing.T) {
	for line, c := range map[string]struct{ has, hasNot string }{
		"history":            {"--search=Q", "--rules"},
		"":                   {"--approve=", "--workdir"},
		"rules grants":       {"--json", "--workdir"},
		"rules shipped":      {"<set>", "--connection"},
		"rules explain exec": {"--connection=NAME", ""},
		"rules suggest":      {"--workdir=DIR", ""},
	} {
		var out bytes.Buffer
		parser, err := newParser(new(commandLine), config.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		ended := func() { // the parser would end the process
			defer func() { _ = recover() }()
			parser.Exit = func(int) { panic("printed") }
			parser.Stdout = &out
			_, _ = parser.Parse(append(strings.Fields(line), "--help"))
		}
		ended()
		if text := out.String(); !strings.Contains(text, c.has) || c.hasNot != "" && strings.Contains(text, c.hasNot) {
			t.Errorf("%s --help prints\n%s", line, text)
		}
	}
}
