package filestore

import (
	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

// writeOverlay writes an overlay into the file in transactions of a bounded size. Only the last
// transaction moves the stamp; until then Meta.Merging says how far the overlay is in the file.
func (s *Store) writeOverlay(o *overlay, clean bool) error {
	from, m := store.Start{Edge: true}, s.Meta()
	for {
		var last []byte
		err := s.file.Update(func(tx *bolt.Tx) (err error) {
			if from.Edge && o.cleared.Load() {
				if err := emptyBuckets(tx, s.lww); err != nil {
					return err
				}
				m.Count, m.Bytes, m.Removals, m.Base = 0, 0, 0, 0
				m.Summed, m.Sum = true, 0
			}
			w := batchWriter{bucket: tx.Bucket([]byte(DataBucket)), meta: &m, limit: s.opts.Limit / batchShare}
			if s.lww {
				if w.versions, err = tx.CreateBucketIfNotExists([]byte(VersionBucket)); err != nil {
					return err
				}
			}
			o.scan(from, w.visit)
			if w.err != nil {
				return w.err
			}
			m.Merging, m.MergeEpoch = w.next, m.Epoch
			if last = w.next; last == nil {
				m.Stamp, m.Checkpoints, m.Clean = o.stamp, o.checkpoint, clean
				m.ClearedAt, m.ClearedBy = o.clearedBy.Stamp, o.clearedBy.SID
				if o.follow.at != 0 {
					m.Position, m.PositionAt = o.follow.state, o.follow.at
				}
			}
			return writeMeta(tx, m)
		})
		if err != nil {
			return err
		}
		s.desc.change(func(now *Meta) { *now = m })
		if last == nil {
			s.desc.noteExact(usage{m.Count, m.Bytes})
			return nil
		}
		from = store.Start{Key: last}
	}
}

// emptyBuckets removes all records, and what is remembered of them.
func emptyBuckets(tx *bolt.Tx, lww bool) error {
	names := []string{DataBucket}
	if lww {
		names = append(names, VersionBucket)
	}
	for _, name := range names {
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return err
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

const (
	arenaSize  = 1 << 20
	batchShare = 4 // a transaction takes at most this part of the overlay's limit
)

// A batchWriter puts the overlay entries of one transaction into the file and keeps the sums right.
type batchWriter struct {
	bucket  *bolt.Bucket
	meta    *Meta
	limit   int64 // bytes that the transaction may take
	entries int
	bytes   int64
	key     []byte // scratch: bbolt copies keys
	arena   []byte // values, which bbolt refers to until the commit
	next    []byte // key of the last entry written, when there are more to write

	versions *bolt.Bucket // nil where the file keeps none
	err      error
}

// visit puts one entry into the file: its version, and its record or the removal of it. The first
// entry too many ends the batch.
func (w *batchWriter) visit(key, flagged []byte) bool {
	if w.entries == batchEntries || (w.bytes >= w.limit && w.entries > 0) {
		w.next = append(make([]byte, 0, len(w.key)), w.key[1:]...)
		return false
	}
	w.entries++
	w.bytes += int64(len(key) + len(flagged))
	w.key = append(append(w.key[:0], KeyPrefix), key...)
	if w.versions != nil {
		if w.err = w.writeVersion(flagged); w.err != nil {
			return false
		}
	}
	old := w.bucket.Get(w.key)
	if old != nil {
		w.meta.dropRecord(key, old)
	}
	if flagged[0]&flagLive == 0 {
		if old != nil {
			w.err = w.bucket.Delete(w.key)
		}
		return w.err == nil
	}
	value := flagged[valueAt(flagged[0]):]
	w.meta.addRecord(key, value)
	w.err = w.bucket.Put(w.key, w.keep(value))
	return w.err == nil
}

// writeVersion puts the version that the overlay has noted of the key into the file. If a record
// has expired or was evicted, the overlay has noted none. Then the entry in the file becomes a
// removal and keeps its version.
func (w *batchWriter) writeVersion(flagged []byte) error {
	w.key[0] = VersionPrefix
	defer func() { w.key[0] = KeyPrefix }()
	old, known := DecodeEntry(w.versions.Get(w.key))
	e, noted := notedEntry(flagged)
	if !noted {
		if !known || flagged[0]&flagLive != 0 || old.Removed {
			return nil
		}
		e = LastUpdate{old.Version, true}
	}
	if known && old.Removed {
		w.meta.Removals--
	}
	if e.Removed {
		w.meta.Removals++
	}
	var room [entrySize]byte
	return w.versions.Put(w.key, w.keep(AppendEntry(room[:0], e)))
}

// keep copies value to where it stays until the transaction ends.
func (w *batchWriter) keep(value []byte) []byte {
	if len(value) > cap(w.arena)-len(w.arena) {
		w.arena = make([]byte, 0, max(arenaSize, len(value)))
	}
	at := len(w.arena)
	w.arena = pieces.Append(w.arena, value)
	return w.arena[at:len(w.arena):len(w.arena)]
}

// RecordSum returns what a record adds to Meta.Sum; value is in stored form.
//
// Pages of bbolt have no checksums: a disk can change a byte of a value and nothing else looks
// wrong. Therefore the file keeps one checksum of all its records: Meta.Sum is the sum of RecordSum
// over the records, modulo 2^64. A checkpoint has the old and the new value of each key at hand. It
// subtracts the old record's part and adds the new record's, in the transaction that changes the
// record. Verify, compact and repair add up what they read and compare.
//
// The sum says whether all records are as they were written, not which record is damaged. Rejected:
// a checksum in each record, which would name the record but cost eight bytes of each and a new
// format. A user who has the update log can bring the right values in from there.
func RecordSum(key, value []byte) uint64 {
	const golden, mix = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD
	// With the product, two records whose values have changed places do not add up to the same sum.
	h := xxhash.Sum64(value) ^ xxhash.Sum64(key)*golden
	h = (h ^ h>>33) * mix
	return h ^ h>>33
}

// addRecord counts a record that the file gets: Count, Bytes and Sum change together.
func (m *Meta) addRecord(key, value []byte) {
	m.Count++
	m.Bytes += int64(len(key) + len(value))
	if m.Summed {
		m.Sum += RecordSum(key, value)
	}
}

// dropRecord is the reverse of addRecord.
func (m *Meta) dropRecord(key, value []byte) {
	m.Count--
	m.Bytes -= int64(len(key) + len(value))
	if m.Summed {
		m.Sum -= RecordSum(key, value)
	}
}
