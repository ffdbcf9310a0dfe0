package filestore

import (
	"encoding/binary"
	"math"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
)

// # The exact count
//
// The original's count command is exact, and so is ours, although a set never looks at the file:
// the lookup would cost a read of the disk for each set of a key that is not cached. The difficulty
// is that a blind set of the key k adds a record when k is new and none when k exists in the file.
//
// The rule: an overlay remembers the keys that it has seen for the first time (overlay.fresh).
// Count looks up which of them exist below the overlay, and adds those to overlay.below. Then
//
//	count = records in the file + live records in the overlay − fresh keys that exist below
//
// An example. The file has the records a and b. Updates: set b, set c, remove a.
//
//	overlay    live: b, c (2)    tombstone: a    fresh: b, c, a
//	Count      looks up b (there), c (not), a (there): below = 2, fresh = empty
//	           2 + 2 − 2 = 2, the records b and c
//
// After another "set d" only d is fresh. The next Count looks up one key and returns 2 + 3 − 2 = 3.
//
// While a checkpoint writes there are two overlays and a file that has part of the frozen one.
// overlay.merged finds out once what the file will have at the end of the checkpoint, and the
// active overlay counts on top of that number. After a clear everything below is hidden: fresh and
// below are emptied, and the number of live records is the count. A checkpoint keeps Meta.Count
// right while it writes, since it has each key's old value at hand.
//
// Looking keys up takes long and must not stop updates. So count takes the list of fresh keys under
// the overlay's lock, looks the keys up without the lock, and adds the result to below under the
// lock again. If a clear came in between, it has emptied below, and the result is thrown away. The
// count that is returned is that of the moment when the list was taken.
//
// Rejected: a lookup before each set (the disk's speed becomes that of a set), and an estimate from
// a sample (clients compare counts of two servers).

// Count returns the exact number of records at one instant of the call. It looks up the keys that
// were first written since the last freeze or call.
func (s *Store) Count() (int64, error) {
	u, err := s.usage()
	if err == nil {
		s.desc.noteExact(u)
	}
	return u.count, err
}

// Size returns the key and value bytes of all records.
func (s *Store) Size() int64 {
	u, err := s.usage()
	if err != nil {
		return 0
	}
	return u.bytes
}

// usage adds up the records of file and overlays. It takes the view before it begins the
// transaction. So the file of the transaction either has the whole frozen overlay, or its
// Meta.Checkpoints shows that the checkpoint has not ended.
func (s *Store) usage() (usage, error) { return s.usageWithin(math.MaxInt) }

// usageWithin is usage, but looks up no more than about most bytes of fresh keys. If there are
// more, the result is not exact.
func (s *Store) usageWithin(most int) (usage, error) {
	v := s.acquire()
	defer v.release()
	tx, err := s.file.Begin(false)
	if err != nil {
		return usage{}, err
	}
	defer tx.Rollback() // a read transaction
	m, err := readMeta(tx)
	if err != nil {
		return usage{}, err
	}
	lower := layers{base: tx.Bucket([]byte(DataBucket))}
	sum := usage{m.Count, m.Bytes}
	if f := v.frozen; f != nil && m.Checkpoints < f.checkpoint {
		sum = f.merged(lower, m)
		lower.frozen = f
	}
	return v.active.count(lower, sum, most), nil
}

// merged returns what the file will have when the checkpoint of o ends. The entries that are not in
// the file yet are looked up once, and the result is kept.
func (o *overlay) merged(lower layers, m Meta) usage {
	o.countMu.Lock()
	defer o.countMu.Unlock()
	if o.total != nil {
		return *o.total
	}
	sum, done := usage{m.Count, m.Bytes}, m.progress()
	if done == nil && o.cleared.Load() {
		sum, lower.base = usage{}, nil
	}
	o.scan(store.Start{Edge: done == nil, Key: done}, func(key, flagged []byte) bool {
		if size := lower.size(key); size >= 0 {
			sum.count--
			sum.bytes -= size
		}
		if flagged[0]&flagLive != 0 {
			sum.count++
			sum.bytes += int64(len(key) + len(flagged) - valueAt(flagged[0]))
		}
		return true
	})
	o.total = &sum
	return sum
}

