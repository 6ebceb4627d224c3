package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"countersign/app/config"
	"countersign/app/control"
	"countersign/store"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/execute"
	"countersign/worker/policy"
)

// assembly says what a station is made of.
type assembly struct {
	place      place
	fromFile   config.Config      // as the file says it
	config     config.Config      // and as it is in force: flags may give the connection
	flagged    bool               // they do
	given      config.Credentials // from flags or the process environment
	keyring    config.Keyring     // where else to look for them
	approve    policy.Mode
	rulesFile  string // named on the command line; "" for the one in the configuration directory
	workerID   string // "" for the one that the data directory keeps
	once       bool
	grace      time.Duration
	log        *slog.Logger
	level      *slog.LevelVar
	levelGiven bool // on the command line, where it outweighs the configuration
}

// station is one Countersign at work: the store, an engine for each connection,
// the desk over them and what keeps it all in step. The caller holds the lock
// of the data directory.
type station struct {
	assembly
	store       *store.Store
	grants      *policy.Grants
	rules       *policy.Source
	rulesLoaded chan struct{}   // closed once they are in force, as far as they can be
	env         func() []string // the login environment, once it is captured
	engines     []*worker.Engine
	books       []placedBook
	desk        *worker.Desk
	relay       *relay
	capturing   sync.WaitGroup // the login environment
	banner      func(string)   // says something to the operator; the log by default
	raise       func()         // nil without a window
	confined    string         // what commands are kept from
	leftOpen    []worker.LeftOpen
	quitting    atomic.Bool
}

// openStation makes a station. It claims nothing yet.
func openStation(ctx context.Context, a assembly) (*station, error) {
	if !a.levelGiven {
		a.level.Set(a.config.LogLevel)
	}
	if err := shield(); err != nil {
		a.log.Warn("the memory of this process could not be shielded from others of this user", "error", err)
	}
	if err := a.place.keepCrashes(); err != nil {
		a.log.Warn("crashes will not be kept", "error", err)
	}
	s := &station{assembly: a, relay: newRelay(a.config.Notifications.Waiting), banner: func(string) {}, rulesLoaded: make(chan struct{})}
	var err error
	if s.store, err = store.Open(ctx, a.place.database()); err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	if err := s.guard(); err != nil {
		s.close()
		return nil, err
	}
	s.rules = policy.NewSource(cmp.Or(a.rulesFile, a.place.rulesFile()), s.store)
	if err := s.connect(ctx); err != nil {
		s.close()
		return nil, err
	}
	s.desk = worker.NewDesk(s.engines...)
	return s, nil
}

// connect makes an engine for each connection.
func (s *station) connect(ctx context.Context) error {
	if len(s.config.Connections) == 0 {
		return nil
	}
	paused, until, err := s.store.Paused(ctx)
	if err != nil {
		return fmt.Errorf("read whether Countersign is paused: %w", err)
	}
	if !until.IsZero() && !until.After(time.Now()) {
		paused = false
	}
	keeper, err := execute.NewKeeper() // before any other program is started
	if err != nil {
		s.log.Warn("commands run without a helper: what leaves their process group is not stopped with them", "error", err)
	}
	if s.grants, err = policy.NewGrants(s.store); err != nil {
		return err
	}
	s.env = sync.OnceValue(func() []string {
		env, err := execute.CaptureLoginEnv(ctx, 5*time.Second)
		if err != nil {
			s.log.Warn("the login environment could not be had; commands get the one this program was started with", "error", err)
		}
		return env
	})
	s.capturing.Go(func() { s.env() }) // a slow profile delays the work, not the window
	if s.confined, err = confinement(s.config.Confinement.Confine); err != nil {
		s.log.Error("commands are to be confined and cannot be: none will run", "error", err)
	} else if s.config.Confinement.Confine {
		s.log.Info("commands are confined", "level", s.confined)
	}
	for _, c := range s.config.Connections {
		e, err := s.engine(ctx, c, keeper, paused)
		if err != nil {
			return err
		}
		if paused && !until.IsZero() {
			e.Pause(until)
		}
		s.engines = append(s.engines, e)
	}
	return nil
}

