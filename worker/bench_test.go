package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/harness"
	"countersign/worker"
	"countersign/worker/api"
	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

// BenchmarkItems sees `true` through its whole life, four at once, and beside it a
// plain loop that does the same requests and the same command on the same harness,
// without a journal, a helper or a transcript. The ratio is the price of the
// promise: the two take turns, and it is the median of all turns, so that what else
// the machine does matters little. The harness is a process of its own, as it is
// for whoever runs Countersign.
func BenchmarkItems(b *testing.B) { benchmarkItems(b, nil) }

// BenchmarkItemsUnderAHelper is BenchmarkItems as the program is installed: with
// commands under the helper.
func BenchmarkItemsUnderAHelper(b *testing.B) { benchmarkItems(b, installedKeeper(b)) }

func benchmarkItems(b *testing.B, keeper *execute.Keeper) {
	const atOnce, turn = 4, 200
	ours := &gated{}
	r := startRealAt(b, harnessProcess(b), under(b, keeper), func(c *worker.Config) {
		c.MaxRunning, c.MaxHeld = atOnce, 2*atOnce
		c.Poll.Active, c.Poll.Idle = 5*time.Millisecond, 5*time.Millisecond // a turn begins at once
		ours.Harness, c.Harness = c.Harness, ours
	})
	timed := func(items int, work func()) time.Duration {
		ids := r.fill(items)
		start := time.Now()
		var working sync.WaitGroup
		working.Go(work)
		for _, id := range ids {
			r.await(id)
		}
		took := time.Since(start)
		working.Wait()
		return took
	}
	var journalled, plain time.Duration
	var ratios []float64
	b.ResetTimer()
	for left := b.N; left > 0; left -= turn {
		items := min(left, turn)
		ours.claims.Lock()
		b.StopTimer()
		took := timed(items, func() { r.plainly(atOnce) })
		b.StartTimer()
		by := timed(items, ours.claims.Unlock)
		journalled, plain = journalled+by, plain+took
		ratios = append(ratios, by.Seconds()/took.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(float64(b.N)/journalled.Seconds(), "items/s")
	b.ReportMetric(float64(b.N)/plain.Seconds(), "plain-items/s")
	b.ReportMetric(ratios[len(ratios)/2], "times-plain")
}

// gated is a harness that hands nothing out while claims are held back.
type gated struct {
	worker.Harness
	claims sync.Mutex
}

func (g *gated) Claim(ctx context.Context, workerID string) (api.Item, bool, error) {
	g.claims.Lock()
	defer g.claims.Unlock()
	return g.Harness.Claim(ctx, workerID)
}

// BenchmarkStartAfterAccept is how long after the accept's answer a command runs:
// from the answer's arrival to what the command itself takes for the time, one
// after another, its shell and its `date` included.
func BenchmarkStartAfterAccept(b *testing.B) {
	for name, keeper := range map[string]*execute.Keeper{"helper": installedKeeper(b), "group": nil} {
		b.Run(name, func(b *testing.B) {
			answers := &stamped{at: make(map[string]time.Time)}
			r := startRealAt(b, harnessProcess(b), under(b, keeper), func(c *worker.Config) {
				answers.Harness, c.Harness = c.Harness, answers
				c.Poll.Active = time.Millisecond
			})
			var took []time.Duration
			for b.Loop() {
				id := r.enqueue("s", wire.KindExec, wire.Exec{Command: "date +%s%N"})
				var done wire.ExecResult
				if err := json.Unmarshal(r.await(id).Result, &done); err != nil {
					b.Fatal(err)
				}
				at, err := strconv.ParseInt(strings.TrimSpace(done.Stdout), 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Unix(0, at).Sub(answers.of(id)))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
			b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "p95-ms")
		})
	}
}

// stamped is a harness that remembers when each accept was answered.
type stamped struct {
	worker.Harness
	mu sync.Mutex
	at map[string]time.Time
}

func (s *stamped) Accept(ctx context.Context, itemID, workerID string) error {
	err := s.Harness.Accept(ctx, itemID, workerID)
	s.mu.Lock()
	s.at[itemID] = time.Now()
	s.mu.Unlock()
	return err
}

func (s *stamped) of(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

// under has commands run under a helper, if there is a keeper.
func under(b *testing.B, keeper *execute.Keeper) func(*worker.Config) {
	return func(c *worker.Config) {
		if keeper == nil {
			return
		}
		runner, err := execute.New(execute.Options{Dir: c.Runner.Dir(), Keeper: keeper})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(keeper.Dismiss)
		c.Runner = runner
	}
}

// installedKeeper returns a keeper whose helper is the program that is installed
// beside ours.
func installedKeeper(b *testing.B) *execute.Keeper {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	helper := filepath.Join(filepath.Dir(self), "countersign-keeper")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", helper, "countersign/worker/execute/keeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Cleanup(func() { os.Remove(helper) })
	keeper, err := execute.NewKeeper()
	if err != nil {
		b.Fatal(err)
	}
	if keeper == nil {
		b.Skip("there are no helpers on this system")
	}
	return keeper
}

// fill puts so many items in the queue, each of a session of its own.
func (r *real) fill(n int) (ids []string) {
	for i := range n {
		ids = append(ids, r.enqueue(fmt.Sprint("s", i), wire.KindExec, wire.Exec{Command: "true"}))
	}
	return ids
}

// plainly empties the queue with so many loops that write nothing down.
func (r *real) plainly(loops int) {
	client, err := api.New(api.Options{Origin: r.url})
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			for {
				item, found, err := client.Claim(r.t.Context(), "plain")
				if err != nil {
					r.t.Error(err)
				}
				if err != nil || !found {
					return
				}
				err = errors.Join(
					client.Accept(r.t.Context(), item.ID, "plain"),
					exec.Command("/bin/sh", "-c", "true").Run(),
					client.Complete(r.t.Context(), item.ID, "plain", json.RawMessage(`{"exitCode":0}`), false))
				if err != nil {
					r.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// harnessPath is the variable that makes this test binary a harness, and nothing
// else, with its database there.
const harnessPath = "COUNTERSIGN_TEST_HARNESS"

// harnessProcess starts a harness as a process of its own and returns its URL.
func harnessProcess(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), harnessPath+"="+filepath.Join(b.TempDir(), "harness.db"))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// serveHarness is a harness until standard input ends.
func serveHarness(path string) error {
	h, err := harness.Open(context.Background(), harness.Options{Path: path})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := http.Server{Handler: h.Handler()}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Println("http://" + listener.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	err = server.Close()
	<-ended
	return errors.Join(err, h.Close())
}
