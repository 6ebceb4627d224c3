package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/worker"
	"countersign/worker/api/wire"
	"countersign/worker/safetext"
)

// The commands below ask the Countersign that runs for the data directory.

type approveCommand struct {
	ID   worker.HoldID `arg:"" help:"The item's number, as ps lists it."`
	Code string        `arg:"" help:"The code that show tells: it stands for exactly what was shown."`

	Session bool   `xor:"how" help:"Approve what is identical to it, too, until its session ends."`
	Always  bool   `xor:"how" help:"Add a rule that allows this and little else, and have it decide."`
	Reads   string `xor:"how" help:"Of a read or a list: allow those of its session below this directory of the work directory, too, for 15 minutes; . for all of it." placeholder:"DIR"`
	Edited  bool   `xor:"how" help:"Run the command, or write the content, that is read from stdin instead; the agent is told."`
}

type declineCommand struct {
	ID      worker.HoldID `arg:"" help:"The item's number."`
	Message string        `help:"Words for the agent." placeholder:"M"`
}

type releaseCommand struct {
	ID worker.HoldID `arg:"" help:"The item's number."`
}

type stopCommand struct {
	ID  worker.HoldID `arg:"" optional:"" help:"The item's number."`
	All bool          `help:"Stop all that runs, and pause."`
}

type pauseCommand struct {
	For *time.Duration `help:"Resume by itself after this long." placeholder:"D"`
}

type resumeCommand struct{}

type versionCommand struct{}

// asking runs fn with a client of the running instance.
func (g *global) asking(fn func(context.Context, *control.Client) error) error {
	p, err := g.place()
	if err != nil {
		return err
	}
	client := control.NewClient(p.data)
	defer client.Close()
	err = fn(context.Background(), client)
	if none := (*control.NotRunning)(nil); errors.As(err, &none) && p.isOpen() {
		return &silent{p.data}
	}
	return err
}

// Run implements the command.
func (c *approveCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		more, err := c.approve(ctx, client)
		if err != nil {
			return fmt.Errorf("approve %d: %w%s", c.ID, err, over(ctx, g, client, c.ID))
		}
		fmt.Printf("Approved %d. It runs once the harness accepts; \"%s tail %d\" follows it.%s\n", c.ID, g.self(), c.ID, more)
		return nil
	})
}

// approve approves the item as the flags say, and returns what else there is to
// tell.
func (c *approveCommand) approve(ctx context.Context, client *control.Client) (more string, err error) {
	switch {
	case c.Session:
		return " So does what is identical to it, until its session ends.", client.ApproveForSession(ctx, c.ID, c.Code)
	case c.Reads != "":
		return " So do reads and lists of its session below that directory, for 15 minutes.",
			client.AllowReads(ctx, c.ID, c.Code, path.Clean(filepath.ToSlash(c.Reads)))
	case c.Always:
		rule, err := client.ApproveAlways(ctx, c.ID, c.Code)
		return " This rule was added:\n" + safetext.Block(rule), err
	case c.Edited:
		return " The agent is told that you changed it.", c.approveEdited(ctx, client)
	}
	return "", client.Approve(ctx, c.ID, c.Code)
}

// approveEdited puts what stdin says in the place of the item's command or content,
// and leaves the rest as it is.
func (c *approveCommand) approveEdited(ctx context.Context, client *control.Client) error {
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	v, ok := s.Find(c.ID)
	if !ok {
		return worker.ErrNoHold
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 8<<20))
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	if !utf8.Valid(text) {
		return errors.New("what stdin has is not text in UTF-8")
	}
	if v.Item.Kind == wire.KindExec && strings.TrimSpace(string(text)) == "" {
		return errors.New("stdin has no command; expected the one that is to run instead")
	}
	payload, err := worker.EditPayload(v.Item, string(text))
	if err != nil {
		return err
	}
	return client.ApproveEdited(ctx, c.ID, c.Code, payload)
}

// Run implements the command.
func (c *declineCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if err := client.Decline(ctx, c.ID, c.Message); err != nil {
			return fmt.Errorf("decline %d: %w%s", c.ID, err, over(ctx, g, client, c.ID))
		}
		fmt.Printf("Declined %d. Nothing ran.\n", c.ID)
		return nil
	})
}

// Run implements the command.
func (c *releaseCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if err := client.Release(ctx, c.ID); err != nil {
			return fmt.Errorf("release %d: %w%s", c.ID, err, over(ctx, g, client, c.ID))
		}
		fmt.Printf("Released %d. Nothing ran here; the harness hands it out again once its lease is over (a minute, unless it was set otherwise).\n", c.ID)
		return nil
	})
}

