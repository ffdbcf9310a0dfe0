package filestore

import (
	"bytes"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// A bottom is the lowest layer of a file, below its runs: the packed records and the tree. A key
// has its record in one of the two. The packed records are the small ones, see "Packed records" in
// bottom_write.go.
type bottom struct {
	packed *bolt.Bucket // nil: there are none
	tree   *bolt.Bucket
	mirror *paging.Mirror // is told of what lookups read; nil: nobody is

	lookups *lookups // nil: few keys are looked up, or in no order
}

// lookups watch who looks many keys up in their order.
type lookups struct{ packed, tree paging.Walk }

func bottomOf(tx *bolt.Tx) bottom {
	return bottom{packed: tx.Bucket([]byte(run.PackedBucket)), tree: tx.Bucket([]byte(DataBucket))}
}

// get looks a key up. The slice is valid while the transaction is open.
func (b bottom) get(key []byte) (value []byte, found bool, err error) {
	var room [64]byte
	if b.packed != nil {
		if b.lookups != nil {
			b.lookups.packed.Before(append(append(room[:0], run.PackedKey), key...))
		}
		if b.mirror == nil {
			value, found, err = run.FindPacked(b.packed, key)
		} else {
			value, found, err = run.FindPackedOnDisk(b.packed, key, b.mirror)
		}
		if found || err != nil {
			return value, found, err
		}
	}
	name := appendBoltKey(room[:0], key)
	if b.lookups != nil {
		b.lookups.tree.Before(name)
	}
	value = b.tree.Get(name)
	b.readTree(name, value)
	return value, value != nil, nil
}

// readPacked tells the mirror that a bulk has read the packed record of a key.
func (b bottom) readPacked(key, value []byte) {
	if b.mirror != nil {
		var room [64]byte
		b.mirror.Read(b.packed, append(append(room[:0], run.PackedKey), key...), value)
	}
}

// readTree tells the mirror that a lookup has read the record of a name in the tree.
func (b bottom) readTree(name, value []byte) {
	if b.mirror != nil {
		b.mirror.Read(b.tree, name, value)
	}
}

// A bottomSource walks the bottom.
type bottomSource struct {
	tree   *treeSource
	packed *runSource // nil: there are no packed records
	from   store.Start
	now    head
	first  source // where now comes from
}

func newBottomSource(b bottom, from store.Start, w watching) *bottomSource {
	s := &bottomSource{tree: newTreeSource(b.tree, from, w), from: from}
	if b.packed != nil {
		s.packed = newRunSource(run.PackedCursor(b.packed, from.Backward), from, nil, w)
	}
	s.choose()
	return s
}

// choose finds out which record comes next.
func (s *bottomSource) choose() {
	s.now, s.first = s.tree.head(), s.tree
	if s.packed == nil {
		return
	}
	if s.packed.err() != nil {
		s.now = head{}
		return
	}
	p := s.packed.head()
	if p.key != nil && (s.now.key == nil || (bytes.Compare(p.key, s.now.key) < 0) != s.from.Backward) {
		p.bare = true
		s.now, s.first = p, s.packed
	}
}

func (s *bottomSource) head() head { return s.now }

func (s *bottomSource) next() {
	s.first.next()
	s.choose()
}

func (s *bottomSource) err() error {
	if s.packed == nil {
		return nil
	}
	return s.packed.err()
}
