package sequence

import "gotycoon/db"

// Connections returns how many connections are open, and how many there have been.
func (p *port) Connections() (open int, total uint64) {
	if p.server == nil {
		return 0, 0
	}
	return p.server.Conns(), p.server.Total()
}

// Names returns how many sequences have been used since the start.
func (s *SequenceServer) Names() int { return s.sequences.len() }

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
