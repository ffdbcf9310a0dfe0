package counter

import "time"

// position is a place in a walk through the counters. The zero value is the beginning.
type position struct{ stripe, chain int }

// walk calls visit for the counters from a position on. When visit returns false, walk finishes the
// bucket of that counter and stops: a position is a bucket. It returns the position at which to
// continue, and whether there are more counters. It holds one mutex at a time, so visit must not
// wait.
//
// maximum is the counter's maximum in the present interval.
func (t *table) walk(from position, visit func(name string, current, maximum uint32) bool) (position, bool) {
	now := t.period.Load()
	for ; from.stripe < len(t.stripes); from = (position{stripe: from.stripe + 1}) {
		next, more := t.stripes[from.stripe].walk(from.chain, now, visit)
		if more {
			return position{from.stripe, next}, true
		}
	}
	return from, false
}

func (s *stripe) walk(chain int, now uint32, visit func(name string, current, maximum uint32) bool) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for more := true; chain < len(s.chains); chain++ {
		if !more {
			return chain, true
		}
		for c := s.chains[chain]; c != nil; c = c.next {
			maximum := c.maximum
			if c.period != now {
				maximum = c.current
			}
			more = visit(c.name, c.current, maximum) && more
		}
	}
	return 0, false
}

// collection is the result of the latest collection, and the duration of all collections.
type collection struct {
	objects   uint64 // counters that are left
	memory    uint64 // their bytes, as Stats counts them
	conflicts uint64 // buckets with more than one of them
	runs      uint64
	last, all time.Duration
}

// nextPeriod begins a new interval: all maxima begin anew, and counters that are 0 may be
// collected.
func (t *table) nextPeriod() { t.period.Add(1) }

// collect removes the counters that are 0 and have not changed in the present interval, and counts
// the rest.
func (t *table) collect() collection {
	var found collection
	for i := range t.stripes {
		t.collectStripe(&t.stripes[i], &found)
	}
	return found
}

func (t *table) collectStripe(s *stripe, found *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := t.period.Load()
	for i := range s.chains {
		left := uint64(0)
		for link := &s.chains[i]; *link != nil; {
			c := *link
			cost := counterCost + uint64(len(c.name))
			if c.current == 0 && c.period != now {
				*link = c.next
				t.used.Add(-int64(cost))
				continue
			}
			left++
			found.memory += cost
			link = &c.next
		}
		found.objects += left
		if left > 1 {
			found.conflicts++
		}
	}
}
