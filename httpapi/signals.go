package httpapi

import (
	"sync"
	"time"
)

// Signals are the named conditions of WAIT and SIGNAL (section 5). They are not remembered: a
// signal reaches those who wait at that moment. It starts no goroutine.
type Signals struct {
	mu      sync.Mutex
	waiting map[string][]*waiter // in the order of arrival; no empty lists
	closed  bool
}

// waiter is one session that waits. signaled is written before wake is closed, under Signals.mu.
type waiter struct {
	wake     chan struct{}
	signaled bool
}

// NewSignals returns a set of conditions nobody waits for.
func NewSignals() *Signals {
	return &Signals{waiting: make(map[string][]*waiter)}
}

// Wait returns true when name is signaled, false when that does not happen within limit or before
// Shutdown.
func (g *Signals) Wait(name string, limit time.Duration) bool {
	w := g.enter(name)
	if w == nil {
		return false
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
		g.leave(name, w)
	}
	return w.signaled
}

func (g *Signals) enter(name string) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	w := &waiter{wake: make(chan struct{})}
	g.waiting[name] = append(g.waiting[name], w)
	return w
}

// leave takes a waiter out whose time is up, unless it has been woken in this moment.
func (g *Signals) leave(name string, w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.waiting[name]
	for i := range list {
		if list[i] == w {
			g.keepLocked(name, append(list[:i:i], list[i+1:]...))
			return
		}
	}
}

// Signal wakes the one who waits for name the longest, or all when broadcast, and returns how many
// were waiting.
func (g *Signals) Signal(name string, broadcast bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.waiting[name]
	woken := min(1, len(list))
	if broadcast {
		woken = len(list)
	}
	for _, w := range list[:woken] {
		w.signaled = true
		close(w.wake)
	}
	g.keepLocked(name, list[woken:])
	return len(list)
}

// keepLocked stores who still waits for name. The caller holds mu.
func (g *Signals) keepLocked(name string, list []*waiter) {
	if len(list) == 0 {
		delete(g.waiting, name)
		return
	}
	g.waiting[name] = list
}

// Shutdown ends every wait, and those to come, as if its time were up.
func (g *Signals) Shutdown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, list := range g.waiting {
		for _, w := range list {
			close(w.wake)
		}
	}
	clear(g.waiting)
}

// Waiting returns how many wait for name.
func (g *Signals) Waiting(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting[name])
}
