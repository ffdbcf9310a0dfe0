package db

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// stripeCount is a power of two. More stripes make bulk operations lock fewer keys of others.
const stripeCount = 1024

// stripes are locks, each for the keys of one hash value. Whoever reads a record in order to change it holds the
// key's stripe over both; whoever needs several locks them in ascending order.
type stripes struct {
	seed   maphash.Seed
	single bool // all keys share one stripe: a text database's records are not where their keys say
	locks  [stripeCount]sync.Mutex
}

func (s *stripes) init(single bool) { s.seed, s.single = maphash.MakeSeed(), single }

func (s *stripes) index(key []byte) int {
	if s.single {
		return 0
	}
	return int(maphash.Bytes(s.seed, key) % stripeCount)
}

func (s *stripes) of(key []byte) *sync.Mutex { return &s.locks[s.index(key)] }

// stripeSet is a set of stripes to lock together.
type stripeSet [stripeCount / 64]uint64

// add puts a stripe into the set; it returns false when the stripe is there already.
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

func (s *stripes) lock(t *stripeSet)   { s.each(t, (*sync.Mutex).Lock) }
func (s *stripes) unlock(t *stripeSet) { s.each(t, (*sync.Mutex).Unlock) }

// each calls f for the locks of the set in ascending order.
func (s *stripes) each(t *stripeSet, f func(*sync.Mutex)) {
	for i, word := range t {
		for ; word != 0; word &= word - 1 {
			f(&s.locks[i*64+bits.TrailingZeros64(word)])
		}
	}
}
