package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"countersign/worker"
)

// crashVariable makes the test binary a writer on the file that it names.
const crashVariable = "COUNTERSIGN_STORE_CRASH"

// writeUntilKilled says a line for each step that the store acknowledged.
func writeUntilKilled(path string) {
	s, err := Open(context.Background(), path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var say sync.Mutex
	for n := range 4 {
		go func() {
			for i := 0; ; i++ {
				id, err := s.Open(context.Background(), claimed(fmt.Sprintf("i%d-%d", n, i), "c"), "")
				for step := 1; err == nil; step++ {
					say.Lock()
					fmt.Println(id, step)
					say.Unlock()
					if step == 5 {
						break
					}
					err = s.Move(context.Background(), id, worker.Move{At: noon, Step: worker.StepLease})
				}
				if err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
			}
		}()
	}
	select {}
}

func TestAfterAKillEverythingAcknowledgedIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashVariable+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[worker.HoldID]int{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var id worker.HoldID
		var step int
		if _, err := fmt.Sscan(lines.Text(), &id, &step); err != nil {
			break // the last line, torn by the kill, or what the child complained of
		}
		acknowledged[id] = step
		if n == 300 {
			child.Process.Kill()
		}
	}
	child.Process.Kill()
	if err := child.Wait(); err == nil || len(acknowledged) < 50 {
		t.Fatalf("the child: %v, %d holds, last line %q", err, len(acknowledged), lines.Text())
	}

	s := reopened(t, path)
	for id, steps := range acknowledged {
		entries, err := s.Entries(t.Context(), id)
		if err != nil || len(entries) < steps {
			t.Errorf("hold %d: %d entries of %d acknowledged, %v", id, len(entries), steps, err)
		}
	}
	var healthy string
	if err := s.reading.QueryRow(`PRAGMA integrity_check`).Scan(&healthy); err != nil || healthy != "ok" {
		t.Errorf("integrity: %s, %v", healthy, err)
	}
	ta := open(t, s, claimed("after", "c"))
	ta.started()
}
