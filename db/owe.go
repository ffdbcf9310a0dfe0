package db

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"gotycoon/ulog"
)

// What a reply may tell.
//
// An update is visible to everybody as soon as it is in memory, but it is acknowledged only when its log has made it safe: written,
// or synced with SyncEach. Between the two a reader can see a value that a crash, or a failed fsync, takes away again. If the reader
// were answered at once, it would act on a value that never was ("order 1 is paid"). So the rule for updates holds for everything
// else as well: no reply leaves before all that it is based on is safe. That includes replies that say what is not there, and those
// of updates that change nothing: an Add that finds a record tells that there is one.
//
// To make every reader wait for the end of the log would make each of them wait for an fsync under load. A reader waits for what it
// has read only: each stripe of keys has the stamp of the last commit that touched one of its keys, and the database has the
// stamp of its last commit, for scans and as the quick way out. The order makes it exact:
//
//	commit, under commitMu   append to the log → stamps of database and stripes → Apply
//	reader                   read the store → stamps → compare with Log.Acked
//
// Whoever sees a value sees the stamp of its commit, or a later one. When Acked is not below it, which is nearly always so, the
// reader owes nothing: that costs two atomic loads and no hash. Otherwise the stamp is added to the reader's Pending, and
// netio.(*Conn).Flush waits for it as for an update of the connection's own. After a log has failed the wait fails, and nothing
// leaves: what was never safe is not told any more.
//
// Two keys of one stripe share its stamp, so a reader sometimes waits for an update of another key; it never waits too little. In a
// transaction readers see the collected updates, which are nobody's promise yet; what they see of the database below is owed.

// owe adds to p what a reply must wait for that tells of the record of key. The record has been read before. Without p it waits.
func (d *DB) owe(p *Pending, key []byte) error {
	if !d.ahead() {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	return d.oweStamp(p, d.stripes.of(key).stamp())
}

// oweKeys is owe for several keys.
func (d *DB) oweKeys(p *Pending, keys [][]byte) error {
	if !d.ahead() {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	at := ulog.Stamp(0)
	for _, key := range keys {
		at = max(at, d.stripes.of(key).stamp())
	}
	return d.oweStamp(p, at)
}

// oweAll is owe for what a scan has seen, or has not.
func (d *DB) oweAll(p *Pending) error {
	if !d.ahead() {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	return d.oweStamp(p, ulog.Stamp(d.last.Load()))
}

// Seen adds to p what a reply must wait for that is based on anything in the database as it is now, for services that keep a copy of
// its records in memory. Without p it waits.
func (d *DB) Seen(p *Pending) error { return d.oweAll(p) }

// ahead reports whether the database has updates that its log has not made safe.
func (d *DB) ahead() bool {
	if d.base != nil {
		d = d.base
	}
	return d.log != nil && ulog.Stamp(d.last.Load()) > d.log.Acked()
}

func (d *DB) oweStamp(p *Pending, at ulog.Stamp) error {
	if at <= d.log.Acked() {
		return nil
	}
	if p == nil {
		return systemError(d.log.Wait(at))
	}
	p.Add(d.log, at)
	return nil
}

// oweBatch adds what a reply to an operation must wait for that has logged nothing: it may tell of the records of all keys that the
// batch has locked. What was logged has a greater stamp than all of them.
func (b *batch) oweBatch(p *Pending) {
	d := b.db
	if b.logged || !d.ahead() {
		return
	}
	if p == nil {
		p = &b.own
	}
	switch {
	case d.base != nil:
		_ = d.base.oweAll(p) // with p it does not wait
	case b.stripe != nil:
		_ = d.oweStamp(p, b.stripe.stamp())
	default:
		_ = d.oweStamp(p, d.stripes.newest(&b.keys))
	}
}

// stripeCount is a power of two. More stripes make bulk operations lock fewer keys of others.
const stripeCount = 1024

// stripes are locks, each for the keys of one hash value. Whoever reads a record in order to change it holds the
// key's stripe over both; whoever needs several locks them in ascending order.
type stripes struct {
	seed   maphash.Seed
	single bool // all keys share one stripe: a text database's records are not where their keys say
	all    [stripeCount]stripe
}

// stripe is the lock of some keys, and when one of them was changed last.
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

func (s *stripes) lock(t *stripeSet)   { s.each(t, func(one *stripe) { one.Lock() }) }
func (s *stripes) unlock(t *stripeSet) { s.each(t, func(one *stripe) { one.Unlock() }) }

// touch notes the stamp of a commit that touches keys of a set. The caller holds DB.commitMu, so stamps only grow.
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