// confinement says for people what commands are kept from. The error is of ones
// that are to be confined and cannot be.
func confinement(asked bool) (words string, err error) {
	if !asked {
		return "none: an approved command can do all that you can", nil
	}
	if words, err = execute.ConfinementLevel(); err != nil {
		words = "asked for and not to be had, so no command runs: " + err.Error()
	}
	return words, err
}

func (s *station) engine(ctx context.Context, c config.Connection, keeper *execute.Keeper, paused bool) (*worker.Engine, error) {
	dir, err := config.CheckWorkDir(c.WorkDir, s.place.own()...)
	if err != nil {
		return nil, &config.Invalid{Name: "the work directory of " + c.Name, Value: fmt.Sprintf("%q", c.WorkDir), Expected: err.Error()}
	}
	given := s.given
	if len(s.config.Connections) > 1 && given != (config.Credentials{}) {
		// Each key belongs to one harness and must not be shown to another.
		s.log.Warn("the credentials in the environment are for one connection and there are several; they are not used", "connection", c.Name)
		given = config.Credentials{}
	}
	keys, err := config.FindCredentials(ctx, c, given, s.keyring, s.place.config, s.log)
	if err != nil {
		return nil, err
	}
	if keys != (config.Credentials{}) && c.Exposed() {
		s.log.Warn("the keys are sent over the network unencrypted; better use https", "connection", c.Name, "harness", c.Harness)
	}
	client, err := api.New(api.Options{Origin: c.Harness, APIKey: keys.APIKey, EnvironmentID: c.EnvironmentID, EnvironmentKey: keys.EnvironmentKey})
	if err != nil {
		return nil, fmt.Errorf("connection %s: %w", c.Name, err)
	}
	writable, err := config.WritablePlaces(s.config.Confinement, execute.CachePresets, s.place.own()...)
	if err != nil {
		return nil, err
	}
	book, err := policy.NewBook(policy.Context{Root: dir}, s.approve, s.grants)
	if err != nil {
		return nil, err
	}
	s.books = append(s.books, placedBook{c.Name, dir, book})
	runner, err := execute.New(execute.Options{
		Dir: dir, Keeper: keeper, Confine: s.config.Confinement.Confine, WritablePaths: writable,
		Env: s.env, PassEnv: s.config.Environment.Pass, RemoveEnv: s.config.Environment.Remove,
		Grace: s.config.Limits.StopGrace, ReportLimit: s.config.Limits.ReportBytes, TranscriptLimit: int64(s.config.Limits.TranscriptBytes),
		ReadLimit: int64(s.config.Limits.ReadBytes), ListLimit: s.config.Limits.ListEntries,
		Hidden: func(t execute.Task, rel string) bool {
			return book.Rules().Hidden(policy.Item{Task: t, Connection: c.Name}, rel)
		},
	})
	if err != nil {
		return nil, err
	}
	id := s.workerID
	if id == "" {
		if id, err = s.store.WorkerID(ctx, c.Harness, c.EnvironmentID); err != nil {
			return nil, fmt.Errorf("read the worker id: %w", err)
		}
	}
	return worker.New(worker.Config{
		Name: c.Name, Origin: c.Harness, Environment: c.EnvironmentID, WorkerID: id,
		Harness: client, Journal: s.store, Policy: book, Runner: runner,
		OutputDir: s.place.outputs(), Lease: c.Lease, DecisionTimeout: c.DecisionTimeout,
		MaxHeld: c.MaxHeld, MaxRunning: c.MaxRunning, Poll: worker.Poll{Active: c.Interval, Idle: c.Interval},
		Observer: s.relay, Log: s.log, Paused: paused, Once: s.once,
		RemovedEnv: runner.RemovedEnv, Confinement: s.confined,
	})
}

