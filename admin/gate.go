package admin

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Gate is open as long as what its users look at exists. The listener outlives the databases at both ends of a server's life: what
// reads them goes through a Gate, which the server closes before it closes them.
type Gate struct {
	mu     sync.RWMutex // held for reading by users
	closed bool
}

// Do runs f while the gate is kept open, and reports whether it was. f must not take long: the server waits for it to end.
func (g *Gate) Do(f func()) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return false
	}
	f()
	return true
}

// Close returns when nobody is inside, and lets nobody in any more.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Collector returns the metrics of c while the gate is open, and none afterwards.
func (g *Gate) Collector(c prometheus.Collector) prometheus.Collector { return &gated{c, g} }

type gated struct {
	prometheus.Collector
	gate *Gate
}

// Collect implements prometheus.Collector.
func (c *gated) Collect(to chan<- prometheus.Metric) {
	c.gate.Do(func() { c.Collector.Collect(to) })
}
