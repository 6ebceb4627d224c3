// Package demo plays the agents of the demo: sessions on an embedded harness
// that ask for believable work on a sample project, and react to what comes
// back. They only ask; what is done with it is the operator's decision.
package demo

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"countersign/harness"
	"countersign/worker/api/wire"
)

//go:embed all:project
var project embed.FS

// Environment is the environment that the demo's sessions belong to.
const Environment = "demo"

// patience is how long a session waits for one result. It is longer than the
// limit of a decision, so that an unanswered item is seen to expire.
const patience = 10 * time.Minute

// CopyProject writes the sample project to a directory.
func CopyProject(dir string) error {
	return fs.WalkDir(project, "project", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("project", filepath.FromSlash(path))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := project.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
}

// GiveAway takes an item from whoever holds it and gives it to another worker,
// as if its lease had lapsed and that worker had been quicker.
type GiveAway func(ctx context.Context, itemID, worker string) error

// Play has the sessions ask for their work until all have ended or ctx ends.
func Play(ctx context.Context, client *harness.Client, rival Rival, log *slog.Logger) {
	var all sync.WaitGroup
	for _, session := range []struct {
		after time.Duration
		id    string
		title string
		play  func(context.Context, *agent) error
	}{
		{0, "sess_rounding", "Fix the rounding of discounts", fixRounding},
		{4 * time.Second, "sess_audit", "Audit the receipts", auditReceipts},
		{9 * time.Second, "sess_overnight", "Watch the shop overnight", stoppedMidway},
		{15 * time.Second, "sess_second_look", "A second look at the changes", takenByAnother},
	} {
		all.Go(func() {
			if !pause(ctx, session.after) {
				return
			}
			err := start(ctx, client, rival, harness.NewSession{ID: session.id, EnvironmentID: Environment, Title: session.title}, session.play)
			if err != nil && ctx.Err() == nil {
				log.Warn("a demo session ended early", "session", session.title, "error", err)
			}
		})
	}
	all.Wait()
}

// Rival is the other worker that takes an item away.
type Rival struct {
	ID       string
	GiveAway GiveAway
	Complete func(ctx context.Context, itemID, worker string, result json.RawMessage, failed bool) error
}

// agent is one session as its agent sees it.
type agent struct {
	client  *harness.Client
	other   Rival
	session string
}

func start(ctx context.Context, client *harness.Client, other Rival, n harness.NewSession, play func(context.Context, *agent) error) error {
	s, err := client.CreateSession(ctx, n)
	if err != nil {
		return err
	}
	if _, err := client.SetStatus(ctx, s.ID, harness.SessionRunning); err != nil {
		return err
	}
	if err := play(ctx, &agent{client, other, s.ID}); err != nil {
		return err
	}
	s, err = client.Session(ctx, s.ID)
	if err != nil || s.InternalStatus != harness.SessionRunning {
		return err
	}
	_, err = client.SetStatus(ctx, s.ID, harness.SessionCompleted)
	return err
}

// result is what an agent learns of one call.
type result struct {
	done bool   // it was done, whichever way it went; not declined, lost or failed
	exit int    // of an exec
	text string // stdout, a file, or words
}

// ask puts one call in the queue and waits for what becomes of it. What is not
// done is no error: an agent goes on.
func (a *agent) ask(ctx context.Context, kind string, payload any) (result, error) {
	item, err := a.client.Enqueue(ctx, a.session, kind, payload)
	if err != nil {
		return result{}, err
	}
	return a.await(ctx, kind, item.ID)
}

func (a *agent) await(ctx context.Context, kind, id string) (result, error) {
	got, err := a.client.Await(ctx, id, patience)
	var ended *harness.AwaitError
	if errors.As(err, &ended) {
		return result{text: ended.Message}, nil
	}
	if err != nil {
		return result{}, err
	}
	return read(kind, got), nil
}

func read(kind string, got harness.Result) result {
	var exec wire.ExecResult
	var text string
	switch {
	case got.Failed:
		return result{text: string(got.Result)}
	case kind == wire.KindExec && json.Unmarshal(got.Result, &exec) == nil:
		declined := exec.ExitCode == 126
		return result{done: !declined, exit: exec.ExitCode, text: exec.Stdout + exec.Stderr}
	case kind == wire.KindRead && json.Unmarshal(got.Result, &text) == nil:
		return result{done: true, text: text}
	}
	return result{done: true, text: string(got.Result)}
}

func (a *agent) exec(ctx context.Context, command string) (result, error) {
	return a.ask(ctx, wire.KindExec, wire.Exec{Command: command})
}

// think is the pause of a model between two calls; false when ctx ended.
func think(ctx context.Context) bool { return pause(ctx, 2*time.Second) }

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note is a file that an agent leaves about what it was told.
func note(title string, parts ...string) string {
	return fmt.Sprintf("# %s\n\n%s\n", title, strings.Join(parts, "\n\n"))
}
