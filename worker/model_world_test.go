package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"countersign/harness"
	"countersign/worker"
	"countersign/worker/api/wire"
)

// world is one harness and the machines that work for it, all in a bubble, and a
// witness who writes down what each of them did.
type world struct {
	generation harness.Generation
	clock      *bedClock // everybody's
	harness    *harness.Harness
	handler    http.Handler
	machines   []*machine
	over       chan struct{}  // closed at the end: what a kill left hanging returns
	file       atomic.Int64   // the state of the file that every command names
	late       sync.WaitGroup // requests that are still on their way

	serving sync.Mutex // the harness answers one at a time, so that the witness has the order

	mu       sync.Mutex
	began    time.Time
	items    []*asked
	story    []string
	breaches []string
}

// asked is one item as the harness and the witness know it.
type asked struct {
	id, command string
	lasts       time.Duration
	holder      string                  // whom the harness handed it to last
	accepted    bool                    // since then
	starts      map[string]int          // by worker
	done        *wire.CompleteRequest   // what the harness recorded
	answered    map[string]map[int]bool // by worker: the answers to its completions
}

const thief = "thief" // a third worker, without an engine

func newWorld(rt *rapid.T, dir string, p play) *world {
	w := &world{
		generation: p.generation, clock: &bedClock{start: time.Now()}, began: time.Now(), over: make(chan struct{}),
	}
	h, err := harness.Open(context.Background(), harness.Options{
		Path: filepath.Join(dir, "harness.db"), Generation: p.generation, Lease: p.lease, Now: w.clock.Now,
	})
	if err != nil {
		rt.Fatal(err)
	}
	w.harness, w.handler = h, h.Handler()
	for i, name := range []string{"one", "two"} {
		m := &machine{w: w, name: name, path: filepath.Join(dir, name+".db"), asks: p.asks[i]}
		if err := m.open(); err != nil {
			rt.Fatal(err)
		}
		w.machines = append(w.machines, m)
	}
	return w
}

// end lets everything that is left return, so that the bubble can end.
func (w *world) end() {
	close(w.over)
	for _, m := range w.machines {
		m.heal()
		for _, l := range m.lives {
			l.thaw()
			l.quit(context.Canceled)
			<-l.ended
		}
	}
	w.late.Wait()
	for _, m := range w.machines {
		_ = m.store.Close()
	}
	_ = w.harness.Close()
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%8.2fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) breach(format string, args ...any) {
	w.note("BREACH: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

// enqueue puts an exec item into a session's queue. One in eight is work that no
// worker can do.
func (w *world) enqueue(session, n int, lasts time.Duration) {
	w.mu.Lock()
	it := &asked{
		command: fmt.Sprint("item-", len(w.items)), lasts: lasts,
		starts: map[string]int{}, answered: map[string]map[int]bool{},
	}
	w.items = append(w.items, it)
	w.mu.Unlock()
	work := harness.Work{Kind: wire.KindExec, Payload: encode(wire.Exec{Command: it.command})}
	if n == 7 {
		work.Kind = wire.KindCustomTool
	}
	status, answer := w.serve(fmt.Sprintf("/v1/sessions/s%d/work-items", session), encode(work))
	var stored wire.Item
	if err := json.Unmarshal(answer, &stored); err != nil || stored.ID == "" {
		w.breach("enqueue: %d %s", status, answer)
	}
	w.mu.Lock()
	it.id = stored.ID
	w.mu.Unlock()
}

func (w *world) stopSession(session int) {
	w.serve(fmt.Sprintf("/v1/sessions/s%d/stop", session), []byte("{}"))
}

// steal is a worker without an engine: it claims; or claims, accepts and runs; or
// reports besides.
func (w *world) steal(far int) {
	status, body := w.serve(wire.ClaimPath, encode(wire.ClaimRequest{WorkerID: thief}))
	var item wire.Item
	if status != http.StatusOK || json.Unmarshal(body, &item) != nil || far == 0 {
		return
	}
	it := w.item(item.ID)
	if status, _ := w.serve(wire.AcceptPath, encode(wire.HoldRequest{ID: item.ID, WorkerID: thief})); status != http.StatusOK || it.starts[thief] > 0 {
		return
	}
	w.started(it, thief)
	if far == 2 {
		w.serve(wire.CompletePath, encode(wire.CompleteRequest{ID: item.ID, WorkerID: thief, Result: resultOf(it.command, 0)}))
	}
}

// item returns what is known of an item, by its id or its command.
func (w *world) item(name string) *asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.items {
		if it.id == name || it.command == strings.TrimSuffix(name, altered) {
			return it
		}
	}
	return nil
}

// serve has the harness answer one request.
func (w *world) serve(path string, body []byte) (status int, answer []byte) {
	w.serving.Lock()
	defer w.serving.Unlock()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	status, answer = recorder.Code, recorder.Body.Bytes()
	w.witness(path, body, status, answer)
	return status, answer
}

// witness writes down what the harness did.
func (w *world) witness(path string, body []byte, status int, answer []byte) {
	if path == wire.ClaimPath && status == http.StatusNoContent {
		return
	}
	var request struct {
		wire.CompleteRequest
		Worker string `json:"worker_id"`
	}
	_ = json.Unmarshal(body, &request)
	w.note("harness: %s %s -> %d %s", path, clip(body), status, clip(answer))
	id, worker := request.ID, request.Worker
	if path == wire.ClaimPath && status == http.StatusOK {
		var item wire.Item
		_ = json.Unmarshal(answer, &item)
		id = item.ID
		if w.generation == harness.Old && worker != thief {
			w.breach("%s claimed %s of a harness that cannot accept", worker, id)
		}
	}
	it := w.item(id)
	if it == nil || id == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case path == wire.ClaimPath && status == http.StatusOK:
		it.holder, it.accepted = worker, false
	case path == wire.AcceptPath && status == http.StatusOK:
		it.accepted = true
	case path == wire.CompletePath:
		it.answer(worker, status)
		if status == http.StatusOK {
			request.WorkerID = worker
			it.done = &request.CompleteRequest
		}
	}
}

