package memstore

import (
	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// TreeStore is a Tree as the store of a database.
type TreeStore struct {
	tree  Tree
	apart []slab.Addr // blocks made for the updates being applied; guarded by tree.writer
}

var _ store.Store = (*TreeStore)(nil)

// NewTreeStore returns an empty TreeStore.
func NewTreeStore() *TreeStore {
	return &TreeStore{tree: Tree{arena: slab.New()}}
}

// Get appends the value of key to dst. The error is always nil.
func (s *TreeStore) Get(dst, key []byte) (value []byte, found bool, err error) {
	value, found = s.tree.Get(dst, key)
	return value, found, nil
}

// Apply makes the updates visible all at once.
func (s *TreeStore) Apply(_ ulog.Stamp, ups []ulog.Update) {
	s.tree.writer.Lock()
	defer s.tree.writer.Unlock()
	arena, clears := s.tree.arena, false
	if n := lastClear(ups); n >= 0 { // nothing before it matters
		arena, clears = slab.New(), true
		ups = ups[n+1:]
	}
	s.makeAparts(arena, ups)
	s.run(arena, clears, ups)
	s.tree.releaseCleared()
}

// makeAparts copies long values before readers have to wait.
func (s *TreeStore) makeAparts(arena *slab.Arena, ups []ulog.Update) {
	s.apart = s.apart[:0]
	for i := range ups {
		var at slab.Addr
		if ups[i].Op == ulog.OpSet {
			at = makeApart(arena, ups[i].Key, ups[i].Value)
		}
		s.apart = append(s.apart, at)
	}
}

func (s *TreeStore) run(arena *slab.Arena, clears bool, ups []ulog.Update) {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	if clears {
		s.tree.reset(arena)
	}
	for i := range ups {
		switch u := &ups[i]; u.Op {
		case ulog.OpSet:
			s.tree.put(u.Key, u.Value, s.apart[i])
		case ulog.OpRemove:
			s.tree.remove(u.Key)
		}
	}
}

// Scan visits the records in key order or against it, as Tree.Scan does.
func (s *TreeStore) Scan(from store.Start, visit func(key, value []byte) bool) error {
	return s.tree.Scan(from, visit)
}

// Count returns the number of records. The error is always nil.
func (s *TreeStore) Count() (int64, error) { return int64(s.tree.Len()), nil }

// Size returns the bytes of memory that the records occupy.
func (s *TreeStore) Size() int64 { return s.tree.Bytes() }

// Mapped returns the bytes taken from the operating system, of which those never touched cost nothing.
func (s *TreeStore) Mapped() int64 { return s.tree.Mapped() }

// Close gives all memory back. The error is always nil.
func (s *TreeStore) Close() error {
	s.tree.Free()
	return nil
}
