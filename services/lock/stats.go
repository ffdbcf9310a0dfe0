package lock

import (
	"time"

	"gotycoon/internal/metrics"
)

func (c *Counts) add(more *Counts) {
	c.Grants += more.Grants
	c.Renewals += more.Renewals
	c.Releases += more.Releases
	c.Expiries += more.Expiries
	c.Timeouts += more.Timeouts
	c.Cancels += more.Cancels
	c.Refusals += more.Refusals
}

// Stats are the figures of a server at one moment.
type Stats struct {
	Counts
	Conns      int           // open connections
	Keys       int           // keys that are held or waited for
	Holders    int           // locks that are held
	Waiters    int           // waiting requests
	OldestWait time.Duration // how long the oldest waiting request has waited
}

// Stats returns the figures. It looks at all keys.
func (s *Server) Stats() Stats {
	var all Stats
	all.Conns, _ = s.Connections()
	now := s.now()
	for i := range s.table.shards {
		s.table.shards[i].addTo(&all, now)
	}
	return all
}

func (sh *shard) addTo(all *Stats, now int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all.add(&sh.counts)
	all.Keys += len(sh.keys)
	for _, k := range sh.keys {
		all.Holders += k.holders.n
		all.Waiters += k.waiting
		for i := range k.lines {
			all.OldestWait = max(all.OldestWait, time.Duration(now-k.lines[i].first.since))
		}
	}
}

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_lock_keys", metrics.Gauge, "Keys that are locked or waited for."),
		metrics.Define("gotycoon_lock_holders", metrics.Gauge, "Locks granted just now."),
		metrics.Define("gotycoon_lock_waiters", metrics.Gauge, "Requests for locks that wait."),
		metrics.Define("gotycoon_lock_oldest_wait_seconds", metrics.Gauge, "For how long the oldest of them has waited."),
		metrics.Define("gotycoon_lock_events_total", metrics.Counter, "What has become of locks and requests for them.", "event"),
	}
}

// Figures implements services.Service.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) {
		stats := s.Stats()
		put("gotycoon_lock_keys", float64(stats.Keys))
		put("gotycoon_lock_holders", float64(stats.Holders))
		put("gotycoon_lock_waiters", float64(stats.Waiters))
		put("gotycoon_lock_oldest_wait_seconds", stats.OldestWait.Seconds())
		for event, n := range map[string]uint64{
			"grant": stats.Grants, "renewal": stats.Renewals, "release": stats.Releases, "expiry": stats.Expiries,
			"timeout": stats.Timeouts, "cancel": stats.Cancels, "refusal": stats.Refusals,
		} {
			put("gotycoon_lock_events_total", float64(n), event)
		}
	}}
}

// measure counts a command that has been answered. The time of a command is the time of its answer,
// without the time that a request waits for a lock.
func (c *conn) measure(cmd *command, length int) {
	if !c.in.Meter.Wanted() {
		return
	}
	requests, place, failed := c.server.Requests(), int(cmd.verb), cmd.verb == verbUnknown
	c.in.Meter.Note(requests, place, failed)
	if c.in.Meter.Detailed() {
		c.in.Meter.Describe(metrics.Detail{Protocol: requests, Command: place, Key: cmd.words[0], In: length, Failed: failed})
	}
}
