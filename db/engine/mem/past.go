package mem

import (
	"maps"
	"slices"
)

// Keep notes the records and lanes of this moment. The function that it returns takes the store
// back there, as a restored backup does. Neither may be called while a group is being made, or
// anything is held or claimed. Servers then call Reconnect: their connections were cut.
func (s *Store) Keep() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tables, lanes, writers, lane := s.copies(), map[uint64]lane{}, maps.Clone(s.writers), s.lane
	for n, l := range s.lanes {
		lanes[n] = *l
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tables, s.writers, s.lane = tables, writers, lane
		s.tables = s.copies() // the store may go back again
		s.writers = maps.Clone(writers)
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
