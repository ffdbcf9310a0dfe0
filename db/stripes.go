package db

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"gotycoon/ulog"
)

// stripeCount is a power of two. More stripes make bulk operations lock fewer keys of others.
const stripeCount = 1024

// stripes are locks, each for the keys of one hash value. An operation that reads a record in order
// to change it holds the key's stripe over both; an operation that needs several locks takes them
// in ascending order.
type stripes struct {
	seed   maphash.Seed
	single bool         // all keys share one stripe: a text database's records are not where their keys say
	aside  atomic.Int64 // goroutines in standAside that wait
	all    [stripeCount]stripe
}

// stripe is the lock of some keys, with the stamp of their last change.
type stripe struct {
	sync.Mutex
	// operations that have the lock, or wait for it, and may keep it for seconds, see stripes.lock
	lingering atomic.Int32
	last      atomic.Uint64 // stamp of the last commit that touched one of the keys, see owe.go
}

func (s *stripe) stamp() ulog.Stamp { return ulog.Stamp(s.last.Load()) }

func (s *stripes) init(single bool) { s.seed, s.single = maphash.MakeSeed(), single }

func (s *stripes) index(key []byte) int {
	if s.single {
		return 0
	}
	return int(maphash.Bytes(s.seed, key) % stripeCount)
}

func (s *stripes) of(key []byte) *stripe { return &s.all[s.index(key)] }

// stripeSet is a set of stripes to lock together.
type stripeSet struct {
	words [stripeCount / 64]uint64
	some  uint16 // the words that are not 0: most sets have two or three stripes
}

// add puts a stripe into the set. It returns false when the stripe is in the set already.
func (t *stripeSet) add(i int) bool {
	bit := uint64(1) << (i % 64)
	if t.words[i/64]&bit != 0 {
		return false
	}
	t.words[i/64] |= bit
	t.some |= 1 << (i / 64)
	return true
}

// all puts every stripe into the set.
func (t *stripeSet) all() {
	for i := range t.words {
		t.words[i] = ^uint64(0)
	}
	t.some = 1<<len(t.words) - 1
}

// lock locks the stripes of a set.
//
// A stripe is held for microseconds, with one exception: the visitor of a script may take seconds.
// Suppose that a bulk of a hundred keys waits for the visitor and holds the stripes before it. Then
// sets of a tenth of all keys wait too, and so do other bulks, which hold theirs: soon everybody
// waits for one script. Therefore whoever may keep a stripe for long says so before it asks for the
// lock (lingering), and lock waits for such a stripe while it holds nothing.
//
// Scripts that follow each other without a pause could keep a clear away for ever, so after
// asideTries times lock waits in the usual way.
func (s *stripes) lock(t *stripeSet) {
	s.standAside(t)
	s.lockNow(t)
}

// standAside waits, without a lock in hand, while somebody may keep a stripe of a set for long.
func (s *stripes) standAside(t *stripeSet) {
	for range asideTries {
		one := s.lingering(t)
		if one == nil {
			return
		}
		s.aside.Add(1)
		one.Lock()
		//lint:ignore SA2001 when the lock is free, its holder has gone on
		one.Unlock()
		s.aside.Add(-1)
	}
}

const asideTries = 16

// lockNow is lock for a caller that may keep the stripes for long itself.
func (s *stripes) lockNow(t *stripeSet) { s.each(t, func(one *stripe) { one.Lock() }) }

func (s *stripes) unlock(t *stripeSet) { s.each(t, func(one *stripe) { one.Unlock() }) }

// lingering returns a stripe of a set that somebody may keep for long, nil where there is none.
func (s *stripes) lingering(t *stripeSet) (found *stripe) {
	s.each(t, func(one *stripe) {
		if one.lingering.Load() > 0 {
			found = one
		}
	})
	return found
}

// linger notes that the caller is about to lock the stripes of a set, and may keep them for long;
// depart takes that back when the stripes are unlocked.
func (s *stripes) linger(t *stripeSet) { s.each(t, func(one *stripe) { one.lingering.Add(1) }) }
func (s *stripes) depart(t *stripeSet) { s.each(t, func(one *stripe) { one.lingering.Add(-1) }) }

// pass returns when every stripe that is locked now has been unlocked once.
func (s *stripes) pass() {
	for i := range s.all {
		s.all[i].Lock()
		//lint:ignore SA2001 when the lock is free, its holder has gone on
		s.all[i].Unlock()
	}
}

// touch notes the stamp of a commit that touches keys of a set. The caller holds core.commitMu, so
// stamps only grow.
func (s *stripes) touch(t *stripeSet, at ulog.Stamp) {
	s.each(t, func(one *stripe) { one.last.Store(uint64(at)) })
}

// newest returns the stamp of the last commit that touched a key of a set.
func (s *stripes) newest(t *stripeSet) (at ulog.Stamp) {
	s.each(t, func(one *stripe) { at = max(at, one.stamp()) })
	return at
}

// each calls f for the stripes of the set in ascending order.
func (s *stripes) each(t *stripeSet, f func(*stripe)) {
	for some := t.some; some != 0; some &= some - 1 {
		i := bits.TrailingZeros16(some)
		for word := t.words[i]; word != 0; word &= word - 1 {
			f(&s.all[i*64+bits.TrailingZeros64(word)])
		}
	}
}
