package admin

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Gate lets requests use the databases only while they are open. The listener starts before the
// databases are open and ends after they are closed. So whatever reads a database does so inside a
// Gate, and the server closes the Gate before it closes the databases.
type Gate struct {
	mu     sync.RWMutex // held for reading by each call inside
	closed bool
}

// Do runs f inside the gate. It reports false, without running f, if the gate is closed. f must be
// short, since Close waits for it.
func (g *Gate) Do(f func()) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return false
	}
	f()
	return true
}

// Close closes the gate, and waits until nobody is inside.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Collector returns the metrics of c while the gate is open, and none after that.
func (g *Gate) Collector(c prometheus.Collector) prometheus.Collector { return &gated{c, g} }

type gated struct {
	prometheus.Collector
	gate *Gate
}

// Collect implements prometheus.Collector.
func (c *gated) Collect(to chan<- prometheus.Metric) {
	c.gate.Do(func() { c.Collector.Collect(to) })
}
