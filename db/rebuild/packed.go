package rebuild

import (
	"bytes"
	"slices"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
	"gotycoon/db/record"
)

// # Packed records
//
// The records below the runs of a file are its bottom: the small ones stand in the blocks of the
// bucket "packed" (package run), the others, and those that no merge has passed since an earlier
// version wrote them, are elements of the tree. No key is in both.

// packed is the first byte of the keys of the bucket of packed records.
var packed = span{[]byte{run.PackedKey}, []byte{run.PackedKey + 1}}

// A packedWalk gives packed records one by one.
type packedWalk struct {
	pages  *pages
	blocks *puller // nil: there are none

	block      run.Block
	at         int // the next record in the block
	key, value []byte
	end        bool
}

// packedWalk begins at the first record. The caller ends the walk with close.
func (p *pages) packedWalk(b bucket) (w *packedWalk, err error) {
	w = &packedWalk{pages: p, end: b.page == 0}
	if !w.end {
		w.blocks = p.pull(b, packed)
		err = w.next()
	}
	return w, err
}

func (w *packedWalk) close() {
	if w.blocks != nil {
		w.blocks.stop()
	}
}

func (w *packedWalk) next() error {
	for w.at == w.block.Len() {
		e, err, ok := w.blocks.next()
		if !ok || err != nil {
			w.end = true
			return err
		}
		if w.block, err = w.pages.block(e); err != nil {
			w.end = true
			return err
		}
		w.at = 0
	}
	var err error
	w.key, w.value, err = w.block.Entry(w.at)
	w.at++
	return err
}

// upTo calls visit for the packed records before a key of the tree; nil: for all that are left.
func (w *packedWalk) upTo(key []byte, visit func(key, value []byte) error) error {
	for !w.end {
		if key != nil {
			if order := bytes.Compare(w.key, key); order > 0 {
				return nil
			} else if order == 0 {
				return &Damage{Whole: true, What: "a key has two records"}
			}
		}
		if err := visit(w.key, w.value); err != nil {
			return err
		}
		if err := w.next(); err != nil {
			return err
		}
	}
	return nil
}

// bottom calls visit for every record below the runs, in the order of keys.
func (f *File) bottom(visit func(key, value []byte) error) error {
	small, err := f.packedWalk(f.packed)
	defer small.close()
	if err != nil {
		return err
	}
	err = f.each(f.data, filestore.KeyPrefix, "no record", func(key, value []byte) error {
		if err := small.upTo(key, visit); err != nil {
			return err
		}
		return visit(key, value)
	})
	if err != nil {
		return err
	}
	return small.upTo(nil, visit)
}

// packedPages checks the pages of packed records, each by itself.
func (c *checker) packedPages(b bucket) error {
	if b.page == 0 {
		return nil
	}
	var last []byte
	w := walker{pages: &c.pages, seen: c.seen, bad: func(d *Damage, _ span) error { c.add(d); return nil }}
	w.leaf = func(p page, in span) error {
		return p.records(in, func(e element) error {
			if e.flags != 0 || len(e.key) == 0 || e.key[0] != run.PackedKey {
				return c.damage(p.id, "holds something that is no block of records")
			}
			b, err := c.block(e)
			if d, ok := err.(*Damage); ok { // as it was made
				c.add(d)
				return nil
			}
			for i := range b.Len() {
				key, value, _ := b.Entry(i) // block has read all
				if i == 0 && last != nil && bytes.Compare(key, last) <= 0 {
					c.add(c.damage(p.id, "a block begins with %q, and the block before ends with %q", key, last))
				}
				if !c.Meta.Persistent && len(value) < record.XTSize {
					c.add(c.damage(p.id, "the value of key %q has no expiration time", key))
				}
			}
			last = append(last[:0], e.key[1:]...)
			return nil
		})
	}
	return w.bucket(b)
}

// savePacked hands out the packed records of a damaged file, or with note notes what is missing. A
// block is named after its last key, so the keys of a lost block begin behind the block before it.
func (s *salvager) savePacked(note bool) error {
	if s.packed.page == 0 {
		return nil
	}
	prev := []byte{filestore.KeyPrefix}
	lose := func(d *Damage, high []byte) {
		in := span{prev, nil}
		if high != nil {
			in.high = high
		}
		s.lose(d, &in)
	}
	w := walker{pages: &s.pages, seen: s.mark}
	w.bad = func(d *Damage, in span) error {
		switch {
		case !note:
		case in.high != nil && bytes.Equal(in.low, in.high): // no names
			s.lose(d, nil)
		case in.high == nil:
			lose(d, nil)
		default:
			lose(d, asKey(in.high))
		}
		return nil
	}
	w.leaf = func(p page, in span) error {
		if err := p.tidy(s.packed, in); err != nil && note {
			s.lose(s.damage(p.id, "%s", err.What), nil)
		}
		for i := range p.elements() {
			e, ok := p.at(i)
			named := ok && len(e.key) > 0 && e.key[0] == run.PackedKey
			var err error
			if named {
				err = s.giveRecords(e, note)
			}
			switch {
			case named && err == nil:
			case named && err != run.ErrDamaged:
				return err
			case note && named && in.holds(e.key):
				lose(s.damage(p.id, "a block of records does not match its checksum"), append(asKey(e.key), 0))
			case note:
				high := []byte(nil)
				if in.high != nil {
					high = asKey(in.high)
				}
				lose(s.damage(p.id, "a block of records cannot be read"), high)
			}
			if named && in.holds(e.key) {
				prev = append(asKey(e.key), 0)
			}
		}
		return nil
	}
	return w.bucket(s.packed)
}

// asKey returns the key in the tree that would have the record of a block's name.
func asKey(name []byte) []byte {
	return slices.Concat([]byte{filestore.KeyPrefix}, name[min(1, len(name)):])
}

// giveRecords hands out the records of a block; with note it only looks whether it could. The error
// is run.ErrDamaged, or that of the sink.
func (s *salvager) giveRecords(e element, note bool) error {
	b, err := s.block(e)
	if err != nil {
		return run.ErrDamaged
	}
	for i := range b.Len() {
		key, value, _ := b.Entry(i) // block has read all
		if note {
			continue
		}
		if err := s.record(key, value); err != nil {
			return err
		}
	}
	return nil
}

// ofPacked reports whether a page that nothing leads to has packed records.
func (p page) ofPacked() bool {
	for i := range p.elements() {
		if e, ok := p.at(i); ok && e.flags == 0 && len(e.key) > 0 && e.key[0] == run.PackedKey {
			return true
		}
	}
	return false
}

// packedOrphan hands out the packed records of a page whose keys are missing.
func (s *salvager) packedOrphan(p page) error {
	for i := range p.elements() {
		e, ok := p.at(i)
		if !ok || e.flags != 0 || len(e.key) == 0 || e.key[0] != run.PackedKey {
			continue
		}
		b, err := s.block(e)
		if err != nil {
			continue
		}
		for i := range b.Len() {
			key, value, _ := b.Entry(i) // block has read all
			if err := s.orphanRecord(key, value); err != nil {
				return err
			}
		}
	}
	return nil
}
