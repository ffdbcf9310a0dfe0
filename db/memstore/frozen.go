package memstore

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
)

// # Frozen views
//
// A snapshot, and a copy for a follower, need all records as they were at one instant. Copying them
// at that instant would stop updates for seconds: ten million records of 100 bytes are a gigabyte.
// So the records stay where they are, and whoever changes a record saves its old value first.
//
// The rule for writers: before a writer changes a record it saves in every open frozen what the
// record was (its value, or that there was none), unless it is saved already or the scan has passed
// the record's place.
//
// The rule for the scan: it copies some records as they are now, and afterwards looks at the
// records that were saved in the same part of the order. If a record was saved, the saved value
// counts; otherwise the copy counts. When the scan has passed a part, it drops the saved records of
// that part, and writers save nothing there any more.
//
// An example. At the instant the store has a=1, b=2, c=3, d=4. The scan copies two records at a
// time.
//
//	scan                                   writer
//	copies a=1, b=2                        set b=20: saves b=2, changes b
//	saved up to b: b=2
//	visits a=1, b=2; passed: b
//	                                       set a=10: the scan has passed a, nothing is saved
//	                                       remove d: saves d=4; set e=5: saves "e absent"
//	copies c=3, e=5
//	saved up to e: d=4, e absent
//	visits c=3, d=4
//
// No lock is held over the two looks of the scan, and none is needed: if the first look has seen a
// change, the writer had saved the old value before the change, so the second look finds the old
// value. With the looks in the other order, saved records first, a change between the two would be
// in the copy, and the scan would have missed the saved value.
//
// A clear takes the whole index and its memory out of the store and hands both to the open frozen
// views, which go on reading there. A clear saves no single records.
//
// The cost: while a frozen is open, an update looks up the old record and copies it, once for each
// record. The memory is that of the records that change between the instant and the moment when the
// scan passes them. Rejected: pages that are copied on write, as in bbolt. Every read would then
// follow one more level of addresses, with or without a snapshot. Rejected too: fork, as Redis does
// it. A Go process cannot fork, and the kernel would copy pages of 4 KiB for updates of 100 bytes.
//
// Package filestore makes its frozen views in another way, with a read transaction of the file; see
// Store.Freeze there.

// A frozen's scan copies at most frozenRecords records under one lock of the store, and no further
// record after frozenBytes bytes. That takes some ten microseconds.
const (
	frozenRecords = 128
	frozenBytes   = 32 << 10
)

// The first byte of a saved record.
const (
	wasAbsent = 0
	wasThere  = 1 // the value follows
)

// A frozen is a store as it was at an instant.
//
// A place is a key in a form that is ordered by bytes as the store orders its keys: in a Tree the
// key itself, in a Hash the key behind its hash. The key is at the end of the place.
type frozen struct {
	owner *freezes
	count int64
	saved *Tree  // old records, by place
	room  []byte // scratch of save; guarded by the store's writer lock

	mu       sync.Mutex // guards the fields below
	records  records    // where the records are that nobody has changed
	left     *remains   // memory of the records, if a clear has taken them out of the store
	begun    bool       // the scan has passed a place
	ended    bool       // the scan has passed all
	backward bool       // the scan goes against the order
	passed   []byte     // the last place passed
	closed   bool
}

var _ store.Frozen = (*frozen)(nil)

// Count returns the number of records.
func (f *frozen) Count() int64 { return f.count }

// save saves the old record at a place. The caller holds the store's writer lock.
func (f *frozen) save(place, value []byte, found bool) {
	if f.hasPassed(place) || f.saved.has(place) {
		return
	}
	f.room = append(f.room[:0], wasAbsent)
	if found {
		f.room[0] = wasThere
		f.room = append(f.room, value...)
	}
	f.saved.Put(place, f.room)
	if cap(f.room) > frozenBytes {
		f.room = nil
	}
}

func (f *frozen) hasPassed(place []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended || f.begun && !behind(place, f.passed, f.backward)
}

// behind reports whether place a comes after b in the scan's direction.
func behind(a, b []byte, backward bool) bool {
	c := bytes.Compare(a, b)
	return c > 0 && !backward || c < 0 && backward
}

// pass notes that the scan needs nothing more up to a place, or nothing more at all.
func (f *frozen) pass(place []byte, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.ended = true, all
	f.passed = append(f.passed[:0], place...)
}

// leave makes f read what a clear is about to take out of the store.
func (f *frozen) leave(r records, left *remains) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records, f.left = r, left
}

func (f *frozen) source() records {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records
}

// Close gives the memory back. The error is always nil.
func (f *frozen) Close() error {
	f.owner.drop(f)
	f.mu.Lock()
	left, closed := f.left, f.closed
	f.closed, f.ended = true, true
	f.mu.Unlock()
	if closed {
		return nil
	}
	f.saved.Free()
	if left != nil {
		left.release()
	}
	return nil
}

// records is what a frozen reads: a store, or what a clear has taken out of it.
type records interface {
	Scan(from store.Start, visit func(key, value []byte) bool) error
}

// freezes is the list of open frozen views of a store, guarded by the store's writer lock. A writer
// first asks whether there are any, so that it does no work for nobody.
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

// prepare saves the records that a plan is about to change. It returns true when the plan clears
// the store and the frozen views have taken the arena over. The caller must not release the arena
// then, because the frozen views still read it.
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

// save saves the record with a key before the record changes; found is false if there is no such
// record.
func (s *freezes) save(key, value []byte, found bool) {
	if s.none() {
		return
	}
	s.room = s.place(s.room[:0], key)
	for _, f := range s.open {
		f.save(s.room, value, found)
	}
}

// leave hands the frozen views what a clear is about to take out of the store, with its arena.
// Later changes of the store do not concern them.
func (s *freezes) leave(r records, a *slab.Arena) {
	left := &remains{arena: a}
	left.refs.Store(int64(len(s.open)))
	for _, f := range s.open {
		f.leave(r, left)
	}
	s.open = nil
}

// drop forgets a frozen view that needs the store no more.
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

func (u *unlocked) rlock(int) {}

func (u *unlocked) runlock(int) {}
