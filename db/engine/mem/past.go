package mem

import (
	"maps"
	"slices"
)

// Keep notes the records, claims and lanes of this moment. The function that it returns takes the
// store back there, as a restored backup does. Leases stay as they are. Neither may be called while
// a group is being made, or anything is held. Servers then call Reconnect: their connections were
// cut.
func (s *Store) Keep() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tables, lanes, writers, lane := s.copies(), map[uint64]lane{}, maps.Clone(s.writers), s.lane
	claims, ends := maps.Clone(s.claimed), maps.Clone(s.ends)
	for n, l := range s.lanes {
		lanes[n] = *l
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tables, s.writers, s.lane = tables, writers, lane
		s.tables = s.copies() // the store may go back again
		s.writers, s.claimed, s.ends = maps.Clone(writers), maps.Clone(claims), maps.Clone(ends)
		clear(s.lanes)
		for n, l := range lanes {
			s.lanes[n] = &l
		}
	}
}

// copies returns copies of all tables.
func (s *Store) copies() map[uint16]*table {
	all := map[uint16]*table{}
	for db, t := range s.tables {
		if t != nil {
			all[db] = &table{records: maps.Clone(t.records), order: slices.Clone(t.order), bytes: t.bytes}
		}
	}
	return all
}
