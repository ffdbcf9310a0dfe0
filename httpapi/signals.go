package httpapi

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Signals are the named conditions of WAIT and SIGNAL. A signal is not remembered: it reaches the
// sessions that wait at that moment. Signals starts no goroutine.
type Signals struct {
	elsewhere Elsewhere // nil: there is nobody else

	mu      sync.Mutex
	waiting map[string][]*waiter // in the order of arrival; no empty lists
	closed  bool
}

// waiter is one session that waits. signaled is written before wake is closed, under Signals.mu.
type waiter struct {
	wake     chan struct{}
	signaled bool
}

// Elsewhere are other servers, whose clients wait for the same signals. Neither method waits for
// them.
type Elsewhere interface {
	// Listen says that a client waits here, whom signals of other servers are to reach.
	Listen()
	// Send sends a signal to the other servers: to all who wait there, or to one of them.
	Send(name string, broadcast bool)
}

// NewSignals returns a set of conditions without waiters. elsewhere is nil where there are no other
// servers.
func NewSignals(elsewhere Elsewhere) *Signals {
	return &Signals{elsewhere: elsewhere, waiting: make(map[string][]*waiter)}
}

// short returns what stands for a name in Signals and for other servers: nearly always the name
// itself. Messages between servers have no room for longer ones.
func short(name string) string {
	if len(name) <= 200 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "\x00sha256 " + string(sum[:])
}

// Wait reports whether name is signaled within limit and before Shutdown.
func (g *Signals) Wait(name string, limit time.Duration) bool {
	name = short(name)
	w := g.enter(name)
	if w == nil {
		return false
	}
	if g.elsewhere != nil {
		g.elsewhere.Listen()
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
// many were waiting at this server. Other servers are told of a broadcast, and of a signal for
// which nobody waits here.
func (g *Signals) Signal(name string, broadcast bool) int {
	name = short(name)
	waiting, woken := g.wake(name, broadcast)
	if g.elsewhere != nil && (broadcast || woken == 0) {
		g.elsewhere.Send(name, broadcast)
	}
	return waiting
}

// Wake is for a signal of another server, by the name that Elsewhere was given. It returns how many
// sessions it has woken.
func (g *Signals) Wake(name string, broadcast bool) int {
	_, woken := g.wake(name, broadcast)
	return woken
}

func (g *Signals) wake(name string, broadcast bool) (waiting, woken int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.waiting[name]
	woken = min(1, len(list))
	if broadcast {
		woken = len(list)
	}
	for _, w := range list[:woken] {
		w.signaled = true
		close(w.wake)
	}
	g.keepLocked(name, list[woken:])
	return len(list), woken
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

// Waiting returns how many sessions wait for name, which is as for Wake.
func (g *Signals) Waiting(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting[name])
}

// Anybody reports whether a session waits for whatever signal.
func (g *Signals) Anybody() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0
}
