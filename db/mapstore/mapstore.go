// Package mapstore is the smallest engine that stores something: a sorted slice. It is there to be
// read by somebody who writes another engine, see docs/engines.md. For use, the tree "%" is better
// in every way.
package mapstore

import (
	"bytes"
	"slices"
	"sync"

	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// A record is never changed once it is in a slice, so a goroutine that has the slice may read it
// without the lock.
type record struct{ key, value []byte }

// Store keeps records in memory.
type Store struct {
	mu      sync.RWMutex // guards the fields below
	records []record     // sorted by key
	size    int64        // bytes of keys and values
	lent    bool         // a frozen has the slice, too: copy it before the next change
}

var _ store.Freezer = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{} }

// find returns where key is, or where it would be.
func find(records []record, key []byte) (int, bool) {
	return slices.BinarySearchFunc(records, key, func(r record, key []byte) int { return bytes.Compare(r.key, key) })
}

// Get appends the value of key to dst.
func (s *Store) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := find(s.records, key)
	if !found {
		return dst, false, nil
	}
	dst, err = store.Append(dst, s.records[i].value, r)
	return dst, true, err
}

// Apply makes updates visible all at once. They are in the log already, so they cannot be refused.
func (s *Store) Apply(_ update.Stamp, ups []update.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent {
		s.records, s.lent = slices.Clone(s.records), false
	}
	for i := range ups {
		switch u := &ups[i]; u.Op {
		case update.OpClear:
			s.records, s.size = nil, 0
		case update.OpRemove:
			s.remove(u.Key)
		case update.OpSet:
			s.remove(u.Key)
			s.insert(record{bytes.Clone(u.Key), bytes.Clone(u.Value)}) // the slices are the caller's
		}
	}
}

func (s *Store) remove(key []byte) {
	if i, found := find(s.records, key); found {
		s.size -= int64(len(key) + len(s.records[i].value))
		s.records = slices.Delete(s.records, i, i+1)
	}
}

func (s *Store) insert(r record) {
	i, _ := find(s.records, r.key)
	s.records = slices.Insert(s.records, i, r)
	s.size += int64(len(r.key) + len(r.value))
}

// Scan visits records from a place on.
func (s *Store) Scan(from store.Start, visit func(key, value []byte) bool) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, step := s.begin(from), 1
	if from.Backward {
		step = -1
	}
	for ; i >= 0 && i < len(s.records); i += step {
		if !visit(s.records[i].key, s.records[i].value) {
			return nil
		}
	}
	return nil
}

// begin returns the index of the first record that a scan visits.
func (s *Store) begin(from store.Start) int {
	if from.Edge {
		if from.Backward {
			return len(s.records) - 1
		}
		return 0
	}
	i, found := find(s.records, from.Key)
	switch {
	case found && from.Inclusive:
		return i
	case from.Backward:
		return i - 1
	case found:
		return i + 1
	}
	return i
}

// Count returns the number of records.
func (s *Store) Count() (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return int64(len(s.records)), nil
}

// Size returns the bytes of keys and values.
func (s *Store) Size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// Freeze lends the slice; the next change is made to a copy.
func (s *Store) Freeze(instant func(take func())) (store.Frozen, error) {
	f := &frozen{}
	instant(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.records, s.lent = s.records, true
	})
	return f, nil
}

// Close lets go of the records.
func (s *Store) Close() error {
	s.Apply(0, []update.Update{{Op: update.OpClear}})
	return nil
}

// frozen is the records of an instant.
type frozen struct{ records []record }

// Count returns their number.
func (f *frozen) Count() int64 { return int64(len(f.records)) }

// Scan visits them.
func (f *frozen) Scan(backward bool, visit func(key, value []byte) error) error {
	for i := range f.records {
		if backward {
			i = len(f.records) - 1 - i
		}
		if err := visit(f.records[i].key, f.records[i].value); err != nil {
			return err
		}
	}
	return nil
}

// Close lets go of them.
func (f *frozen) Close() error { f.records = nil; return nil }
