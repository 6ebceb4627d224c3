package demo

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"countersign/worker/api/wire"
)

// fixRounding looks around, runs the tests, mends what fails, and runs them
// again. A call that is declined is done without.
func fixRounding(ctx context.Context, a *agent) error {
	if _, err := a.ask(ctx, wire.KindList, wire.List{Path: "."}); err != nil || !think(ctx) {
		return err
	}
	if _, err := a.ask(ctx, wire.KindRead, wire.Read{Path: "README.md"}); err != nil || !think(ctx) {
		return err
	}
	tests, err := a.exec(ctx, "sh tests/run.sh")
	if err != nil || !think(ctx) {
		return err
	}
	source, err := a.ask(ctx, wire.KindRead, wire.Read{Path: "src/cart.sh"})
	if err != nil || !think(ctx) {
		return err
	}
	if tests.exit != 0 && source.done {
		mended := strings.Replace(source.text, "$(($1 * (100 - $2) / 100))", "$((($1 * (100 - $2) + 50) / 100))", 1)
		if _, err := a.ask(ctx, wire.KindWrite, wire.Write{Path: "src/cart.sh", Content: mended}); err != nil || !think(ctx) {
			return err
		}
		if tests, err = a.exec(ctx, "sh tests/run.sh"); err != nil || !think(ctx) {
			return err
		}
	}
	words := "The tests were not run."
	if tests.done {
		words = "The tests say:\n\n" + indent(tests.text)
	}
	_, err = a.ask(ctx, wire.KindWrite, wire.Write{Path: "docs/rounding.md", Content: note("Rounding of discounts", words)})
	return err
}

// auditReceipts runs a command that prints for about a minute.
func auditReceipts(ctx context.Context, a *agent) error {
	audit, err := a.exec(ctx, "sh tools/audit.sh 60")
	if err != nil || !think(ctx) {
		return err
	}
	words := "The audit was not run: " + audit.text
	if audit.done {
		words = "The last line of the audit was:\n\n" + indent(lastLine(audit.text))
	}
	_, err = a.ask(ctx, wire.KindWrite, wire.Write{Path: "docs/audit.md", Content: note("Audit", words)})
	return err
}

// stoppedMidway is stopped by its owner fifteen seconds after its command was
// accepted: the worker stops the command.
func stoppedMidway(ctx context.Context, a *agent) error {
	item, err := a.client.Enqueue(ctx, a.session, wire.KindExec, wire.Exec{
		Command: "while :; do date '+%H:%M:%S the shop is open'; sleep 2; done",
	})
	if err != nil {
		return err
	}
	accepted, err := a.until(ctx, item.ID, func(i wire.Item) bool { return i.AcceptedAt != nil })
	if err != nil || !accepted || !pause(ctx, 15*time.Second) {
		return err
	}
	_, err = a.client.StopSession(ctx, a.session)
	return err
}

// takenByAnother loses its item to another worker, unless the operator is quick:
// twenty seconds after it was claimed its lease is given away.
func takenByAnother(ctx context.Context, a *agent) error {
	item, err := a.client.Enqueue(ctx, a.session, wire.KindExec, wire.Exec{Command: "wc -l README.md src/cart.sh docs/*.md"})
	if err != nil {
		return err
	}
	claimed, err := a.until(ctx, item.ID, func(i wire.Item) bool { return i.ClaimedBy != nil })
	if err != nil || !claimed || !pause(ctx, 20*time.Second) {
		return err
	}
	if err := a.other.GiveAway(ctx, item.ID, a.other.ID); err != nil {
		return nil // it was accepted, declined or released in time
	}
	if !pause(ctx, 8*time.Second) { // well inside its lease
		return nil
	}
	done, err := json.Marshal(wire.ExecResult{Stdout: "done on another machine\n"})
	if err != nil {
		return err
	}
	return a.other.Complete(ctx, item.ID, a.other.ID, done, false)
}

// until polls an item once a second until ok, and says whether it ever was
// before the item was over.
func (a *agent) until(ctx context.Context, id string, ok func(wire.Item) bool) (bool, error) {
	for {
		list, err := a.client.WorkItems(ctx, Environment)
		if err != nil {
			return false, err
		}
		for _, i := range list.Items {
			switch {
			case i.ID != id:
			case i.CompletedAt != nil || i.StoppedAt != nil:
				return false, nil
			case ok(i):
				return true, nil
			}
		}
		if !pause(ctx, time.Second) {
			return false, ctx.Err()
		}
	}
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}