// run works until ctx ends and everything that was started has ended, or until
// the engines have ended by themselves. With the cause worker.ErrQuitWhenDone
// what runs may end by itself; with any other it has the grace period.
func (s *station) run(ctx context.Context) error {
	socket, err := control.Listen(s.place.data)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer context.AfterFunc(ctx, func() { s.quitting.Store(true) })()
	s.tellLeftOpen(ctx)
	beside, endBeside := context.WithCancel(context.WithoutCancel(ctx))
	var around sync.WaitGroup
	around.Go(func() {
		server := control.Server{Desk: s.desk, Rules: rulebook{s}, Raise: s.raise, Tell: s.tell, Version: version, Log: s.log,
			Quitting: s.quitting.Load, LeftOpen: s.leftOpen}
		if err := server.Serve(beside, socket); err != nil {
			fail(err)
		}
	})
	around.Go(func() { s.keepPause(beside) })
	around.Go(func() { s.followConfig(beside) })
	around.Go(func() { s.followRules(beside) })

	work, endWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endWork(nil)
	stop := context.AfterFunc(ctx, func() { endWork(worker.ErrQuitWhenDone) })
	defer stop()
	var engines sync.WaitGroup
	begin := sync.OnceValue(func() error {
		s.capturing.Wait() // a start has to follow its accept at once
		return s.loadRules()
	})
	for _, e := range s.engines {
		engines.Go(func() {
			if err := begin(); err != nil {
				fail(err)
				return
			}
			if err := e.Run(work); err != nil {
				fail(err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { engines.Wait(); close(ended) }()
	if len(s.engines) == 0 {
		<-ctx.Done()
	}
	select {
	case <-ended:
	case <-ctx.Done():
		s.windDown(context.Cause(ctx), ended)
	}
	endBeside()
	around.Wait()
	if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(cause, errQuit) && !errors.Is(cause, worker.ErrQuitWhenDone) {
		return cause
	}
	return nil
}

// errQuit is the cause of a quit that stops what still runs after the grace
// period; errQuitNow allows none.
var (
	errQuit    = errors.New("quitting")
	errQuitNow = fmt.Errorf("%w at once", errQuit)
)

// windDown waits for the engines to end, as long as the cause lets them take.
func (s *station) windDown(cause error, ended <-chan struct{}) {
	var over <-chan time.Time
	switch {
	case errors.Is(cause, worker.ErrQuitWhenDone):
	case errors.Is(cause, errQuitNow):
		over = time.After(0)
	default:
		if n := len(s.desk.Snapshot().Running); n > 0 {
			s.log.Info("waiting for what runs; a second signal ends at once", "running", n, "grace", s.grace)
		}
		over = time.After(s.grace)
	}
	select {
	case <-ended:
		return
	case <-over:
	}
	s.hurry()
	<-ended
}

// hurry stops what still runs while the station quits.
func (s *station) hurry() {
	for _, e := range s.engines {
		e.Hurry()
	}
}

// attach has the window told of what happens, before run.
func (s *station) attach(w window) {
	s.raise, s.banner = w.Raise, w.Banner
	observer := worker.Observer(w)
	s.relay.to.Store(&observer)
}

// window is what a station wants of one.
type window interface {
	worker.Observer
	Raise()
	Banner(text string)
}

// keepPause writes a pause down when it begins and ends, so that it outlasts a
// restart.
func (s *station) keepPause(ctx context.Context) {
	if len(s.engines) == 0 {
		return
	}
	first := s.desk.Snapshot()
	paused, until := first.Paused, first.PausedUntil
	for last := false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-s.relay.changed:
		}
		now := s.desk.Snapshot()
		s.relay.seen(now)
		if now.Paused == paused && now.PausedUntil.Equal(until) {
			continue
		}
		if err := s.store.SetPaused(context.WithoutCancel(ctx), now.Paused, now.PausedUntil); err != nil {
			s.log.Warn("the pause could not be written down; a restart will not know of it", "error", err)
			continue
		}
		paused, until = now.Paused, now.PausedUntil
	}
}

// close releases what openStation took.
func (s *station) close() {
	s.capturing.Wait()
	if err := s.store.Close(); err != nil {
		s.log.Warn("the journal did not close well", "error", err)
	}
}

// withSignals ends the returned context with errQuit at the first SIGINT or
// SIGTERM, and the process at the second: the journal keeps the truth.
func withSignals(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel(errQuit)
		case <-ctx.Done():
		}
		<-signals
		os.Exit(exitFault)
	}()
	return ctx, cancel
}
