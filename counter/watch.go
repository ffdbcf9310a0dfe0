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
	Maximum uint32 // the most that they had in this interval
}

// Counters returns at most limit counters whose names begin with prefix, those of which most is acquired first. all is how many there
// are. It looks at all counters, but keeps few of them.
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

// list appends the counters of a stripe and returns how many it has, whatever their names.
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
			if c.period != now { // nothing has changed in this interval
				maximum = c.current
			}
			to = append(to, Counter{c.name, c.current, maximum})
		}
	}
	return to, n
}
