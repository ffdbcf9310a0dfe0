package quota

import (
	"gotycoon/db"
	"gotycoon/internal/metrics"
)

// Quota is a quota at one moment.
type Quota struct {
	Name      string // empty: the quota without a name
	Remaining int64
	Journal   uint64 // the last journal number
	Open      bool   // false: used up, or an apply was refused
}

// List returns the quotas in the order of their names, at most limit of them, used since the start
// or not.
func (s *Server) List(limit int) ([]Quota, error) {
	names, err := s.records.Words([]byte(quotaPrefix), limit)
	if err != nil {
		return nil, err
	}
	// The quota without a name exists from the start, but has records only after its first call.
	if len(names) == 0 || names[0] != "" {
		names = append([]string{""}, names...)
	}
	var owed db.Pending
	all := make([]Quota, 0, len(names))
	for _, name := range names {
		q, err := s.quotas.Get([]byte(name), false)
		if err != nil {
			continue // other records of a quota without a state record
		}
		now, err := q.look(&owed)
		if err != nil {
			return nil, err
		}
		all = append(all, Quota{name, now.remaining, now.journal, now.open})
	}
	return all, owed.Wait()
}

// Show implements services.Service.
func (s *Server) Show(_ string, limit int) (any, error) {
	all, err := s.List(limit)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, q := range all {
		rows = append(rows, map[string]any{"name": q.Name, "remaining": q.Remaining, "journal": q.Journal, "open": q.Open})
	}
	return map[string]any{"quotas": rows, "limit": limit}, nil
}

// Stats are the figures of a Server.
type Stats struct {
	Names     int   // quotas used since the start, the one without a name included
	Exhausted int   // quotas that are closed: used up, or had to refuse an apply
	Remaining int64 // remaining amount of the quota without a name
}

// Stats returns the figures.
func (s *Server) Stats() Stats {
	stats := Stats{Names: s.quotas.Len()}
	_ = s.quotas.All(func(q *quota) error {
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

// Metrics returns the definitions of the metrics of a Server.
func Metrics() []metrics.Definition {
	return []metrics.Definition{
		metrics.Define("gotycoon_quotas", metrics.Gauge, "Quotas used since the start."),
		metrics.Define("gotycoon_quotas_exhausted", metrics.Gauge, "Of them: used up, or closed because they had to refuse."),
		metrics.Define("gotycoon_quota_remaining", metrics.Gauge, "What is left of the quota without a name."),
	}
}

// Figures implements services.Service.
func (s *Server) Figures() metrics.Source {
	return metrics.Source{Definitions: Metrics(), Read: func(put metrics.Put) {
		stats := s.Stats()
		put("gotycoon_quotas", float64(stats.Names))
		put("gotycoon_quotas_exhausted", float64(stats.Exhausted))
		put("gotycoon_quota_remaining", float64(stats.Remaining))
	}}
}
