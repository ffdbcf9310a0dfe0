package memcache

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/internal/exposed"
)

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

// head returns the rows about process and database.
func (s *Server) head(status map[string]string) []row {
	now := time.Now()
	return []row{
		number("pid", int64(os.Getpid())),
		number("uptime", int64(now.Sub(s.opts.Started).Seconds())),
		number("time", now.Unix()),
		{"version", s.opts.versionText()},
		number("pointer_size", strconv.IntSize),
		number("curr_connections", s.counts.open.Load()),
		number("threads", int64(s.opts.Threads)),
		{"curr_items", status["count"]},
		{"bytes", status["size"]},
	}
}

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

// textStats serves "stats [family]". The original ignores the family; modern servers have further
// lists.
func textStats(c *conn) bool {
	family := ""
	if len(c.words) > 1 && c.modern {
		family = string(c.words[1])
	}
	if family == "reset" {
		c.s.counts.reset()
		c.say("RESET")
		return true
	}
	rows, known, err := c.rows(family)
	switch {
	case err != nil:
		c.fail("status", err)
		return true
	case !known:
		c.say(replyError)
		return true
	}
	for _, r := range rows {
		c.say("STAT " + r.name + " " + r.value)
	}
	c.say("END")
	return true
}

// rows returns the rows of a family; the family "" has the original's rows.
func (c *conn) rows(family string) (rows []row, known bool, err error) {
	switch family {
	case "":
		rows, err = c.general()
		return rows, true, err
	case "settings":
		return c.s.settings(), true, nil
	case "items", "slabs", "sizes", "conns", "detail", "cachedump", "malloc", "maps":
		return nil, true, nil // families of memcached that have no meaning here
	}
	return nil, false, nil
}

// general returns the original's rows, and in modern servers further rows behind them.
func (c *conn) general() ([]row, error) {
	// Figures for those who watch the server do not wait for its log.
	status, err := c.db.Status(new(db.Pending))
	if err != nil {
		return nil, err
	}
	n := &c.s.counts
	rows := c.s.head(status)
	names := make([]string, 0, len(status))
	for name := range status {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, row{"db_" + name, status[name]})
	}
	rows = append(rows, n.rows()...)
	if c.modern {
		rows = append(rows, n.moreRows()...)
	}
	return rows, nil
}

// settings returns the rows of "stats settings".
func (s *Server) settings() []row {
	cas := "no"
	if s.opts.Modern {
		cas = "yes"
	}
	return []row{
		number("maxbytes", 0), number("maxconns", 0), number("tcpport", int64(s.opts.Port)), number("udpport", 0),
		{"inter", s.opts.Host}, number("verbosity", 0), {"evictions", "off"}, {"cas_enabled", cas},
		number("num_threads", int64(s.opts.Threads)), {"flush_enabled", fmt.Sprint(!s.opts.ReadOnly)},
		number("item_size_max", maxValue),
	}
}
