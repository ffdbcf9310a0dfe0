package memstore

import (
	"bytes"
	"runtime"
	"sync"

	"gotycoon/db/store"
)

// What a frozen's scan copies at a time, under a lock of the store: at most so many records, and no more after so many
// bytes. It is some ten microseconds.
const (
	frozenRecords = 128
	frozenBytes   = 32 << 10
)

// The first byte of what is saved of a record.
const (
	wasAbsent = 0
	wasThere  = 1 // the value follows
)

// frozen is a store as it was at an instant.
//
// Before a writer changes a record it saves what the record was, unless that is saved already or the scan has passed its
// place. The scan copies some records as they are now, and afterwards looks at what has been saved of the same part of
// the order, which counts. Whatever changes a record before the first look has saved it before the second, so no lock is
// held over both. What the scan has passed is dropped.
//
// A place is a key in a form that is ordered by bytes as the store orders its keys. The key is at its end.
type frozen struct {
	owner *freezes
	count int64
	saved *Tree  // by place
	room  []byte // scratch of save; guarded by the store's writer lock

	mu       sync.Mutex // guards the fields below
	records  records    // where what has not been saved is
	left     *remains   // memory of the records, if a clear has taken them out of the store
	begun    bool       // the scan has passed a place
	ended    bool       // it has passed all
	backward bool       // it goes against the order
	passed   []byte     // the last place passed
	closed   bool
}

var _ store.Frozen = (*frozen)(nil)

// Count returns the number of records.
func (f *frozen) Count() int64 { return f.count }

// save keeps what the record at a place was. The caller holds the store's writer lock.
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

// behind tells whether place a comes after b.
func behind(a, b []byte, backward bool) bool {
	c := bytes.Compare(a, b)
	return c > 0 && !backward || c < 0 && backward
}

// pass notes that the scan needs nothing more up to a place, or at all.
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

// Scan visits the records as they were. It copies them, so visit holds nobody up.
func (f *frozen) Scan(backward bool, visit func(key, value []byte) error) error {
	f.mu.Lock()
	f.backward = backward
	f.mu.Unlock()
	s := frozenScan{frozen: f, backward: backward, keyAt: len(f.owner.place(nil, nil))}
	for s.load() {
		runtime.Gosched() // a writer that waited for the locks is next on this processor, and would wait on
		if err := s.merge(visit); err != nil {
			return err
		}
	}
	return nil
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
