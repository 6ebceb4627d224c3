package ui

import (
	"context"
	"time"
)

// pacer turns any number of changes into few repaints: at most one in an
// interval, the first at once and the last never left out.
type pacer struct {
	dirty chan struct{}
	// interval is the least time between two repaints, asked before each.
	interval func() time.Duration
	// tick is after how long to repaint though nothing was said to have changed,
	// because ages and countdowns go on; 0 for never.
	tick func() time.Duration
	// paint does the work and returns when it is done.
	paint func(context.Context)
}

// changed asks for a repaint. It never blocks.
func (p *pacer) changed() {
	select {
	case p.dirty <- struct{}{}:
	default: // one is due already, and it will see this change too
	}
}

func (p *pacer) run(ctx context.Context) {
	for {
		var tick <-chan time.Time
		if d := p.tick(); d > 0 {
			tick = time.After(d)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.dirty:
		case <-tick:
		}
		p.paint(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.interval()):
		}
	}
}
