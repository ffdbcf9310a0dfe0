package sequence

import (
	"gotycoon/db"
	"gotycoon/internal/figure"
)

// Connections returns how many connections are open, and how many there have been.
func (p *port) Connections() (open int, total uint64) {
	if p.server == nil {
		return 0, 0
	}
	return p.server.Conns(), p.server.Total()
}

// QuotaStats are the figures of a QuotaServer.
type QuotaStats struct {
	Names     int   // quotas used since the start, the one without a name included
	Exhausted int   // quotas that are closed: used up, or had to refuse an apply
	Remaining int64 // remaining amount of the quota without a name
}

// Stats returns the figures.
func (s *QuotaServer) Stats() QuotaStats {
	stats := QuotaStats{Names: s.quotas.len()}
	_ = s.quotas.all(func(q *quota) error {
		// Figures for those who watch the server do not wait for its log.
		now, err := q.look(new(db.Pending))
		if err != nil {
			return err
		}
		if !now.open {
			stats.Exhausted++
		}
		if q.name == "" {
			stats.Remaining = now.remaining
		}
		return nil
	})
	return stats
}

func (n *named[T]) len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.of)
}

// SequenceMetrics returns the definitions of the metrics of a SequenceServer.
func SequenceMetrics() []figure.Definition {
	return []figure.Definition{figure.Define("gotycoon_sequences", figure.Gauge, "Sequences used since the start.")}
}

// Figures returns the metrics of the server.
func (s *SequenceServer) Figures() figure.Source {
	return figure.Source{Definitions: SequenceMetrics(), Read: func(put figure.Put) { put("gotycoon_sequences", float64(s.sequences.len())) }}
}

// QuotaMetrics returns the definitions of the metrics of a QuotaServer.
func QuotaMetrics() []figure.Definition {
	return []figure.Definition{
		figure.Define("gotycoon_quotas", figure.Gauge, "Quotas used since the start."),
		figure.Define("gotycoon_quotas_exhausted", figure.Gauge, "Of them: used up, or closed because they had to refuse."),
		figure.Define("gotycoon_quota_remaining", figure.Gauge, "What is left of the quota without a name."),
	}
}

// Figures returns the metrics of the server.
func (s *QuotaServer) Figures() figure.Source {
	return figure.Source{Definitions: QuotaMetrics(), Read: func(put figure.Put) {
		stats := s.Stats()
		put("gotycoon_quotas", float64(stats.Names))
		put("gotycoon_quotas_exhausted", float64(stats.Exhausted))
		put("gotycoon_quota_remaining", float64(stats.Remaining))
	}}
}
