package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

// # Runs and their merge
//
// A checkpoint of half a million updates of random keys touches half a million pages of a large
// file, and each page has 4 KiB: 60 times the bytes of the updates. So a flush writes an overlay as
// a run (package run), in order and without gaps, and the merge brings the updates of many runs
// into the tree at once. The rule: a merge begins when the runs have a quarter of the tree's bytes
// or records, or when there are mergeRuns of them.
//
// The arithmetic, for records of 116 bytes in pages of 4 KiB that are filled to 70 %, 25 in a page:
// when the runs have a quarter of the records there are 6 updates for each page. An update then
// costs
//
//	log 130 B + run 130 B + a sixth of a page 680 B + branches 20 B ≈ 960 B
//
// at any size up to mergeRuns overlays; an overlay of 64 MiB has 450,000 such updates. With 32 runs
// a page of a file with 16 million records gets its 6 updates, in a file with 64 million 5 (1,100
// B), with 256 million 1.4 (3,200 B), where a greater Options.Limit helps.
//
// A merge is done in pieces, each a transaction of about mergePiece: another goroutine may have the
// processor and the disk in between, and a flush goes first. Meta.MergedTo moves with each piece.
// The records of the file stay the same: a key up to MergedTo has the newest entry of the merged
// runs in the tree too. So a crash between two pieces loses nothing, and the next process goes on
// where this one was. Runs whose entries are all in the tree are dropped, one in a piece.
//
// Rejected: levels of runs, as in a log-structured merge tree. They would bring fewer bytes per
// update for very large files, but a record would be written once for each level, and a reader
// would have to look at every level for a key that is in none. Rejected too: runs in files of their
// own. They would be as fast, but a copy of the database would no longer be a copy of one file.

// mergeOn merges a piece; at the end of a merge, removals are forgotten.
func (s *Store) mergeOn(early bool) (more bool, err error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	more, err = s.mergePiece(early)
	if err != nil || more && s.Meta().MergeRun != 0 {
		return more, err
	}
	return more, s.removals.prune(pruneEntries)
}

// mergePiece merges some entries of the runs into the tree, or drops a run that is merged. With
// early it does not wait until a merge is due. more reports whether the merge has to go on.
func (s *Store) mergePiece(early bool) (more bool, err error) {
	l, m := s.runs.newest(), s.Meta()
	if l == nil {
		return false, s.reload()
	}
	if m.MergeRun == 0 {
		if len(l.runs) == 0 || !early && !l.due(&m) {
			return false, nil
		}
		m.MergeRun = l.runs[0].Number()
	}
	begun, p := time.Now(), piece{}
	err = s.update(func(tx *bolt.Tx) error {
		next := &runList{runs: l.runs}
		if p, err = s.mergeInto(tx, l, &m); err != nil {
			return err
		}
		if p.entries == 0 && p.last {
			if err := dropMerged(tx, next, &m); err != nil {
				return err
			}
		}
		next.mergeRun, next.mergedTo = m.MergeRun, m.MergedTo
		s.runs.note(tx, next)
		return writeMeta(tx, m)
	})
	if err != nil {
		return false, fmt.Errorf("merge runs in %s: %w", s.path, err)
	}
	s.desc.change(func(now *Meta) { *now = m })
	took := time.Since(begun)
	s.merger.learn(p.entries, took)
	s.brake.runs.Store(int64(len(s.runs.newest().runs)))
	s.brake.worked(&s.brake.merge, p.bytes, took)
	return true, nil
}

// A piece is what one transaction of a merge has brought into the tree.
type piece struct {
	entries int
	bytes   int64
	last    bool // there are no more entries
}

// mergeInto brings entries behind Meta.MergedTo into the tree.
func (s *Store) mergeInto(tx *bolt.Tx, l *runList, m *Meta) (p piece, err error) {
	w := batchWriter{bucket: tx.Bucket([]byte(DataBucket)), meta: m, limit: s.opts.Limit / batchShare}
	if m.LWW {
		if w.versions, err = tx.CreateBucketIfNotExists([]byte(VersionBucket)); err != nil {
			return p, err
		}
	}
	from := store.Start{Key: m.MergedTo, Edge: m.MergedTo == nil}
	u := union{notes: m.LWW}
	for _, r := range l.runs {
		if r.Number() <= m.MergeRun {
			u.add(newRunSource(r, tx, from))
		}
	}
	u.start()
	p.last = true
	err = u.run(func(h *head) bool {
		if p.entries > 0 && (p.entries >= s.merger.entries || w.bytes >= w.limit) {
			p.last = false
			return false
		}
		p.entries++
		w.put(h.key, h.body)
		return w.err == nil
	})
	p.bytes = w.bytes
	if p.entries > 0 {
		m.MergedTo = bytes.Clone(w.key[1:])
	}
	return p, errors.Join(err, w.err)
}

// dropMerged drops the oldest run that is merged. With the last one the merge ends.
func dropMerged(tx *bolt.Tx, l *runList, m *Meta) error {
	if len(l.runs) == 0 {
		m.MergeRun, m.MergedTo = 0, nil
		return nil
	}
	oldest := l.runs[len(l.runs)-1]
	if err := run.Drop(tx, oldest.Run); err != nil {
		return err
	}
	l.runs = slices.Clone(l.runs[:len(l.runs)-1])
	if n := len(l.runs); n == 0 || l.runs[n-1].Number() > m.MergeRun {
		m.MergeRun, m.MergedTo = 0, nil
	}
	return nil
}

const batchShare = 4 // a transaction takes at most this part of the overlay's limit

// A batchWriter puts the entries of one transaction into the tree and keeps the sums right.
type batchWriter struct {
	bucket *bolt.Bucket
	meta   *Meta
	limit  int64 // bytes that the transaction may take
	bytes  int64
	key    []byte // scratch: bbolt copies keys
	arena  arena

	versions *bolt.Bucket // nil where the file keeps none
	err      error
}

// put puts one entry into the tree: its version, and its record or the removal of it.
func (w *batchWriter) put(key, flagged []byte) {
	w.bytes += int64(len(key) + len(flagged))
	w.key = append(append(w.key[:0], KeyPrefix), key...)
	if w.versions != nil {
		if w.err = w.writeVersion(flagged); w.err != nil {
			return
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
		return
	}
	value := flagged[valueAt(flagged[0]):]
	w.meta.addRecord(key, value)
	w.err = w.bucket.Put(w.key, w.arena.keep(value))
}

// writeVersion puts the version that was noted of the key into the file. If a record has expired or
// was evicted, none was noted. Then the entry in the file becomes a
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
	return w.versions.Put(w.key, w.arena.keep(AppendEntry(room[:0], e)))
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

// An arena has copies of values, which bbolt refers to until the commit.
type arena struct{ room []byte }

const arenaSize = 1 << 20

func (a *arena) keep(value []byte) []byte {
	if len(value) > cap(a.room)-len(a.room) {
		a.room = make([]byte, 0, max(arenaSize, len(value)))
	}
	at := len(a.room)
	a.room = pieces.Append(a.room, value)
	return a.room[at:len(a.room):len(a.room)]
}
