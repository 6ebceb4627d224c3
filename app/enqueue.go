package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/app/config"
	"countersign/harness"
	"countersign/worker/api"
	"countersign/worker/api/wire"
	"countersign/worker/safetext"
)

// enqueueCommand puts work in an embedded harness and waits for its result.
type enqueueCommand struct {
	Harness       string        `help:"Address of the harness." default:"http://127.0.0.1:3000" placeholder:"URL"`
	Session       string        `help:"Session that asks for the work; made if the harness has none of this id." required:"" placeholder:"S"`
	EnvironmentID string        `help:"Environment of a session that is made." placeholder:"E"`
	APIKey        string        `name:"api-key" help:"API key. Others on this machine can see it here: better give MANAGED_AGENTS_API_KEY." placeholder:"K"`
	Timeout       time.Duration `help:"How long to wait for the result." default:"5m" placeholder:"D"`

	Exec  enqueueExec  `cmd:"" help:"Run a command."`
	Read  enqueueRead  `cmd:"" help:"Read a file."`
	Write enqueueWrite `cmd:"" help:"Write a file; its content comes from stdin."`
	List  enqueueList  `cmd:"" help:"List the files below a directory."`
}

// Exit codes of an enqueue that ended without a result (PROTOCOL.md §5), and
// of one whose work failed.
const (
	exitQueueTimeout   = 3
	exitOutcomeUnknown = 4
	exitLeaseLost      = 5
	exitFailed         = 6
)

type enqueueExec struct {
	Command []string `arg:"" help:"The command. Several words are joined by spaces; write -- before them."`
}

type enqueueRead struct {
	Path string `arg:"" help:"Path inside the work directory of the worker; a leading / means that directory."`
}

type enqueueWrite struct {
	Path string `arg:"" help:"Path inside the work directory of the worker; a leading / means that directory."`
}

type enqueueList struct {
	Path string `arg:"" optional:"" help:"Path inside the work directory of the worker; a leading / means that directory."`
}

// Run implements the command.
func (c *enqueueExec) Run(all *commandLine, given config.Credentials) error {
	return all.Enqueue.do(given, wire.KindExec, wire.Exec{Command: strings.Join(c.Command, " ")})
}

// Run implements the command.
func (c *enqueueRead) Run(all *commandLine, given config.Credentials) error {
	return all.Enqueue.do(given, wire.KindRead, wire.Read{Path: c.Path})
}

// Run implements the command.
func (c *enqueueWrite) Run(all *commandLine, given config.Credentials) error {
	const most = 16 << 20
	content, err := io.ReadAll(io.LimitReader(os.Stdin, most+1))
	if err != nil {
		return fmt.Errorf("read the content from stdin: %w", err)
	}
	if len(content) > most {
		return &config.Invalid{Name: "stdin", Expected: "expected at most 16 MB"}
	}
	if !utf8.Valid(content) {
		return &config.Invalid{Name: "stdin", Expected: "expected text in UTF-8: the protocol carries no other content, and would change it"}
	}
	return all.Enqueue.do(given, wire.KindWrite, wire.Write{Path: c.Path, Content: string(content)})
}

// Run implements the command.
func (c *enqueueList) Run(all *commandLine, given config.Credentials) error {
	return all.Enqueue.do(given, wire.KindList, wire.List{Path: c.Path})
}

