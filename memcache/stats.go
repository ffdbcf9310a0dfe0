package memcache

import "gotycoon/internal/exposed"

// Connections returns how many connections are open, and how many there have been since Open.
func (s *Server) Connections() (open int, total uint64) {
	return int(s.counts.open.Load()), uint64(s.counts.connections.Load())
}

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []exposed.Definition {
	return []exposed.Definition{
		exposed.Define("gotycoon_memcached_lookups_total", exposed.Counter, "Operations of memcached clients, by whether they met a record.",
			"operation", "result"),
	}
}

// Figures returns the metrics of the server: the hits and misses of each kind of operation.
func (s *Server) Figures() exposed.Source {
	return exposed.Source{Definitions: Metrics(), Read: func(put exposed.Put) {
		n := &s.counts
		for operation, t := range map[string]*tally{
			"set": &n.set, "get": &n.get, "delete": &n.remove, "incr": &n.incr, "decr": &n.decr, "touch": &n.touch, "cas": &n.cas,
		} {
			put("gotycoon_memcached_lookups_total", float64(t.hits.Load()), operation, "hit")
			put("gotycoon_memcached_lookups_total", float64(t.misses.Load()), operation, "miss")
		}
	}}
}
