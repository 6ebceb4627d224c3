package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker/policy"
)

// atWork is what the Countersign that runs says of itself: what is in force is
// there, not in files.
type atWork struct {
	none        bool // there is none, for sure
	silent      bool // there may be one, which does not say
	connections []config.Connection
	rules       *policy.RulesState // nil where they are not known
}

// askPatience is how long commands that can do without an answer wait for it.
const askPatience = 2 * time.Second

// askRunning asks the one that runs. Where it does not say, commands about rules
// go by the files alone.
func askRunning(ctx context.Context, data string) (a atWork) {
	client := control.NewClient(data)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	status, err := client.Status(ctx)
	if err != nil {
		var none *control.NotRunning
		a.none = errors.As(err, &none)
		a.silent = !a.none
		return a
	}
	for _, v := range status.Snapshot.Connections {
		a.connections = append(a.connections, config.Connection{Name: v.Name, Harness: v.Origin, EnvironmentID: v.Environment, WorkDir: v.WorkDir})
	}
	if state, err := client.Rules(ctx); err == nil && (state.Mode != "" || state.Hash != "" || state.Pending != nil) {
		a.rules = &state // before they are loaded there is nothing to compare with
	}
	return a
}

// notInForce says in words that a change of the rule file waits to be seen; "" where
// the file is in force, will be at the first start that finds it, or that is not
// known. hash is the file's, "" where it is not there.
func (r reading) notInForce(ctx context.Context, hash string) string {
	yet := "this file is not in force yet: it was changed outside Countersign; "
	if hash == "" {
		yet = "that it is gone is not in force yet; "
	}
	hash = hashInForce(hash)
	shows := `"` + r.self + ` rules pending" shows the change`
	switch state := r.running.rules; {
	case state != nil && state.File == r.file && hash != hashInForce(state.Hash):
		return yet + inForceWords(*state) + " " + shows + ", with the code that puts it into force."
	case r.running.silent:
		return "whether this file is in force is not known: a Countersign runs, and does not say."
	case r.running.none && r.keptOther(ctx, hash):
		return yet + "what was in force before still is, also at the next start. While Countersign runs, " + shows + ", with the code that puts it into force."
	}
	return ""
}

// hashInForce is a hash to compare: no file is as good as an empty one.
func hashInForce(hash string) string {
	if hash == "" {
		return hashOf(nil)
	}
	return hash
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keptOther says whether another text of the file was in force last.
func (r reading) keptOther(ctx context.Context, hash string) (other bool) {
	_ = withHistory(ctx, r.place, func(s *store.Store) error { // without a journal nothing ever was
		var kept policy.KeptRules = s
		before, err := kept.RulesInForce(r.file)
		other = err == nil && before != nil && hashOf(before) != hash
		return err
	})
	return other
}