// settled writes down an answer to a completion that was not the harness's own.
func (w *world) settled(id, worker string, status int) {
	it := w.item(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	it.answer(worker, status)
}

func (it *asked) answer(worker string, status int) {
	if it.answered[worker] == nil {
		it.answered[worker] = map[int]bool{}
	}
	it.answered[worker][status] = true
}

// started is a start as the witness saw it. It sees that there is at most one: of
// the item, or where the harness hands accepted work to others, of the worker.
func (w *world) started(it *asked, worker string) {
	w.note("%s STARTS %s (%s)", worker, it.id, it.command)
	w.mu.Lock()
	it.starts[worker]++
	total := 0
	for _, n := range it.starts {
		total += n
	}
	twice := it.starts[worker] > 1 || w.generation == harness.Newest && total > 1
	starts := fmt.Sprint(it.starts)
	w.mu.Unlock()
	if twice {
		w.breach("%s ran more than once: %s", it.id, starts)
	}
	if w.generation == harness.Old {
		w.breach("%s ran %s without an accept", worker, it.id)
	}
}

// checkEnd sees, once the world is calm, that every story has its end.
func (w *world) checkEnd(rt *rapid.T) {
	synctest.Wait()
	for _, it := range w.items {
		if it.done != nil {
			w.checkHonest(it, it.done.WorkerID, *it.done)
		}
		for _, m := range w.machines {
			last, known, err := m.store.Last(context.Background(), origin, it.id)
			if err != nil {
				w.breach("%s: %v", m.name, err)
			}
			if it.starts[m.name] > 0 && (!known || last.Execution == worker.NotStarted) {
				w.breach("%s ran %s and its journal does not know", m.name, it.id)
			}
			if known && last.Outcome != nil {
				w.checkDelivered(m, it, last)
			}
		}
	}
	w.check(rt)
}

// checkDelivered sees that an outcome reached the harness, or that the harness
// would not have it, or that it was left to lapse.
func (w *world) checkDelivered(m *machine, it *asked, last worker.Hold) {
	answers := it.answered[m.name]
	lapses := last.Execution == worker.Interrupted && last.Delivery == worker.NothingToDeliver && last.Item.ClaimStatus == "queued"
	refused := last.Execution == worker.CouldNotStart && (last.Acceptance == worker.Refused || last.Acceptance == worker.Unconfirmed)
	if len(answers) == 0 && !lapses && !refused {
		w.breach("%s: the outcome of %s was lost: %+v", m.name, it.id, last.Facts)
	}
	recorded := it.done != nil && it.done.WorkerID == m.name
	if last.Delivery == worker.Delivered && !recorded {
		w.breach("%s says that %s was delivered, and the harness has nothing from it", m.name, it.id)
	}
	if recorded && !m.diskFailed && !isOfOtherWork(it.done.Result) && string(it.done.Result) != string(last.Outcome.Result) {
		w.breach("%s: the harness has %s of %s, the journal %s", m.name, clip(it.done.Result), it.id, clip(last.Outcome.Result))
	}
}

// checkHonest sees that a completion says what happened at its worker.
func (w *world) checkHonest(it *asked, worker string, c wire.CompleteRequest) {
	var result wire.ExecResult
	var failure wire.Failure
	_ = json.Unmarshal(c.Result, &result)
	_ = json.Unmarshal(c.Result, &failure)
	w.mu.Lock()
	starts := it.starts[worker]
	w.mu.Unlock()
	words := result.Stderr + failure.Message
	unstarted := result.ExitCode == 126 && strings.HasPrefix(words, "Declined") || result.ExitCode == 126 && strings.HasPrefix(words, "Not run") ||
		c.Failed && strings.HasPrefix(words, "Declined")
	unsure := result.ExitCode == 125 && strings.HasPrefix(words, "outcome unknown: interrupted")
	ran := strings.HasPrefix(result.Stdout, it.command)
	if isOfOtherWork(c.Result) {
		return
	}
	switch {
	case starts > 0 && !ran && !unsure:
		w.breach("%s ran %s and reports %s", worker, it.id, c.Result)
	case starts == 0 && !unstarted && !unsure:
		w.breach("%s did not run %s and reports %s", worker, it.id, c.Result)
	}
}

// isOfOtherWork says whether a result declines what came under an item's id and
// was not that item.
func isOfOtherWork(result []byte) bool {
	return bytes.Contains(result, []byte("Declined by the worker: the harness handed out other work under the same id"))
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func clip(text []byte) string {
	if len(text) > 220 {
		return string(text[:220]) + "…"
	}
	return string(text)
}

func resultOf(command string, exit int) []byte {
	return encode(wire.ExecResult{ExitCode: exit, Stdout: command})
}
