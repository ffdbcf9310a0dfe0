package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"gotycoon/memcache"
	"gotycoon/services/counter"
	"gotycoon/services/lock"
	"gotycoon/services/sequence"
)

func memcacheMetrics() []Definition {
	return []Definition{
		{"gotycoon_memcached_lookups_total", Counter, "Operations of memcached clients, by whether they met a record.", labels("operation", "result")},
	}
}

// Memcache returns the metrics of the memcached service.
func Memcache(m *memcache.Server) prometheus.Collector {
	return newCollector(memcacheMetrics(), func(s *sink) {
		for _, row := range m.Lookups() {
			s.put("gotycoon_memcached_lookups_total", float64(row.Hits), row.Operation, "hit")
			s.put("gotycoon_memcached_lookups_total", float64(row.Misses), row.Operation, "miss")
		}
	})
}

func counterMetrics() []Definition {
	return []Definition{
		{"gotycoon_counters", Gauge, "Counters as of the latest collection.", nil},
		{"gotycoon_counters_created_total", Counter, "Counters ever created.", nil},
		{"gotycoon_counters_bytes", Gauge, "Memory of the counters as of the latest collection.", nil},
	}
}

// Counters returns the metrics of the counter service.
func Counters(c *counter.Server) prometheus.Collector {
	return newCollector(counterMetrics(), func(s *sink) {
		stats := c.Stats()
		s.put("gotycoon_counters", float64(stats.Objects))
		s.put("gotycoon_counters_created_total", float64(stats.Created))
		s.put("gotycoon_counters_bytes", float64(stats.Memory))
	})
}

func lockMetrics() []Definition {
	return []Definition{
		{"gotycoon_lock_keys", Gauge, "Keys that are locked or waited for.", nil},
		{"gotycoon_lock_holders", Gauge, "Locks granted just now.", nil},
		{"gotycoon_lock_waiters", Gauge, "Requests for locks that wait.", nil},
		{"gotycoon_lock_oldest_wait_seconds", Gauge, "For how long the oldest of them has waited.", nil},
		{"gotycoon_lock_events_total", Counter, "What has become of locks and requests for them.", labels("event")},
	}
}

// Locks returns the metrics of the lock service.
func Locks(l *lock.Server) prometheus.Collector {
	return newCollector(lockMetrics(), func(s *sink) {
		stats := l.Stats()
		s.count("gotycoon_lock_keys", int64(stats.Keys))
		s.count("gotycoon_lock_holders", int64(stats.Holders))
		s.count("gotycoon_lock_waiters", int64(stats.Waiters))
		s.put("gotycoon_lock_oldest_wait_seconds", stats.OldestWait.Seconds())
		for event, n := range map[string]uint64{
			"grant": stats.Grants, "renewal": stats.Renewals, "release": stats.Releases, "expiry": stats.Expiries,
			"timeout": stats.Timeouts, "cancel": stats.Cancels, "refusal": stats.Refusals,
		} {
			s.put("gotycoon_lock_events_total", float64(n), event)
		}
	})
}

func sequenceMetrics() []Definition {
	return []Definition{{"gotycoon_sequences", Gauge, "Sequences used since the start.", nil}}
}

// Sequences returns the metrics of the sequence service.
func Sequences(q *sequence.SequenceServer) prometheus.Collector {
	return newCollector(sequenceMetrics(), func(s *sink) { s.count("gotycoon_sequences", int64(q.Names())) })
}

func quotaMetrics() []Definition {
	return []Definition{
		{"gotycoon_quotas", Gauge, "Quotas used since the start.", nil},
		{"gotycoon_quotas_exhausted", Gauge, "Of them: used up, or closed because they had to refuse.", nil},
		{"gotycoon_quota_remaining", Gauge, "What is left of the quota without a name.", nil},
	}
}

// Quotas returns the metrics of the quota service.
func Quotas(q *sequence.QuotaServer) prometheus.Collector {
	return newCollector(quotaMetrics(), func(s *sink) {
		stats := q.Stats()
		s.count("gotycoon_quotas", int64(stats.Names))
		s.count("gotycoon_quotas_exhausted", int64(stats.Exhausted))
		s.count("gotycoon_quota_remaining", stats.Remaining)
	})
}

func primaryMetrics() []Definition {
	return []Definition{{"gotycoon_services_primary", Gauge, "1 while this server changes quotas and gives out fencing tokens, 0 while another one does.", nil}}
}

// Primary returns the metric of a server with a services' database; is reports whether the server
// is the primary.
func Primary(is func() bool) prometheus.Collector {
	return newCollector(primaryMetrics(), func(s *sink) {
		n := int64(0)
		if is() {
			n = 1
		}
		s.count("gotycoon_services_primary", n)
	})
}
