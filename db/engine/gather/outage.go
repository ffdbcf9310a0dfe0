package gather

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/engine"
)

const (
	probeEvery = 100 * time.Millisecond // pause between two probes of an engine that is away
	// for how long a probe waits: what was sent before the engine was back may never be answered
	probeFor = 2 * time.Second
)

// outage knows whether the engine is away: it has not answered anything for the time that an
// operation may take.
type outage struct {
	g    *Gather
	last atomic.Int64                  // when the engine answered last, in nanoseconds
	gone atomic.Pointer[chan struct{}] // closed when the engine is back; nil: it is not away
	over atomic.Int64                  // when it was back from the latest outage, in nanoseconds
	mu   sync.Mutex                    // held while it begins
}

// answered notes an answer of the engine.
func (o *outage) answered() { o.last.Store(time.Now().UnixNano()) }

// away reports whether the engine is away.
func (o *outage) away() bool { return o.gone.Load() != nil }

// back returns what is closed when the engine is back, nil if it is not away.
func (o *outage) back() <-chan struct{} {
	if back := o.gone.Load(); back != nil {
		return *back
	}
	return nil
}

// suspect is called when an operation has waited for as long as it may. If the engine has not
// answered anything meanwhile, it is away.
func (o *outage) suspect(since time.Time) {
	if o.last.Load() > since.UnixNano() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away() || o.last.Load() > since.UnixNano() {
		return
	}
	back := make(chan struct{})
	o.gone.Store(&back)
	for _, l := range o.g.lanes {
		l.nudge()
	}
	o.g.lates.Range(func(_, late any) bool {
		late.(*lane).nudge()
		return true
	})
	o.g.work.Go(func() { o.probe(back) })
}

// doubt is suspect for a call that may have waited for a transaction: the engine is asked first.
func (o *outage) doubt(since time.Time) {
	if o.last.Load() <= since.UnixNano() {
		o.g.work.Go(func() {
			if !o.g.answers() {
				o.suspect(since)
			}
		})
	}
}

// probe asks until the engine answers.
func (o *outage) probe(back chan struct{}) {
	for o.g.sleep(probeEvery) {
		if o.g.answers() {
			o.over.Store(time.Now().UnixNano())
			o.gone.Store(nil)
			close(back)
			return
		}
	}
}

// answers asks the engine whether it is there.
func (g *Gather) answers() bool {
	_, err := call(g, func(ctx context.Context) ([]engine.Record, error) {
		ctx, cancel := context.WithTimeout(ctx, probeFor)
		defer cancel()
		return g.engine.Read(ctx, nil, engine.Reading{})
	})
	return err == nil
}

// pause waits for a time, and while the engine is away until it is back. It returns false at the
// end of the Gather.
func (g *Gather) pause(d time.Duration) bool {
	if back := g.outage.back(); back != nil {
		select {
		case <-back:
			return true
		case <-g.ctx.Done():
			return false
		}
	}
	return g.sleep(d)
}

// sleep waits for a time. It returns false at the end of the Gather.
func (g *Gather) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}
