package memstore

import (
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
)

// records is what a frozen reads: a store, or what a clear has taken out of it.
type records interface {
	Scan(from store.Start, visit func(key, value []byte) bool) error
}

// freezes is those who need a store as it was. The store's writer lock guards it. A writer asks none first, so that it
// does no work for nobody.
type freezes struct {
	writer *sync.Mutex
	place  func(dst, key []byte) []byte // see frozen
	open   []*frozen
	room   []byte // scratch
}

func (s *freezes) init(writer *sync.Mutex, place func(dst, key []byte) []byte) {
	s.writer, s.place = writer, place
}

func (s *freezes) none() bool { return len(s.open) == 0 }

// freeze returns the records of a store as they are when instant calls its argument.
func (s *freezes) freeze(instant func(take func()), r records, count func() int64) *frozen {
	f := &frozen{owner: s, records: r, saved: NewTree()}
	instant(func() {
		s.writer.Lock()
		defer s.writer.Unlock()
		f.count = count()
		s.open = append(s.open, f)
	})
	return f
}

// prepare keeps what a plan is about to change. It returns true when the arena that the plan takes out of the index by a
// clear is not to be released: those who need it have taken it over.
func (s *freezes) prepare(p *plan, x *index) (kept bool) {
	switch {
	case s.none():
		return false
	case p.fresh != nil:
		left := *x
		s.leave(&unlocked{&left}, x.arena)
		return true
	}
	for i := range p.steps {
		st := &p.steps[i]
		if at := x.get(st.hash, st.key); at != 0 {
			_, value := x.record(at)
			s.save(st.key, value, true)
		} else {
			s.save(st.key, nil, false)
		}
	}
	return false
}

// save keeps what the record with a key is before it changes; found is false where there is none.
func (s *freezes) save(key, value []byte, found bool) {
	if s.none() {
		return
	}
	s.room = s.place(s.room[:0], key)
	for _, f := range s.open {
		f.save(s.room, value, found)
	}
}

// leave lets them have what a clear is about to take out of the store, with its arena. Nothing else concerns them then.
func (s *freezes) leave(r records, a *slab.Arena) {
	left := &remains{arena: a}
	left.refs.Store(int64(len(s.open)))
	for _, f := range s.open {
		f.leave(r, left)
	}
	s.open = nil
}

// drop forgets one of them, who needs the store no more.
func (s *freezes) drop(f *frozen) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if i := slices.Index(s.open, f); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}

// remains is the memory of cleared records.
type remains struct {
	arena *slab.Arena
	refs  atomic.Int64
}

// release drops one hold and gives the memory back after the last.
func (r *remains) release() {
	if r.refs.Add(-1) == 0 {
		r.arena.Release()
	}
}

// unlocked is an index that nobody changes any more.
type unlocked struct{ index *index }

// Scan visits the records from a place of the order.
func (u *unlocked) Scan(from store.Start, visit func(key, value []byte) bool) error {
	u.index.scan(u, from, visit)
	return nil
}

func (u *unlocked) rlock(int)   {}
func (u *unlocked) runlock(int) {}
