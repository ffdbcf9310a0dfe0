package replication

import (
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// arrivals wakes clients that wait for a position. While nobody waits, a step of the position costs
// one atomic load.
type arrivals struct {
	waiting atomic.Int64

	mu    sync.Mutex
	moved chan struct{} // closed at the next step; nil while nobody has asked
}

// next returns a channel that is closed when the position has moved on.
func (a *arrivals) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.moved == nil {
		a.moved = make(chan struct{})
	}
	return a.moved
}

// wake is called after each step of the position.
func (a *arrivals) wake() {
	if a.waiting.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.moved != nil {
		close(a.moved)
		a.moved = nil
	}
}

// await returns the position when it has reached a stamp, or after limit.
func (a *arrivals) await(position *atomic.Uint64, want ulog.Stamp, limit time.Duration) ulog.Stamp {
	a.waiting.Add(1)
	defer a.waiting.Add(-1)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		moved := a.next() // before the look, or the last step could be missed
		at := ulog.Stamp(position.Load())
		if at >= want {
			return at
		}
		select {
		case <-moved:
		case <-timer.C:
			return at
		}
	}
}
