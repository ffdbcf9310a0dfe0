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
	single bool // all keys share one stripe: a text database's records are not where their keys say
	all    [stripeCount]stripe
}

// stripe is the lock of some keys, with the stamp of their last change.
type stripe struct {
	sync.Mutex
	last atomic.Uint64 // stamp of the last commit that touched one of the keys, see owe.go
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
type stripeSet [stripeCount / 64]uint64

// add puts a stripe into the set. It returns false when the stripe is in the set already.
func (t *stripeSet) add(i int) bool {
	bit := uint64(1) << (i % 64)
	if t[i/64]&bit != 0 {
		return false
	}
	t[i/64] |= bit
	return true
}

// all puts every stripe into the set.
func (t *stripeSet) all() {
	for i := range t {
		t[i] = ^uint64(0)
	}
}

func (s *stripes) lock(t *stripeSet)   { s.each(t, func(one *stripe) { one.Lock() }) }
func (s *stripes) unlock(t *stripeSet) { s.each(t, func(one *stripe) { one.Unlock() }) }

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
	for i, word := range t {
		for ; word != 0; word &= word - 1 {
			f(&s.all[i*64+bits.TrailingZeros64(word)])
		}
	}
}
