package filestore

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// mostBulkBytes bounds how long a GetBulk has its transaction: bbolt cannot use a replaced page
// again meanwhile.
const mostBulkBytes = 1 << 20

// GetBulk calls visit for those of the first keys that have a record, in their order, and returns
// how many keys it has done. It stops at a large value, which is Get's to read, and after
// mostBulkBytes. stored is valid during the call of visit, which must not wait for anything,
// because a transaction of the file may be open.
func (s *Store) GetBulk(keys [][]byte, visit func(i int, stored []byte)) (done int, err error) {
	b, ok := s.bulkReads.Get().(*bulkRead)
	if !ok {
		b = &bulkRead{}
		b.visit = b.note
	}
	defer func() {
		b.clear()
		s.bulkReads.Put(b)
	}()
	l := layers{view: s.acquire()}
	if b.lookInMemory(l.view, keys); len(b.missing) == 0 {
		defer l.view.release()
	} else {
		if err := l.open(s); err != nil {
			l.view.release()
			return 0, err
		}
		defer l.end()
		if err := b.lookInFile(&l, keys); err != nil {
			return 0, fmt.Errorf("read %s: %w", s.path, err)
		}
	}
	for size := 0; done < len(keys) && size < mostBulkBytes; done++ {
		value, found, err := b.value(done, keys[done])
		if err != nil {
			return done, fmt.Errorf("read %s: %w", s.path, err)
		}
		if len(value) >= store.LargeValue || b.seen[done].left {
			break
		}
		if found {
			visit(done, value)
			size += len(value)
		}
	}
	return done, nil
}

// A bulkRead is what was found out about the keys of a GetBulk. It is used again, so that a bulk
// takes no memory of the heap for its records.
type bulkRead struct {
	seen    []seen   // about each key
	missing []int    // keys that no layer knows so far
	keys    [][]byte // those of missing
	room    []byte   // values from the overlays
	visit   func(n int, flagged []byte)

	bottom bottom
	packed *run.Finder // nil: there are no packed records
	tree   *bolt.Cursor
	name   []byte // scratch
}

// seen is what was found out about a key. The value of a live one is in room or in the file, unless
// it was left in its overlay. A key that is unknown has place, where it may be packed.
type seen struct {
	state state
	left  bool
	value []byte
	place run.Place
}

// lookInMemory asks the overlays for all keys, the newest one first.
func (b *bulkRead) lookInMemory(v *view, keys [][]byte) {
	for i := range keys {
		b.seen = append(b.seen, seen{})
		b.missing = append(b.missing, i)
	}
	b.keys = append(b.keys, keys...)
	for _, o := range v.overlays {
		o.tree.LookBulk(b.keys, b.visit)
		cleared := o.cleared.Load() // after the tree, see overlay.get
		left := 0
		for n, i := range b.missing {
			switch {
			case b.seen[i].state != unknown:
			case cleared:
				b.seen[i].state = dead
			default:
				b.missing[left], b.keys[left] = i, b.keys[n]
				left++
			}
		}
		b.missing, b.keys = b.missing[:left], b.keys[:left]
	}
}

// note takes down what an overlay has of the n-th missing key.
func (b *bulkRead) note(n int, flagged []byte) {
	at := &b.seen[b.missing[n]]
	switch {
	case flagged[0]&flagLive == 0:
		at.state = dead
	case len(flagged) >= store.LargeValue || len(b.room) >= mostBulkBytes:
		at.state, at.left = live, true
	default:
		from := len(b.room)
		b.room = append(b.room, flagged[valueAt(flagged[0]):]...)
		at.state, at.value = live, b.room[from:]
	}
}

// lookInFile asks the runs for the keys that the overlays do not know, and finds where the others
// may be packed.
func (b *bulkRead) lookInFile(l *layers, keys [][]byte) error {
	if err := b.lookInRuns(l, keys); err != nil {
		return err
	}
	b.bottom = l.bottom
	b.tree = l.bottom.tree.Cursor()
	if l.bottom.packed == nil {
		return nil
	}
	b.packed = run.PackedFinder(l.bottom.packed)
	for _, i := range b.missing {
		b.seen[i].place = b.packed.Seek(keys[i])
	}
	for _, i := range b.missing {
		b.packed.Warm(b.seen[i].place)
	}
	return nil
}

// lookInRuns asks the runs for the missing keys, as runList.find does, the newest one first.
func (b *bulkRead) lookInRuns(l *layers, keys [][]byte) error {
	if len(l.runs.runs) == 0 {
		return nil
	}
	finders := make([]*run.Finder, len(l.runs.runs))
	left := 0
	for _, i := range b.missing {
		at, hash := &b.seen[i], run.Hash(keys[i])
		for n, r := range l.runs.runs {
			if !r.MayHave(hash) || l.runs.merged(r, keys[i]) {
				continue
			}
			if finders[n] == nil {
				var err error
				if finders[n], err = r.Finder(l.tx); err != nil {
					return err
				}
			}
			flagged, found, err := finders[n].In(finders[n].Seek(keys[i]), keys[i])
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if at.state = dead; flagged[0]&flagLive != 0 {
				at.state, at.value = live, flagged[valueAt(flagged[0]):]
			}
			break
		}
		if at.state == unknown {
			b.missing[left] = i
			left++
		}
	}
	b.missing = b.missing[:left]
	return nil
}

// value returns the value of a key from where it lies.
func (b *bulkRead) value(i int, key []byte) (value []byte, found bool, err error) {
	at := &b.seen[i]
	if at.state != unknown {
		return at.value, at.state == live, nil
	}
	if b.packed != nil {
		if value, found, err = b.packed.In(at.place, key); found || err != nil {
			b.bottom.readPacked(key, value)
			return value, found, err
		}
	}
	b.name = appendBoltKey(b.name[:0], key)
	name, value := b.tree.Seek(b.name)
	if found = name != nil && bytes.Equal(name, b.name); found {
		b.bottom.readTree(name, value)
	}
	return value, found, nil
}

// clear forgets everything but the memory.
func (b *bulkRead) clear() {
	clear(b.seen)
	clear(b.keys[:cap(b.keys)])
	b.seen, b.missing, b.keys, b.room = b.seen[:0], b.missing[:0], b.keys[:0], b.room[:0]
	b.bottom, b.packed, b.tree = bottom{}, nil, nil
	if cap(b.room) > mostBulkBytes {
		b.room = nil
	}
}
