package memcache

// Connections returns how many connections are open, and how many there have been since Open.
func (s *Server) Connections() (open int, total uint64) {
	return int(s.counts.open.Load()), uint64(s.counts.connections.Load())
}

// Lookups counts the hits and misses of one kind of operation since Open.
type Lookups struct {
	Operation    string
	Hits, Misses uint64 // operations that found a record, and that did not
}

// Lookups returns the hits and misses of all kinds of operations.
func (s *Server) Lookups() []Lookups {
	row := func(operation string, t *tally) Lookups {
		return Lookups{operation, uint64(t.hits.Load()), uint64(t.misses.Load())}
	}
	n := &s.counts
	return []Lookups{
		row("set", &n.set), row("get", &n.get), row("delete", &n.remove), row("incr", &n.incr), row("decr", &n.decr),
		row("touch", &n.touch), row("cas", &n.cas),
	}
}
