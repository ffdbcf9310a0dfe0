package counter

import (
	"strconv"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/counter/frame"
	"gotycoon/internal/metrics"
)

// command is a kind of request that is counted.
type command int

// The commands in the order in which statistics list them.
const (
	cmdNoop command = iota
	cmdGet
	cmdAcquire
	cmdRelease
	cmdStats
	cmdDump
	commands
)

// tally counts requests by command. It fills a cache line; each tally is shared by some of the
// connections.
type tally struct {
	n [commands]atomic.Uint64
	_ [64 - 8*commands]byte
}

// Stats says what the server has done and what it holds.
type Stats struct {
	Objects   uint64 // counters after the latest collection
	Created   uint64 // counters ever created
	Memory    uint64 // their bytes: 64 and the length of the name for each
	Conflicts uint64 // hash buckets with two or more counters, after the latest collection

	Collections     uint64        // one after a second, then one at the end of each interval
	LastCollection  time.Duration // duration of the latest collection
	TotalCollection time.Duration // of all collections

	Connections      uint64 // open connections
	TotalConnections uint64

	// Well-formed requests, whatever their result.
	Noop, Get, Acquire, Release, Stats, Dump uint64
}

// Stats returns the statistics. It may be called at any time.
func (s *Server) Stats() Stats {
	c := s.collected()
	ops := s.operations()
	return Stats{
		Objects: c.objects, Created: s.table.created.Load(), Memory: c.memory, Conflicts: c.conflicts,
		Collections: c.runs, LastCollection: c.last, TotalCollection: c.all,
		Connections: uint64(max(0, s.open.Load())), TotalConnections: s.accepted.Load(),
		Noop: ops[cmdNoop], Get: ops[cmdGet], Acquire: ops[cmdAcquire], Release: ops[cmdRelease],
		Stats: ops[cmdStats], Dump: ops[cmdDump],
	}
}

func (s *Server) operations() (sum [commands]uint64) {
	for i := range s.tallies {
		for cmd := range sum {
			sum[cmd] += s.tallies[i].n[cmd].Load()
		}
	}
	return sum
}

// Rows returns the statistics under their published names, in the published order.
func (s Stats) Rows() []frame.Stat {
	number := func(name string, n uint64) frame.Stat {
		return frame.Stat{Name: name, Value: strconv.FormatUint(n, 10)}
	}
	return []frame.Stat{
		number("objects", s.Objects),
		number("total_objects", s.Created),
		number("used_memory", s.Memory),
		number("conflicts", s.Conflicts),
		number("gc_count", s.Collections),
		number("last_gc_elapsed", uint64(s.LastCollection.Microseconds())),
		number("total_gc_elapsed", uint64(s.TotalCollection.Microseconds())),
		number("curr_connections", s.Connections),
		number("total_connections", s.TotalConnections),
		number("command:noop", s.Noop),
		number("command:get", s.Get),
		number("command:acquire", s.Acquire),
		number("command:release", s.Release),
		number("command:stats", s.Stats),
		number("command:dump", s.Dump),
	}
}

// Connections implements services.Service with the numbers of the statistics.
func (s *Server) Connections() (open int, total uint64) {
	return int(max(0, s.open.Load())), s.accepted.Load()
}

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_counters", metrics.Gauge, "Counters as of the latest collection."),
		metrics.Define("gotycoon_counters_created_total", metrics.Counter, "Counters ever created."),
		metrics.Define("gotycoon_counters_bytes", metrics.Gauge, "Memory of the counters as of the latest collection."),
	}
}

// Figures implements services.Service.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) {
		stats := s.Stats()
		put("gotycoon_counters", float64(stats.Objects))
		put("gotycoon_counters_created_total", float64(stats.Created))
		put("gotycoon_counters_bytes", float64(stats.Memory))
	}}
}

// commandNames are the names under which requests are counted: known ones in the order of the
// statistics, then unknown ones.
func commandNames() []string {
	return []string{"noop", "get", "acquire", "release", "stats", "dump", "unknown"}
}

// requestOf returns the index of a request in commandNames.
func requestOf(h frame.Header) command {
	if h.Magic != frame.RequestMagic {
		return commands
	}
	switch h.Op {
	case frame.Noop:
		return cmdNoop
	case frame.Get:
		return cmdGet
	case frame.Acquire:
		return cmdAcquire
	case frame.Release:
		return cmdRelease
	case frame.Stats:
		return cmdStats
	case frame.Dump:
		return cmdDump
	}
	return commands
}

// measure counts a request that has been answered.
func (c *conn) measure(h frame.Header, body []byte) {
	if c.Meter == nil {
		return
	}
	requests, place := c.server.Requests(), requestOf(h)
	c.Meter.Note(requests, int(place), place == commands)
	if c.Meter.Detailed() {
		c.Meter.Describe(metrics.Detail{
			Protocol: requests, Command: int(place), Key: nameOf(h.Op, body), In: frame.HeaderLen + len(body), Out: len(c.Out), Failed: place == commands,
		})
	}
}

// nameOf returns the name of the counter that a request is about, nil if there is none.
func nameOf(op frame.Opcode, body []byte) []byte {
	var name []byte
	switch op {
	case frame.Get:
		if a, ok := frame.DecodeGet(body); ok {
			name = a.Name
		}
	case frame.Acquire:
		if a, ok := frame.DecodeAcquire(body); ok {
			name = a.Name
		}
	case frame.Release:
		if a, ok := frame.DecodeRelease(body); ok {
			name = a.Name
		}
	}
	return name
}
