package store

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"countersign/worker"
)

// maxBatch is how many steps share a commit at most.
const maxBatch = 64

// maxRecords is how many open holds are remembered as they are recorded.
const maxRecords = 256

// writer commits the steps of concurrent callers together: while one commit
// waits for the disk, the next steps gather, and one goroutine takes them all
// into one transaction.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by text; used by the goroutine only
	head  []byte               // hash of the newest entry; nil: not known. The goroutine's too

	records map[worker.HoldID]record // of open holds, as they are written down; the goroutine's too

	entered int // entries since the last that were made searchable. The goroutine's too

	mu     sync.RWMutex // held for reading while a step is put into queue
	closed bool
	queue  chan *step
	ended  chan struct{}

	commits atomic.Int64 // so far; steps per commit is what sharing gains
}

// step is one change that succeeds or fails as a whole. It is made once more where
// a transaction it was in is undone for another's sake.
type step struct {
	ctx    context.Context
	change func(*writer) error
	done   chan error // takes the one answer without waiting
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		conn: conn, stmts: map[string]*sql.Stmt{}, records: map[worker.HoldID]record{},
		queue: make(chan *step, maxBatch), ended: make(chan struct{}),
	}
	go w.run()
	return w, nil
}

// do makes one change durable. When it returns nil, the change is committed;
// when it returns ctx.Err(), the change may be committed or not.
func (w *writer) do(ctx context.Context, change func(*writer) error) error {
	s := &step{ctx: ctx, change: change, done: make(chan error, 1)}
	if err := w.enqueue(s); err != nil {
		return err
	}
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) enqueue(s *step) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.queue <- s:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// close lets the goroutine finish what is queued. It returns false if the writer
// was closed before.
func (w *writer) close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.closed = true
	close(w.queue)
	<-w.ended
	return true
}

func (w *writer) run() {
	defer close(w.ended)
	defer w.release()
	rest := time.NewTimer(quiet) // an earlier program may have left something
	defer rest.Stop()
	for {
		select {
		case first, open := <-w.queue:
			if !open {
				return
			}
			w.commit(w.gather(first))
			if w.entered < searchableBatch {
				rest.Reset(quiet)
				continue
			}
		case <-rest.C:
		}
		if w.follow() {
			rest.Reset(0)
		}
	}
}

// follow makes a batch of the journal searchable, and says whether there may be
// more. What fails is tried again after the next step.
func (w *writer) follow() (more bool) {
	_, err := w.transact(func() (err error) {
		_, more, err = w.makeSearchable()
		return err
	})
	w.entered = 0
	return more && err == nil
}

// release gives the connection back. Its statements are the connection's for as
// long as they are open, and keep its files open with them.
func (w *writer) release() {
	for _, stmt := range w.stmts {
		_ = stmt.Close()
	}
	_ = w.conn.Close()
}

// gather takes what is queued already; it never waits for more.
func (w *writer) gather(first *step) []*step {
	runtime.Gosched() // callers that were just answered may have their next step ready
	batch := []*step{first}
	for len(batch) < maxBatch {
		select {
		case s, open := <-w.queue:
			if !open {
				return batch
			}
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

// commit makes the changes of a batch in one transaction and answers each step.
// Where that fails none is made, and each is tried by itself: that is rare, and to
// be able to undo one among others costs all of them more than it saves.
func (w *writer) commit(batch []*step) {
	batch = slices.DeleteFunc(batch, func(s *step) bool {
		err := s.ctx.Err()
		if err != nil {
			s.done <- err
		}
		return err != nil
	})
	if len(batch) == 0 {
		return
	}
	began, err := w.together(batch)
	alone := err != nil && len(batch) > 1
	for i, s := range batch {
		if alone && began {
			began, err = w.together(batch[i : i+1])
		}
		s.done <- err
	}
}

// together makes changes in one transaction, all or none.
func (w *writer) together(batch []*step) (began bool, err error) {
	began, err = w.transact(func() error {
		for _, s := range batch {
			if err := s.change(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		w.commits.Add(1)
	}
	return began, err
}

// transact makes changes in one transaction. Where it could not even begin one,
// another process keeps the file to itself, and has been waited for.
func (w *writer) transact(changes func() error) (began bool, err error) {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	err = changes()
	if err == nil {
		_, err = w.exec("COMMIT")
	}
	if err != nil {
		// After a full disk SQLite may have rolled back by itself: then this fails,
		// and that is as good.
		_, _ = w.exec("ROLLBACK")
		w.head = nil
		clear(w.records)
	}
	return true, err
}

// exec and row run one statement of a change. They take no context: a statement
// that is interrupted half-way would undo the steps of other callers.
//
// Each text is prepared once. Where it joins tables, SQLite would plan it anew for
// each value that is bound to "column = ?", which takes longer than to run it; it
// does not for "column = +?".
func (w *writer) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := w.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// changed is exec that also says whether the statement changed a row.
func (w *writer) changed(query string, args ...any) (bool, error) {
	result, err := w.exec(query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// inserted is exec that returns the number of the inserted row.
func (w *writer) inserted(query string, args ...any) (int64, error) {
	result, err := w.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (w *writer) row(query string, args []any, into ...any) error {
	stmt, err := w.prepared(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(context.Background(), args...).Scan(into...)
}

func (w *writer) rows(query string, args ...any) (*sql.Rows, error) {
	stmt, err := w.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(context.Background(), args...)
}

func (w *writer) prepared(query string) (*sql.Stmt, error) {
	if stmt := w.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	w.stmts[query] = stmt
	return stmt, nil
}
