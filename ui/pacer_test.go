package ui

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// drive runs a pacer over a fake clock for a while and returns when it painted.
func drive(t *testing.T, interval, tick time.Duration, during func(p *pacer)) []time.Duration {
	t.Helper()
	var painted []time.Duration
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := &pacer{
			dirty: make(chan struct{}, 1), interval: func() time.Duration { return interval },
			tick:  func() time.Duration { return tick },
			paint: func(context.Context) { painted = append(painted, time.Since(start)) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()
		during(p)
		cancel()
		<-done
	})
	return painted
}

func TestChangesInPlentyMakeTwentyRepaintsASecond(t *testing.T) {
	painted := drive(t, 50*time.Millisecond, 0, func(p *pacer) {
		for range 10_000 {
			p.changed()
			time.Sleep(100 * time.Microsecond)
		}
	})
	if n := len(painted); n < 15 || n > 21 {
		t.Errorf("painted %d times in a second of changes, want about 20", n)
	}
}

func TestTheLastChangeIsAlwaysPainted(t *testing.T) {
	painted := drive(t, 50*time.Millisecond, 0, func(p *pacer) {
		p.changed()
		time.Sleep(10 * time.Millisecond)
		p.changed() // within the interval of the first
		time.Sleep(time.Second)
	})
	if len(painted) != 2 || painted[1] < 50*time.Millisecond {
		t.Errorf("painted at %v, want at once and again after the interval", painted)
	}
}

func TestWithoutChangesOnlyTheTickPaints(t *testing.T) {
	if painted := drive(t, time.Second, 0, func(*pacer) { time.Sleep(time.Hour) }); len(painted) != 0 {
		t.Errorf("painted %d times though nothing happened and no tick was asked for", len(painted))
	}
	painted := drive(t, 50*time.Millisecond, time.Second, func(*pacer) { time.Sleep(10 * time.Second) })
	if n := len(painted); n < 9 || n > 10 {
		t.Errorf("painted %d times in ten seconds of ticks", n)
	}
}

func TestAHiddenWindowIsNotDrawnAndTicksNever(t *testing.T) {
	st := newStage(t)
	st.put(waitingItems(execItem(1, "one")))
	if len(st.window.queue.entries) != 0 {
		t.Error("a window that was never opened was drawn")
	}
	if d := st.tick(); d != 0 {
		t.Errorf("ticks every %v though hidden", d)
	}
	if d := st.interval(); d != time.Second {
		t.Errorf("may repaint every %v though only the tray is there", d)
	}
	st.Show()
	st.until("the window is drawn", func() bool { return len(st.window.queue.entries) == 2 })
	st.hide()
	st.put(waitingItems())
	if len(st.window.queue.entries) != 2 {
		t.Error("a hidden window was drawn")
	}
}
