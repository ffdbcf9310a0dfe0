package httpapi

import (
	"sync"
	"time"
)

// Signals are the named conditions of WAIT and SIGNAL. A signal is not remembered: it reaches the
// sessions that wait at that moment. Signals starts no goroutine.
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

// NewSignals returns a set of conditions without waiters.
func NewSignals() *Signals {
	return &Signals{waiting: make(map[string][]*waiter)}
}

// Wait reports whether name is signaled within limit and before Shutdown.
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

// leave removes a waiter whose time is up, unless a signal has just removed it.
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

// Signal wakes the session that waits for name the longest, or all if broadcast, and returns how
// many were waiting.
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

// keepLocked stores the sessions that still wait for name. The caller holds mu.
func (g *Signals) keepLocked(name string, list []*waiter) {
	if len(list) == 0 {
		delete(g.waiting, name)
		return
	}
	g.waiting[name] = list
}

// Shutdown ends all waits, now and from now on, as if their time were up.
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

// Waiting returns how many sessions wait for name.
func (g *Signals) Waiting(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting[name])
}
