package memcache

import (
	"strconv"
	"sync/atomic"
)

// counts are the counters of stats.
type counts struct {
	set, get, remove, incr, decr, touch, cas tally

	casBad, flushes   atomic.Int64
	connections, open atomic.Int64 // since the start, and now
}

// reset sets all counters but that of open connections to 0.
func (n *counts) reset() {
	for _, t := range []*tally{&n.set, &n.get, &n.remove, &n.incr, &n.decr, &n.touch, &n.cas} {
		t.hits.Store(0)
		t.misses.Store(0)
	}
	n.casBad.Store(0)
	n.flushes.Store(0)
	n.connections.Store(0)
}

// tally counts the operations of one kind: hits found a record, misses did not.
type tally struct{ hits, misses atomic.Int64 }

func (t *tally) count(hit bool) {
	if hit {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}

func (t *tally) sum() int64 { return t.hits.Load() + t.misses.Load() }

// rows returns the counters of the original.
func (n *counts) rows() []row {
	return []row{
		number("set_hits", n.set.hits.Load()), number("set_misses", n.set.misses.Load()),
		number("get_hits", n.get.hits.Load()), number("get_misses", n.get.misses.Load()),
		number("delete_hits", n.remove.hits.Load()), number("delete_misses", n.remove.misses.Load()),
		number("incr_hits", n.incr.hits.Load()), number("incr_misses", n.incr.misses.Load()),
		number("decr_hits", n.decr.hits.Load()), number("decr_misses", n.decr.misses.Load()),
		number("cmd_set", n.set.sum()), number("cmd_get", n.get.sum()),
		number("cmd_delete", n.remove.sum()), number("cmd_flush", n.flushes.Load()),
	}
}

// moreRows returns the further counters of memcached.
func (n *counts) moreRows() []row {
	return []row{
		number("cmd_touch", n.touch.sum()),
		number("touch_hits", n.touch.hits.Load()), number("touch_misses", n.touch.misses.Load()),
		number("cas_hits", n.cas.hits.Load()), number("cas_misses", n.cas.misses.Load()), number("cas_badval", n.casBad.Load()),
		number("total_connections", n.connections.Load()), number("limit_maxbytes", 0), number("evictions", 0),
	}
}

// row is one line of stats.
type row struct{ name, value string }

func number(name string, n int64) row { return row{name, strconv.FormatInt(n, 10)} }
