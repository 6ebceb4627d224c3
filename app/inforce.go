package main

import (
	"context"
	"sync"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/ui"
	"countersign/worker"
	"countersign/worker/policy"
)

// placedBook is a connection's book, before its rules are read.
type placedBook struct {
	connection string
	root       string
	book       *policy.Book
}

// loadRules puts the rules into force, once it is known where commands find
// their programs. Rules that cannot be used leave everything to be asked for;
// only a file that was named for this start ends it.
func (s *station) loadRules() error {
	defer close(s.rulesLoaded)
	for _, b := range s.books {
		where := policyContext(s.place, s.config, s.rules.File(), b.root, s.env())
		s.rules.Serve(b.connection, b.book, where)
	}
	named := s.rulesFile != ""
	err := s.rules.Load(named)
	switch state := s.rules.State(); {
	case err != nil && named:
		return &config.Invalid{Name: "--rules", Value: s.rulesFile, Expected: "expected a rule file that can be used: " + err.Error()}
	case err != nil && state.Broken == "":
		s.tell("The rules could not be read; " + inForceWords(state) + " " + err.Error())
	case err != nil:
		s.log.Warn("The rule file cannot be used; " + inForceWords(state) + " " + err.Error())
	case state.Pending != nil:
		s.warnPending(state)
	case len(state.Counts) > 0:
		s.log.Info("rules are in force", "file", state.File, "rules", len(state.Counts), "hash", state.Hash[:12])
	}
	return nil
}

func inForceWords(state policy.RulesState) string {
	if state.Hash == "" {
		return "no rule is in force, so every item is asked for."
	}
	return "what was in force before still is."
}

// warnPending says in the log what a window says by itself.
func (s *station) warnPending(state policy.RulesState) {
	s.log.Warn("The rule file was changed outside Countersign; " + inForceWords(state) +
		` To see the change and accept it: ` + s.place.self() + ` rules pending`)
}

// followRules has changes of the rule file shown to the operator while the
// station runs, and ends grants whose time is over.
func (s *station) followRules(ctx context.Context) {
	select {
	case <-s.rulesLoaded:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var lapsing sync.WaitGroup
	lapsing.Go(func() { s.endLapsedGrants(ctx) })
	defer lapsing.Wait()
	defer cancel()
	err := config.WatchFile(ctx, s.rules.File(), func() {
		if !s.rules.Look() {
			return
		}
		state := s.rules.State()
		if state.Broken != "" {
			s.log.Warn("The rule file was changed and cannot be used; " + inForceWords(state) + " " + state.Broken)
			return
		}
		s.warnPending(state)
	})
	if err != nil {
		s.log.Warn("changes of the rule file will not be seen before a restart", "error", err)
	}
}

// endLapsedGrants ends grants whose time is over, until ctx ends.
func (s *station) endLapsedGrants(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.grants.EndLapsed(time.Now()); err != nil {
				s.log.Warn("a grant whose time is over is still kept on disk; nothing uses it", "error", err)
			}
		}
	}
}

// rulebook is what the window and the control socket see of the rules.
type rulebook struct{ *station }

var (
	_ ui.Rulebook      = rulebook{}
	_ control.Rulebook = rulebook{}
)

// State is what is in force, and what waits to be seen.
func (r rulebook) State() policy.RulesState { return r.rules.State() }

// Accept puts a change of the file that was seen into force.
func (r rulebook) Accept(hash string) error {
	if err := r.rules.Accept(hash); err != nil {
		return err
	}
	r.log.Info("the changed rules are in force", "hash", hash)
	r.desk.Rejudge()
	return nil
}

// Try says what would be said of a held item with a rule more.
func (r rulebook) Try(id worker.HoldID, rule string) (policy.Explanation, error) {
	item, err := r.desk.Asked(id)
	if err != nil {
		return policy.Explanation{}, err
	}
	return r.rules.Try(item, rule)
}

// Add puts a rule for a held item into the file and into force, and with it
// decides what waits and is allowed by it.
func (r rulebook) Add(id worker.HoldID, rule string) error {
	item, err := r.desk.Asked(id)
	if err != nil {
		return err
	}
	if err := r.rules.Add(item, rule); err != nil {
		return err
	}
	r.desk.Rejudge()
	return nil
}

// AddRules puts any number of rules into the file and into force, and with them
// decides what waits and is allowed by them.
func (r rulebook) AddRules(rules string) error {
	if err := r.rules.AddRules(rules); err != nil {
		return err
	}
	r.log.Info("rules were added and are in force", "hash", r.rules.State().Hash)
	r.desk.Rejudge()
	return nil
}

// Explain says what would happen to an item that nobody has asked for.
func (r rulebook) Explain(i policy.Item) (policy.Explanation, error) { return r.rules.Explain(i) }

// Follow has f called when State may have changed.
func (r rulebook) Follow(f func()) { r.rules.Follow(f) }
