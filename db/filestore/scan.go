package filestore

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
)

// Scan merges the overlays and the file. It holds a transaction while it runs, so callers visit a
// limited number of records and come back with the last key.
func (s *Store) Scan(from store.Start, visit func(key, value []byte) bool) error {
	v := s.acquire()
	defer v.release()
	tx, err := s.file.Begin(false)
	if err != nil {
		return fmt.Errorf("scan %s: %w", s.path, err)
	}
	defer tx.Rollback() // a read transaction
	return newMerge(v, tx, from).run(visit)
}

// A source gives entries in the order of the scan, one at a time.
type source interface {
	// head returns the current entry; ok is false at the end. The slices are valid until next.
	head() (key, value []byte, dead, ok bool)
	next()
}

// A merge visits the records of its sources. Of entries with the same key the entry of the first
// source counts.
type merge struct {
	sources  []source
	backward bool
	ask      func() error
}

// newMerge merges the overlays of a view and the file of a transaction that was begun after the
// view was taken.
func newMerge(v *view, tx *bolt.Tx, from store.Start) *merge {
	m := &merge{backward: from.Backward, ask: from.Ask}
	m.add(v.active, from)
	if v.frozen != nil && !v.active.cleared.Load() {
		m.add(v.frozen, from)
	}
	if !v.active.cleared.Load() && (v.frozen == nil || !v.frozen.cleared.Load()) {
		m.sources = append(m.sources, newBaseSource(tx.Bucket([]byte(DataBucket)), from))
	}
	return m
}

func (m *merge) add(o *overlay, from store.Start) {
	src := &overlaySource{overlay: o, from: from}
	src.load()
	m.sources = append(m.sources, src)
}

func (m *merge) run(visit func(key, value []byte) bool) error {
	for removed := 0; ; {
		first := m.first()
		if first == nil {
			return nil
		}
		key, value, dead, _ := first.head()
		if !dead && !visit(key, value) {
			return nil
		}
		if dead {
			removed++
		}
		if dead && removed%store.AskEvery == 0 && m.ask != nil {
			if err := m.ask(); err != nil {
				return err
			}
		}
		m.skip(first, key)
	}
}

// first returns the source whose head comes first, and of equal heads the newest; nil at the end.
func (m *merge) first() source {
	var best source
	var bestKey []byte
	for _, src := range m.sources {
		key, _, _, ok := src.head()
		if !ok {
			continue
		}
		if c := bytes.Compare(key, bestKey); best == nil || (c < 0 && !m.backward) || (c > 0 && m.backward) {
			best, bestKey = src, key
		}
	}
	return best
}

// skip moves every source past key. The source first, whose slice key is, goes last.
func (m *merge) skip(first source, key []byte) {
	for _, src := range m.sources {
		if src == first {
			continue
		}
		if k, _, _, ok := src.head(); ok && bytes.Equal(k, key) {
			src.next()
		}
	}
	first.next()
}

// A baseSource walks the file.
type baseSource struct {
	cursor     *bolt.Cursor
	backward   bool
	key, value []byte // key is nil at the end
}

func newBaseSource(b *bolt.Bucket, from store.Start) *baseSource {
	s := &baseSource{cursor: b.Cursor(), backward: from.Backward}
	switch {
	case from.Edge && from.Backward:
		s.key, s.value = s.cursor.Last()
	case from.Edge:
		s.key, s.value = s.cursor.First()
	default:
		s.seek(from)
	}
	return s
}

// seek finds the first entry at or after from.Key, and goes one entry further where the scan
// excludes that one.
func (s *baseSource) seek(from store.Start) {
	at := appendBoltKey(nil, from.Key)
	s.key, s.value = s.cursor.Seek(at)
	exact := bytes.Equal(s.key, at)
	switch {
	case exact && from.Inclusive:
	case !from.Backward:
		if exact {
			s.next()
		}
	case s.key == nil: // everything is before at
		s.key, s.value = s.cursor.Last()
	default:
		s.next()
	}
}

func (s *baseSource) head() (key, value []byte, dead, ok bool) {
	if s.key == nil {
		return nil, nil, false, false
	}
	return s.key[1:], s.value, false, true
}

func (s *baseSource) next() {
	if s.backward {
		s.key, s.value = s.cursor.Prev()
	} else {
		s.key, s.value = s.cursor.Next()
	}
}

const (
	firstBatch = 4   // entries that an overlay source copies at first: a cursor's step wants one
	maxBatch   = 128 // entries that it copies at most at a time
)

// An overlaySource copies entries out of an overlay in batches, so that the overlay is never locked
// while the file is read or a record visited.
type overlaySource struct {
	overlay *overlay
	from    store.Start
	batch   int
	room    []byte // keys and flagged values of the batch
	ends    []int  // ends of key, value, key, value, …
	i       int    // current entry
	last    bool   // the batch reaches the end of the overlay
}

// load copies the next batch, which begins at from.
func (s *overlaySource) load() {
	s.batch = min(max(firstBatch, 4*s.batch), maxBatch)
	s.room, s.ends, s.i, s.last = s.room[:0], s.ends[:0], 0, true
	s.overlay.scan(s.from, func(key, flagged []byte) bool {
		if len(s.ends) == 2*s.batch {
			s.last = false
			return false
		}
		s.room = append(s.room, key...)
		s.ends = append(s.ends, len(s.room))
		s.room = append(s.room, flagged...)
		s.ends = append(s.ends, len(s.room))
		return true
	})
}

func (s *overlaySource) entry(i int) (key, flagged []byte) {
	begin := 0
	if i > 0 {
		begin = s.ends[2*i-1]
	}
	return s.room[begin:s.ends[2*i]], s.room[s.ends[2*i]:s.ends[2*i+1]]
}

func (s *overlaySource) head() (key, value []byte, dead, ok bool) {
	if 2*s.i == len(s.ends) {
		return nil, nil, false, false
	}
	key, flagged := s.entry(s.i)
	return key, flagged[valueAt(flagged[0]):], flagged[0]&flagLive == 0, true
}

func (s *overlaySource) next() {
	s.i++
	if 2*s.i < len(s.ends) || s.last {
		return
	}
	key, _ := s.entry(s.i - 1)
	s.from = store.Start{Key: bytes.Clone(key), Backward: s.from.Backward}
	s.load()
}
