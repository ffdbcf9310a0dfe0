package metrics

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// This file has what is needed to look at requests while they are served: a Monitor gets each of
// them, a Hot counts their keys. While nobody watches, a request costs one look at a pointer that
// seldom changes. Nobody who watches makes a request wait: what cannot be taken at once is left
// out, and counted.

// Filter chooses requests. The zero value chooses all.
type Filter struct {
	Every    int    // one of so many; 0 and 1: each
	Protocol string // name of the protocol
	Command  string // name of the command
	Database string // name of the database
	Prefix   string // how the key begins
	Peer     string // how the address of the client begins
	Failed   bool   // only what has failed
}

// watch is what the meter knows of somebody who looks.
type watch interface {
	// see is called for each request, by all connections at the same time. Slices of d are valid
	// during the call.
	see(d *Detail, peer string)
	// count is called before that for the keys of a bulk, perhaps several times.
	count(d *Detail, peer string, keys iter.Seq[[]byte])
}

// attach adds a watch.
func (m *Meter) attach(w watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []watch{w}
	if known := m.watches.Load(); known != nil {
		all = append(slices.Clone(*known), w)
	}
	m.watches.Store(&all)
}

// detach removes a watch. A request that is being served may still be shown to it.
func (m *Meter) detach(w watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.watches.Load()
	if known == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(*known), func(other watch) bool { return other == w })
	if len(left) == 0 {
		m.watches.Store(nil)
		return
	}
	m.watches.Store(&left)
}

// Watches returns how many watches there are.
func (m *Meter) Watches() int {
	if known := m.watches.Load(); known != nil {
		return len(*known)
	}
	return 0
}

// chosen is a filter at work.
type chosen struct {
	Filter
	n atomic.Uint64 // requests that fit the filter, of which one of Every is chosen
}

// fits reports whether a request fits everything but Prefix and Every.
func (c *chosen) fits(d *Detail, peer string) bool {
	return (c.Protocol == "" || c.Protocol == d.Protocol.name) &&
		(c.Command == "" || c.Command == d.Protocol.commands[d.Command]) &&
		(c.Database == "" || c.Database == d.Database) &&
		(c.Peer == "" || len(peer) >= len(c.Peer) && peer[:len(c.Peer)] == c.Peer) &&
		(!c.Failed || d.Failed)
}

// hasPrefix reports whether a key begins with Prefix.
func (c *chosen) hasPrefix(key []byte) bool {
	return len(key) >= len(c.Prefix) && string(key[:len(c.Prefix)]) == c.Prefix
}

// turn reports whether it is the turn of the present request or key.
func (c *chosen) turn() bool {
	return c.Every <= 1 || c.n.Add(1)%uint64(c.Every) == 0
}

// Monitor is a stream of requests. Close ends it.
type Monitor struct {
	chosen
	meter    *Meter
	requests chan Operation
	missed   atomic.Uint64
}

// monitorRoom is how many requests wait in a Monitor that nobody reads at the moment. With the
// longest keys they take less than 2 MiB.
const monitorRoom = 4096

// NewMonitor begins to watch. Its operations have no Duration, Wait and Batch: nobody knows them
// when a request is shown.
func (m *Meter) NewMonitor(f Filter) *Monitor {
	mon := &Monitor{chosen: chosen{Filter: f}, meter: m, requests: make(chan Operation, monitorRoom)}
	m.attach(mon)
	return mon
}

// Close ends the stream.
func (m *Monitor) Close() { m.meter.detach(m) }

// Requests returns the channel of the requests. It is never closed.
func (m *Monitor) Requests() <-chan Operation { return m.requests }

// Missed returns how many requests were left out since the last call, because nobody read the
// earlier ones in time.
func (m *Monitor) Missed() uint64 { return m.missed.Swap(0) }

// see implements watch.
func (m *Monitor) see(d *Detail, peer string) {
	if !m.fits(d, peer) || !m.hasPrefix(d.Key) || !m.turn() {
		return
	}
	if len(m.requests) == cap(m.requests) { // before the work of making an operation
		m.missed.Add(1)
		return
	}
	op := d.operation(peer)
	op.Key, op.Time, op.Batch = quote(d.Key[:min(len(d.Key), maxKey)], len(d.Key)), time.Now(), 1
	select {
	case m.requests <- op:
	default:
		m.missed.Add(1)
	}
}

// count implements watch: a bulk is one request.
func (m *Monitor) count(*Detail, string, iter.Seq[[]byte]) {}
