// Command chaos puts the built program under fire: a real harness, a real worker
// that is killed at random moments, real commands, and a proxy between the two
// that loses, delays and spoils what they say. Then it counts what became of each
// item. It ends with status 1 where anything ran twice or was lost.
//
//	go run ./app/chaos -bin build/countersign -items 5000 -seed 1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	var o Options
	flag.StringVar(&o.Bin, "bin", "build/countersign", "the built program")
	flag.IntVar(&o.Items, "items", 200, "how many items")
	flag.IntVar(&o.Sessions, "sessions", 40, "how many sessions they belong to")
	flag.IntVar(&o.Running, "running", 8, "how many commands run at once")
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "decides the faults, the kills and the commands")
	flag.DurationVar(&o.Lease, "lease", 3*time.Second, "the harness's lease")
	flag.DurationVar(&o.KillEvery, "kill-every", 1500*time.Millisecond, "the mean time between kills")
	flag.DurationVar(&o.Fire, "fire", 0, "the most that the fire lasts; 0: until nothing waits to be claimed")
	flag.StringVar(&o.Dir, "dir", "", "keep everything in this directory, which must be empty")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(o Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "countersign-chaos-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.Dir = dir
	}
	o.Log = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	figures, err := Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print(figures)
	return figures.Breach()
}
