package httpapi

import "sync/atomic"

// count adds a call to the counters of report (section 10). A call that was wrong as such is not counted.
func (s *Session) count(t tally, err error) {
	if t == tallyNone || err != nil && isBadRequest(err) {
		return
	}
	c := s.h.opts.Counts
	switch t {
	case tallySet:
		add(&c.Set, &c.SetMisses, err)
	case tallyRemove:
		add(&c.Remove, &c.RemoveMisses, err)
	case tallyGet:
		add(&c.Get, &c.GetMisses, err)
	case tallySeize:
		add(&c.Get, &c.GetMisses, err)
		add(&c.Remove, &c.RemoveMisses, err)
	case tallyMisc:
		c.Misc.Add(1)
	}
}

func add(calls, misses *atomic.Int64, err error) {
	calls.Add(1)
	if err != nil {
		misses.Add(1)
	}
}