// layers is the records below an overlay.
type layers struct {
	frozen *overlay     // nil: none, or its content is in base
	base   *bolt.Bucket // nil: hidden
}

// measured is a store.Reader that takes the size of a large value and copies nothing.
type measured struct{ size int }

// Large implements store.Reader.
func (m *measured) Large(size int) (wanted int, err error) {
	m.size = size
	return 0, nil
}

// size returns the key and value bytes that a key has in the layers; -1 where it is not there.
func (l layers) size(key []byte) int64 {
	var room [64]byte
	if l.frozen != nil {
		var m measured
		value, st, _ := l.frozen.get(nil, key, &m)
		switch st {
		case live:
			return int64(len(key) + max(len(value), m.size))
		case dead:
			return -1
		}
	}
	if l.base == nil {
		return -1
	}
	value := l.base.Get(appendBoltKey(room[:0], key))
	if value == nil {
		return -1
	}
	return int64(len(key) + len(value))
}

// cutKeys cuts a list of keys behind about n bytes.
func cutKeys(keys []byte, n int) (first, rest []byte) {
	at := 0
	for at < n {
		length, w := binary.Uvarint(keys[at:])
		at += w + int(length)
	}
	return keys[:at:at], keys[at:]
}

// count returns the records in and below o, where sum is the records below. It looks up the fresh
// keys, but stops after about most bytes of keys. If it stops early, the result counts twice each
// key that is left over and exists below.
func (o *overlay) count(lower layers, sum usage, most int) usage {
	o.countMu.Lock()
	defer o.countMu.Unlock()
	o.mu.Lock()
	keys, rest := o.fresh, []byte(nil)
	if most < len(keys) {
		keys, rest = cutKeys(keys, most)
	}
	o.fresh = rest
	cleared := o.cleared.Load()
	own, known := usage{o.liveCount, o.liveBytes}, o.below
	o.mu.Unlock()

	found := lower.usage(keys)
	o.mu.Lock()
	if cleared == o.cleared.Load() { // after a clear, what was found is void
		o.below.count += found.count
		o.below.bytes += found.bytes
	}
	o.mu.Unlock()
	if cleared {
		return own
	}
	return usage{
		sum.count + own.count - known.count - found.count,
		sum.bytes + own.bytes - known.bytes - found.bytes,
	}
}

// usage adds up what the listed keys have in the layers.
func (l layers) usage(keys []byte) usage {
	var u usage
	for len(keys) > 0 {
		n, w := binary.Uvarint(keys)
		if size := l.size(keys[w : w+int(n)]); size >= 0 {
			u.count++
			u.bytes += size
		}
		keys = keys[w+int(n):]
	}
	return u
}

// estimateBytes is how many bytes of keys Estimate looks up at most.
const estimateBytes = 512 << 10

// Estimate returns a number of records for people who watch, and never takes long. The number is
// exact when no checkpoint is writing and few keys were written since the latest count. Otherwise
// it is the latest exact number. Each call looks some keys up, so after a burst of new keys a few
// calls bring the exact number back.
func (s *Store) Estimate() int64 {
	v := s.acquire()
	frozen, few := v.frozen != nil, v.active.fewFresh()
	v.release()
	if !frozen {
		if u, err := s.usageWithin(estimateBytes); err == nil && few {
			s.desc.noteExact(u)
			return u.count
		}
	}
	return s.desc.lastExact().count
}

// fewFresh reports whether a count has few keys to look up: half of what Estimate looks up, so that
// keys which come in between are looked up as well.
func (o *overlay) fewFresh() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.fresh) <= estimateBytes/2
}