// Run implements the command.
func (c *stopCommand) Run(g *global) error {
	if c.All == (c.ID != 0) {
		return &config.Invalid{Name: "stop", Expected: "expected the number of an item, or --all"}
	}
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if c.All {
			if err := client.StopAll(ctx); err != nil {
				return fmt.Errorf("stop everything: %w", err)
			}
			fmt.Printf("Stopping all that runs. Paused: \"%s resume\" goes on.\n", g.self())
			return nil
		}
		if err := client.Stop(ctx, c.ID); err != nil {
			return fmt.Errorf("stop %d: %w%s%s", c.ID, err, c.instead(ctx, client, g.self()), over(ctx, g, client, c.ID))
		}
		fmt.Printf("Stopping %d.\n", c.ID)
		return nil
	})
}

// over says what became of an item that nothing can be done with any more; "" of
// one that waits or runs, or was never held.
func over(ctx context.Context, g *global, client *control.Client, id worker.HoldID) string {
	s, err := client.Status(ctx)
	if err != nil {
		return ""
	}
	v, held := s.Find(id)
	if !held {
		p, err := g.place()
		if err != nil {
			return ""
		}
		if v, err = past(ctx, p, id); err != nil {
			return ""
		}
	} else if !v.Closed {
		return ""
	}
	return fmt.Sprintf("; it is over (%s): \"%s show %d\" tells", v.Word, g.self(), id)
}

// instead says what can be done with an item that waits, where nothing is to be
// stopped.
func (c *stopCommand) instead(ctx context.Context, client *control.Client, self string) string {
	s, err := client.Status(ctx)
	if v, ok := s.Find(c.ID); err != nil || !ok || v.Closed || v.Execution != worker.NotStarted {
		return ""
	}
	return fmt.Sprintf(": \"%s decline %d\" declines it, \"%s release %d\" lets it go", self, c.ID, self, c.ID)
}

// Run implements the command.
func (c *pauseCommand) Run(g *global) error {
	if c.For != nil {
		if err := config.DurationWithin(*c.For, time.Second, 7*24*time.Hour); err != nil {
			return &config.Invalid{Name: "--for", Value: c.For.String(), Expected: err.Error()}
		}
	}
	return g.asking(func(ctx context.Context, client *control.Client) error {
		var until time.Time
		words := fmt.Sprintf("Paused. What runs goes on; \"%s resume\" ends the pause.", g.self())
		if c.For != nil {
			until = time.Now().Add(*c.For)
			words = fmt.Sprintf("Paused until %s. What runs goes on.", until.Format("Mon 15:04:05"))
		}
		if err := client.Pause(ctx, until); err != nil {
			return fmt.Errorf("pause: %w", err)
		}
		fmt.Println(words)
		return nil
	})
}

// Run implements the command.
func (c *resumeCommand) Run(g *global) error {
	return g.asking(func(ctx context.Context, client *control.Client) error {
		if err := client.Resume(ctx); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
		fmt.Println("Resumed.")
		return nil
	})
}

// Run implements the command.
func (versionCommand) Run() error {
	fmt.Println("countersign " + version)
	return nil
}

// silent says that another Countersign has the data directory and does not answer.
type silent struct{ dir string }

func (e *silent) Error() string {
	return fmt.Sprintf("A Countersign has data directory %s open and does not answer. It may be starting or ending, "+
		"or ask something in a window of its own, such as whether a change of config.toml is yours. Nothing was done here.", e.dir)
}

// raiseFirst brings the window of the instance that runs already to the front,
// for a second start of the desktop app.
func raiseFirst(ctx context.Context, dir string) error {
	client := control.NewClient(dir)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := client.Status(ctx)
	var none *control.NotRunning
	for errors.As(err, &none) && ctx.Err() == nil { // the first one may just be starting
		time.Sleep(100 * time.Millisecond)
		status, err = client.Status(ctx)
	}
	switch {
	case errors.As(err, &none), ctx.Err() != nil:
		return &silent{dir}
	case err != nil:
		return err
	case !status.Window:
		return fmt.Errorf("a headless worker (process %d) is running for data directory %s: end it first, or use another --data-dir", status.PID, dir)
	}
	if err := client.Raise(ctx); err != nil {
		return err
	}
	fmt.Printf("Countersign is already running (process %d); its window was raised.\n", status.PID)
	return nil
}

func joinNonEmpty(separator string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, separator)
}
