package counter

import (
	"cmp"
	"slices"
	"strings"
)

// Counter is a counter at one moment.
type Counter struct {
	Name    string
	Current uint32 // what clients have acquired
	Maximum uint32 // the most that they had in the present interval
}

// Counters returns at most limit counters whose names begin with prefix, those with the largest
// consumption first. all is the number of counters, whatever their names. Counters looks at all of
// them, but keeps few in memory.
func (s *Server) Counters(prefix string, limit int) (top []Counter, all int) {
	t := s.table
	now := t.period.Load()
	for i := range t.stripes {
		n := 0
		top, n = t.stripes[i].list(top, prefix, now)
		all += n
		if len(top) > limit {
			top = largest(top)[:limit]
		}
	}
	return largest(top), all
}

func largest(cs []Counter) []Counter {
	slices.SortFunc(cs, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(b.Current, a.Current), cmp.Compare(b.Maximum, a.Maximum), cmp.Compare(a.Name, b.Name))
	})
	return cs
}

// list appends the counters of a stripe whose names begin with prefix, and returns how many
// counters the stripe has in all.
func (s *stripe) list(to []Counter, prefix string, now uint32) (all []Counter, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chains {
		for ; c != nil; c = c.next {
			n++
			if !strings.HasPrefix(c.name, prefix) {
				continue
			}
			maximum := c.maximum
			if c.period != now { // the counter has not changed in this interval
				maximum = c.current
			}
			to = append(to, Counter{c.name, c.current, maximum})
		}
	}
	return to, n
}

// Show implements services.Service.
func (s *Server) Show(prefix string, limit int) (any, error) {
	type row struct {
		Name    string `json:"name"`
		Current uint32 `json:"current"`
		Maximum uint32 `json:"maximum"`
	}
	top, all := s.Counters(prefix, limit)
	rows := []row{}
	for _, c := range top {
		rows = append(rows, row(c))
	}
	now := s.Stats()
	return map[string]any{
		"counters": rows, "all": all, "created": now.Created, "conns": now.Connections, "acquires": now.Acquire, "releases": now.Release,
	}, nil
}
