package filestore

import (
	"bytes"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// A head is the current entry of a source. Its slices are valid until next.
type head struct {
	key  []byte // nil: the source is at its end
	body []byte
	bare bool // body is the value of a record; otherwise it is a flagged value
}

func (h *head) live() bool { return h.bare || h.body[0]&flagLive != 0 }

// value returns the value of a live entry.
func (h *head) value() []byte {
	if h.bare {
		return h.body
	}
	return h.body[valueAt(h.body[0]):]
}

// A source gives entries in the order of the scan, one at a time.
type source interface {
	head() head
	next()
	err() error // why the source ended early
}

// A union visits the entries of its sources. Of entries with the same key the entry of the newest
// source counts.
//
// The sources stand in a heap: the source whose entry comes first is at the top, and of equal keys
// the newest source. So the next entry costs a few comparisons, however many runs there are.
type union struct {
	heap     []ranked
	backward bool
	failed   error // of a source

	notes bool // a tombstone without a version gets the version of an older entry, see note
	key   []byte
	body  []byte
}

type ranked struct {
	head
	src  source
	rank int // 0 is the newest
}

// add adds a source that is older than those before.
func (u *union) add(src source) {
	r := ranked{src.head(), src, len(u.heap)}
	if n := len(u.heap); n > 0 {
		r.rank = u.heap[n-1].rank + 1
	}
	if r.key == nil {
		u.fail(src)
		return
	}
	u.heap = append(u.heap, r)
}

func (u *union) fail(src source) {
	if err := src.err(); err != nil && u.failed == nil {
		u.failed = err
	}
}

// start is called when all sources were added.
func (u *union) start() {
	for i := len(u.heap)/2 - 1; i >= 0; i-- {
		u.sink(i)
	}
}

func (u *union) before(a, b *ranked) bool {
	c := bytes.Compare(a.key, b.key)
	if c == 0 {
		return a.rank < b.rank
	}
	return (c < 0) != u.backward
}

// sink moves the source at i to its place.
func (u *union) sink(i int) {
	h := u.heap
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if u.before(&h[child], &h[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

// advance moves the source at the top to its next entry.
func (u *union) advance() {
	top := &u.heap[0]
	top.src.next()
	if top.head = top.src.head(); top.key == nil {
		u.fail(top.src)
		last := len(u.heap) - 1
		u.heap[0] = u.heap[last]
		u.heap[last] = ranked{}
		u.heap = u.heap[:last]
	}
	if len(u.heap) > 1 {
		u.sink(0)
	}
}

// run calls visit for each entry, tombstones included, until visit returns false.
func (u *union) run(visit func(h *head) bool) error {
	for len(u.heap) > 0 && u.failed == nil {
		top := &u.heap[0]
		u.key = append(u.key[:0], top.key...)
		if u.notes && !top.live() && top.body[0]&flagNoted == 0 {
			h := u.note()
			if !visit(&h) {
				break
			}
			continue
		}
		if !visit(&top.head) {
			break
		}
		u.skip()
	}
	return u.failed
}

// skip moves every source that is at key past it.
func (u *union) skip() {
	u.advance()
	for len(u.heap) > 0 && bytes.Equal(u.heap[0].key, u.key) {
		u.advance()
	}
}

// note moves every source past key. The newest entry of key is a tombstone without a version: the
// record has expired, or was evicted. The version is that of the newest older entry that has one.
func (u *union) note() head {
	u.body = append(u.body[:0], flagDead)
	u.advance()
	for len(u.heap) > 0 && bytes.Equal(u.heap[0].key, u.key) {
		if top := &u.heap[0]; !top.bare && top.body[0]&flagNoted != 0 && len(u.body) == 1 {
			u.body = append(append(u.body[:0], flagDead|flagNoted), top.body[1:headSize]...)
		}
		u.advance()
	}
	return head{key: u.key, body: u.body}
}

// watching is who watches the sources of a scan, see package paging; the zero value watches none.
type watching struct {
	walks    *paging.Walks // those of the transaction
	passages *paging.Passages
}

// A treeSource walks the tree of the file.
type treeSource struct {
	cursor     *bolt.Cursor
	walk       paging.Walk // is told of each record before the record is read
	backward   bool
	key, value []byte // key is nil at the end
}

func newTreeSource(b *bolt.Bucket, from store.Start, w watching) *treeSource {
	s := &treeSource{cursor: b.Cursor(), backward: from.Backward}
	w.walks.Begin(&s.walk, w.passages, b, from.Backward)
	switch {
	case from.Edge && from.Backward:
		s.key, s.value = s.cursor.Last()
	case from.Edge:
		s.key, s.value = s.cursor.First()
	default:
		s.seek(from)
	}
	s.walk.At(s.key)
	return s
}

// seek finds the first entry at or after from.Key, and goes one entry further where the scan
// excludes that one.
func (s *treeSource) seek(from store.Start) {
	at := appendBoltKey(nil, from.Key)
	s.key, s.value = s.cursor.Seek(at)
	s.walk.At(s.key)
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

func (s *treeSource) head() head {
	if s.key == nil {
		return head{}
	}
	return head{s.key[1:], s.value, true}
}

func (s *treeSource) err() error { return nil }

func (s *treeSource) next() {
	if s.backward {
		s.key, s.value = s.cursor.Prev()
	} else {
		s.key, s.value = s.cursor.Next()
	}
	if s.key == nil {
		s.walk.Over()
	} else {
		s.walk.At(s.key)
	}
}

const (
	firstBatch = 4   // entries that an overlay source copies at first: a cursor's step wants one
	maxBatch   = 128 // entries that it copies at most at a time
)

// A runSource walks a run, or packed records.
type runSource struct {
	cursor *run.Cursor
	behind []byte // entries up to this key are not given; nil: all are
}

func newRunSource(c *run.Cursor, from store.Start, behind []byte, w watching) *runSource {
	c.Watch(w.walks, w.passages)
	if from.Edge {
		c.First()
	} else if exact := c.Seek(from.Key); exact && !from.Inclusive {
		c.Next()
	}
	return &runSource{c, behind}
}

func (s *runSource) head() head {
	key, flagged := s.cursor.Entry()
	if s.behind != nil && key != nil && bytes.Compare(key, s.behind) <= 0 {
		return head{}
	}
	return head{key: key, body: flagged}
}

func (s *runSource) next() { s.cursor.Next() }

func (s *runSource) err() error { return s.cursor.Err() }

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

func newOverlaySource(o *overlay, from store.Start) *overlaySource {
	s := &overlaySource{overlay: o, from: from}
	s.load()
	return s
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

func (s *overlaySource) head() head {
	if 2*s.i == len(s.ends) {
		return head{}
	}
	key, flagged := s.entry(s.i)
	return head{key: key, body: flagged}
}

func (s *overlaySource) err() error { return nil }

func (s *overlaySource) next() {
	s.i++
	if 2*s.i < len(s.ends) || s.last {
		return
	}
	key, _ := s.entry(s.i - 1)
	s.from = store.Start{Key: bytes.Clone(key), Backward: s.from.Backward}
	s.load()
}
