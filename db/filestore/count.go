package filestore

import (
	"encoding/binary"
	"math"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
)

// Count returns the exact number of records at one instant of the call. It looks at the keys that were first
// written since the last checkpoint or call, whichever is later.
func (s *Store) Count() (int64, error) {
	u, err := s.usage()
	if err == nil {
		s.noteExact(u)
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

// usage adds up file and overlays. The view is taken first and the transaction begun afterwards: then the frozen
// overlay is either not yet in the file, or wholly.
func (s *Store) usage() (usage, error) { return s.usageWithin(math.MaxInt) }

// usageWithin is usage that looks no more than about most bytes of keys up, and then is not exact.
func (s *Store) usageWithin(most int) (usage, error) {
	v := s.acquire()
	defer v.release()
	tx, err := s.file.Begin(false)
	if err != nil {
		return usage{}, err
	}
	defer tx.Rollback() //nolint:errcheck // a read transaction
	m, err := readMeta(tx)
	if err != nil {
		return usage{}, err
	}
	lower := layers{base: tx.Bucket([]byte(dataBucket))}
	sum := usage{m.Count, m.Bytes}
	if f := v.frozen; f != nil && m.Checkpoints < f.checkpoint {
		sum = f.merged(lower, m)
		lower.frozen = f
	}
	return v.active.count(lower, sum, most), nil
}

// merged returns what the file will have when the checkpoint of o ends. It is found out once, by looking at those
// entries that are not in the file yet.
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

// layers is what lies below an overlay.
type layers struct {
	frozen *overlay     // nil: none, or its content is in base
	base   *bolt.Bucket // nil: hidden
}

// measured reads no large value, only its size.
type measured struct{ size int }

// Large implements store.Reader.
func (m *measured) Large(size int) (wanted int, err error) {
	m.size = size
	return 0, nil
}

// size returns the key and value bytes that key has in the layers, -1 for none.
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

// count returns the records in and below o, where below has sum. It settles the keys not yet looked up, but no more than about most bytes
// of them; if there are more, the result is too large by those of them that are below.
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
	own, settled := usage{o.liveCount, o.liveBytes}, o.below
	o.mu.Unlock()

	found := lower.usage(keys)
	o.mu.Lock()
	if cleared == o.cleared.Load() { // a clear in between makes what was found meaningless from then on
		o.below.count += found.count
		o.below.bytes += found.bytes
	}
	o.mu.Unlock()
	if cleared {
		return own
	}
	return usage{
		sum.count + own.count - settled.count - found.count,
		sum.bytes + own.bytes - settled.bytes - found.bytes,
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
