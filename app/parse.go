package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/app/config"
	"countersign/worker"

	"github.com/alecthomas/kong"
)

// newParser makes the parser of the command line, with what is said of a line that
// cannot be used, and the help.
func newParser(c *commandLine, given config.Credentials) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("countersign"),
		kong.Description("Countersign the tool calls of remote agent sessions: see each one, approve it, and know what ran."),
		kong.Bind(c, &c.Global, given),
		kong.WithHyphenPrefixedParameters(true), // so that --limit -1 is told what is expected
		kong.ValueFormatter(withDefault),
		kong.Help(help),
		kong.KindMapper(reflect.String, kong.MapperFunc(text)),
		value("a duration, such as \"90s\" or \"4m\"", time.ParseDuration),
		value("a whole number", strconv.Atoi),
		value("the number of an item, as ps and history list it", func(s string) (worker.HoldID, error) {
			id, err := strconv.ParseInt(s, 10, 64)
			return worker.HoldID(id), err
		}),
		kong.Vars{"data": defaultPlace().data, "config": defaultPlace().config, "version": "countersign " + version},
	)
}

// text reads the values that are text: a flag has some, also where a script meant
// to fill it in. What is a flag itself is no other's value, unless it is written
// with a "=".
func text(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Pop()
	s, _ := token.Value.(string)
	isFlag := token.Type != kong.FlagValueToken && strings.HasPrefix(s, "--") && !strings.ContainsAny(s, " \t\n")
	one := ctx.Value.Target.Kind() == reflect.String // and not a part of several
	if flag := ctx.Value.Flag; flag != nil && one && (s == "" || isFlag) {
		return fmt.Errorf("nothing is given; write --%s=%s", flag.Name, flag.FormatPlaceHolder())
	}
	target.SetString(s)
	return nil
}

// value reads the values of a type, and says in our words what one is.
func value[T any](expected string, parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token := ctx.Scan.Pop()
		text, given := token.Value.(string)
		if !given {
			return fmt.Errorf("nothing is given; expected %s", expected)
		}
		v, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q is given; expected %s", text, expected)
		}
		target.Set(reflect.ValueOf(v))
		return nil
	}))
}

// withDefault is the help of a flag or an argument, with its default.
func withDefault(v *kong.Value) string {
	if v.HasDefault && v.Default != "" {
		return fmt.Sprintf("%s Default %s.", v.Help, v.Default)
	}
	return v.Help
}

// help prints the help of a command: with the flags of the command below it that
// needs no name, and without those of the one above that mean nothing to it.
func help(o kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	if node.DefaultCmd != nil {
		node.Flags = append(node.Flags, node.DefaultCmd.Flags...)
	}
	if asksTheRunning(node) {
		for _, f := range node.Parent.Flags {
			f.Hidden = true
		}
	}
	return kong.DefaultHelpPrinter(o, ctx)
}

// asksTheRunning says whether a command is one of "rules" that no rule file is read
// for.
func asksTheRunning(n *kong.Node) bool {
	return n.Parent != nil && n.Parent.Name == "rules" && !slices.Contains([]string{"check", "explain", "suggest"}, n.Name)
}

// AfterApply refuses flags that mean nothing to the command they are given to.
func (c *rulesCommand) AfterApply(ctx *kong.Context) error {
	if node := ctx.Selected(); node != nil && asksTheRunning(node) && c.File+c.Workdir+c.Connection != "" {
		return fmt.Errorf("--rules, --workdir and --connection are for rules check, explain and suggest; %s has no use for them", node.Name)
	}
	return nil
}

// selected is the command that a line was about when it could not be used; nil
// for none.
func selected(err error) *kong.Node {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		return parse.Context.Selected()
	}
	return nil
}

// helpOf is the command whose help tells more.
func helpOf(err error) string {
	if node := selected(err); node != nil && node.Name != "desktop" {
		return node.FullPath()
	}
	return "countersign"
}

// usage says what is wrong with the command line. A word that is no command is
// taken for an argument of the command that needs no name.
func usage(err error, args []string) string {
	node, said := selected(err), err.Error()
	if node == nil {
		return said
	}
	word, unexpected := strings.CutPrefix(said, "unexpected argument ")
	flag, unknown := strings.CutPrefix(said, "unknown flag ")
	switch {
	case unexpected && node.Name == "desktop" && !slices.Contains(args, "desktop"):
		return fmt.Sprintf("unknown command %s; see countersign --help", word)
	case unknown && len(node.Positional) > 0 && node.Positional[0].Name == "command":
		flag, _, _ = strings.Cut(flag, ",")
		return fmt.Sprintf("unknown flag %s; if it belongs to the command to be run, write -- before that: %s -- COMMAND", flag, node.FullPath())
	case strings.HasPrefix(said, "expected one of ") && len(node.Children) > 0:
		var names []string
		for _, child := range node.Children {
			names = append(names, child.Name)
		}
		return "expected one of " + strings.Join(names, ", ")
	}
	return said
}