func (c *enqueueCommand) do(given config.Credentials, kind string, payload any) error {
	origin, err := api.ParseOrigin(c.Harness)
	if err != nil {
		return &config.Invalid{Name: "--harness", Value: c.Harness, Expected: err.Error()}
	}
	if err := config.DurationWithin(c.Timeout, time.Millisecond, 24*time.Hour); err != nil {
		return &config.Invalid{Name: "--timeout", Value: c.Timeout.String(), Expected: err.Error()}
	}
	if c.APIKey == "" {
		c.APIKey = given.APIKey
	}
	ctx, cancel := withSignals(context.Background())
	defer cancel(nil)
	client := harness.NewClient(origin, c.APIKey, nil)
	_, err = client.CreateSession(ctx, harness.NewSession{ID: c.Session, EnvironmentID: c.EnvironmentID})
	var answer *harness.AnswerError
	if errors.As(err, &answer) && answer.HTTPStatus == http.StatusUnauthorized {
		return fmt.Errorf("make the session: %w Give it with %s, or with --api-key", err, config.APIKeyVar)
	}
	if err != nil && !(errors.As(err, &answer) && answer.HTTPStatus == http.StatusConflict) {
		return fmt.Errorf("make the session: %w. Nothing was queued", plain(err))
	}
	if err != nil && c.EnvironmentID != "" {
		made, err := client.Session(ctx, c.Session)
		if err != nil {
			return fmt.Errorf("look at the session: %w", err)
		}
		if made.EnvironmentID != c.EnvironmentID {
			return fmt.Errorf("session %s was made for environment %q, and stays there. Nothing was queued; use another --session", c.Session, made.EnvironmentID)
		}
	}
	item, err := client.Enqueue(ctx, c.Session, kind, payload)
	if err != nil {
		return enqueueError(err)
	}
	result, err := client.Await(ctx, item.ID, c.Timeout)
	if err != nil {
		return awaitError(item.ID, err)
	}
	return printResult(kind, result)
}

// enqueueError says whether work that was not seen to arrive may be there.
func enqueueError(err error) error {
	var answer *harness.AnswerError
	if errors.As(err, &answer) {
		return fmt.Errorf("enqueue: %w", err)
	}
	return fmt.Errorf("enqueue: %w. The harness may have the work all the same; asked for again, it may run twice", plain(err))
}

// awaitError gives each way that a wait ends without a result its exit code. A
// wait that breaks off changes nothing about the work.
func awaitError(id string, err error) error {
	var ended *harness.AwaitError
	if !errors.As(err, &ended) {
		return fmt.Errorf("wait for %s: %w. The work stays with the harness: it may have run, be running, or still run; asked for again, it may run twice", id, plain(err))
	}
	code, known := map[string]int{
		wire.CodeQueueTimeout:   exitQueueTimeout,
		wire.CodeOutcomeUnknown: exitOutcomeUnknown,
		wire.CodeLeaseLost:      exitLeaseLost,
	}[ended.Code]
	if !known {
		code = exitFault
	}
	return &exitError{code, fmt.Errorf("%s (%s, %s): %s", id, ended.Code, ended.RetryStatus, ended.Message)}
}

// plain is an error without the request that it met, and without its full stop:
// more is said after it.
func plain(err error) error {
	var request *url.Error
	switch {
	case errors.Is(err, errQuit):
		return errors.New("not waited for any longer")
	case errors.As(err, &request):
		err = request.Err
	}
	return errors.New(strings.TrimSuffix(err.Error(), "."))
}

// printResult prints what came back, made safe for a terminal.
func printResult(kind string, r harness.Result) error {
	if r.Failed {
		var f wire.Failure
		if json.Unmarshal(r.Result, &f) != nil || f.Message == "" {
			f.Message = string(r.Result)
		}
		return &exitError{exitFailed, errors.New(f.Message)}
	}
	var exec wire.ExecResult
	var text string
	var paths []string
	switch {
	case kind == wire.KindExec && json.Unmarshal(r.Result, &exec) == nil:
		fmt.Print(safetext.Block(exec.Stdout))
		fmt.Fprint(os.Stderr, stderrText(exec))
	case kind == wire.KindRead && json.Unmarshal(r.Result, &text) == nil:
		fmt.Print(safetext.Block(text))
	case kind == wire.KindList && json.Unmarshal(r.Result, &paths) == nil:
		for _, p := range paths {
			fmt.Println(safetext.Line(p))
		}
	case kind == wire.KindWrite:
		fmt.Println("written")
	default:
		fmt.Println(safetext.Block(string(r.Result)))
	}
	return nil
}

// stderrText is what a command's result puts on stderr: how it ended stands on a
// line of its own.
func stderrText(exec wire.ExecResult) string {
	text := safetext.Block(exec.Stderr)
	if exec.ExitCode == 0 {
		return text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + fmt.Sprintf("[exit %d]\n", exec.ExitCode)
}
