package memstore

import (
	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// A TreeStore is a Tree as the store of a database.
type TreeStore struct {
	tree    Tree
	keys    [][]byte    // of the updates being applied; guarded by tree.writer
	apart   []slab.Addr // blocks made for the updates being applied; guarded by tree.writer
	freezes freezes     // guarded by tree.writer

	prepared Prepared
}

var (
	_ store.Preparer = (*TreeStore)(nil)
	_ store.Warmer   = (*TreeStore)(nil)
)

// NewTreeStore returns an empty TreeStore.
func NewTreeStore() *TreeStore {
	s := &TreeStore{tree: Tree{arena: slab.New()}}
	s.freezes.init(&s.tree.writer, func(dst, key []byte) []byte { return append(dst, key...) })
	return s
}

// Get appends the value of key to dst. The error is that of r.
func (s *TreeStore) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	dst, large, pin, found := s.tree.Look(dst, key)
	if pin != nil {
		defer pin.Release()
		dst, err = store.Append(dst, large, r)
	}
	return dst, found, err
}

// Prepare copies large values that are about to be applied.
func (s *TreeStore) Prepare(ups []update.Update) { s.prepared.Add(ups, 0) }

// Forget takes Prepare back.
func (s *TreeStore) Forget(ups []update.Update) { s.prepared.Forget(ups) }

// Apply makes the updates visible all at once.
func (s *TreeStore) Apply(_ update.Stamp, ups []update.Update) {
	s.tree.writer.Lock()
	defer s.tree.writer.Unlock()
	arena, clears := s.tree.arena, false
	if n := lastClear(ups); n >= 0 { // nothing before it matters
		arena, clears = arena.Fresh(), true
		ups = ups[n+1:]
	}
	if !clears {
		s.warm(ups)
	}
	s.makeAparts(arena, ups)
	kept := s.prepare(clears, ups)
	s.run(arena, clears, ups)
	if kept {
		s.tree.cleared = nil // theirs now
	}
	s.tree.releaseCleared()
}

// warm has the tree warmed for the updates' keys, and keeps their leaves.
func (s *TreeStore) warm(ups []update.Update) {
	s.tree.leaves = s.tree.leaves[:0]
	if !worthwhile(len(ups), s.tree.arena) {
		return
	}
	s.keys = s.keys[:0]
	for i := range ups {
		s.keys = append(s.keys, ups[i].Key)
	}
	s.tree.leaves = s.tree.warm(s.keys, s.tree.leaves[:0])
	clear(s.keys)
	if cap(s.keys) > keepSteps {
		s.keys, s.tree.leaves = nil, nil
	}
}

// Warm implements store.Warmer.
func (s *TreeStore) Warm(keys [][]byte) { s.tree.Warm(keys) }

// prepare saves what the updates are about to change in the open frozen views. kept is true when
// the views have taken over the cleared records.
func (s *TreeStore) prepare(clears bool, ups []update.Update) (kept bool) {
	switch {
	case s.freezes.none():
		return false
	case clears:
		t := &s.tree
		s.freezes.leave(&Tree{arena: t.arena, root: t.root, count: t.count}, t.arena)
		return true
	}
	for i := range ups {
		if u := &ups[i]; u.Op == update.OpSet || u.Op == update.OpRemove {
			value, found := s.tree.find(u.Key)
			s.freezes.save(u.Key, value, found)
		}
	}
	return false
}

// Freeze returns the tree as it is at an instant. The error is always nil.
func (s *TreeStore) Freeze(instant func(take func())) (store.Frozen, error) {
	return s.freezes.freeze(instant, s, func() int64 { return int64(s.tree.Len()) }), nil
}

// makeAparts copies long values before readers have to wait.
func (s *TreeStore) makeAparts(arena *slab.Arena, ups []update.Update) {
	s.apart = s.apart[:0]
	for i := range ups {
		var at slab.Addr
		if ups[i].Op == update.OpSet {
			if v := s.prepared.Take(ups[i].Value, 0); v != nil {
				at = arena.Adopt(v.made)
			} else {
				at = makeApart(arena, ups[i].Key, ups[i].Value)
			}
		}
		s.apart = append(s.apart, at)
	}
}

func (s *TreeStore) run(arena *slab.Arena, clears bool, ups []update.Update) {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	if clears {
		s.tree.reset(arena)
	}
	for i := range ups {
		switch u := &ups[i]; u.Op {
		case update.OpSet:
			s.tree.putAt(i, u.Key, u.Value, s.apart[i])
		case update.OpRemove:
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

// Mapped returns the bytes taken from the operating system. Pages that were never touched cost
// nothing.
func (s *TreeStore) Mapped() int64 { return s.tree.Mapped() }

// Close gives all memory back. The error is always nil.
func (s *TreeStore) Close() error {
	s.Apply(0, []update.Update{{Op: update.OpClear}})
	s.tree.arena.Wait()
	return nil
}
