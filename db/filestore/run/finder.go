package run

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// A Finder looks up many keys in the blocks of a bucket, in one transaction:
//
//	Seek    for every key, finds the block that may have it
//	Warm    for every block
//	In      for every block and its key
//
// There are three steps because most blocks are in none of the processor's caches. Each step begins
// to load what the next one needs, for all keys, so that the processor waits for many places in
// memory at a time (see package memstore, "Many keys at a time"). Warm may be left out.
//
// Keys that come in order are found in the block of the key before, without a way down the tree of
// bbolt. A Finder takes no memory of the heap for a key.
type Finder struct {
	blocks *bolt.Cursor
	bucket *bolt.Bucket
	kind   byte
	sum    byte // of what was loaded, so that the loads stay

	name   []byte // of the block that would end with the key that is looked for
	before []byte // the same of the key before
	last   []byte // name of the block that was found for it; nil: none was
	found  Place
}

// A Place is a block that may have a key; nil: no block may have it. It is valid while the
// transaction is open.
type Place []byte

// Finder returns a Finder for the entries of a run.
func (r *Run) Finder(tx *bolt.Tx) (*Finder, error) {
	b := r.In(tx)
	if b == nil {
		return nil, ErrDamaged
	}
	return newFinder(b, BlockKey), nil
}

// PackedFinder returns a Finder for packed records. What it finds is the value.
func PackedFinder(b *bolt.Bucket) *Finder { return newFinder(b, PackedKey) }

func newFinder(b *bolt.Bucket, kind byte) *Finder {
	return &Finder{blocks: b.Cursor(), bucket: b, kind: kind}
}

// Seek returns where a key may be.
func (f *Finder) Seek(key []byte) Place {
	f.name = append(append(f.name[:0], f.kind), key...)
	// The block of the key before has all keys from that one to its own last one.
	if f.last == nil || bytes.Compare(f.name, f.before) < 0 || bytes.Compare(f.name, f.last) > 0 {
		last, raw := f.blocks.Seek(f.name)
		if last == nil || last[0] != f.kind {
			last, raw = nil, nil
		}
		f.last, f.found = last, raw
	}
	f.name, f.before = f.before, f.name
	if n := len(f.found); n > 0 {
		f.sum += f.found[n-1]
	}
	return f.found
}

// Warm begins to load the entries of a block.
func (f *Finder) Warm(p Place) {
	b, err := openBlock(p, false)
	if err != nil {
		return // In tells
	}
	for at := b.offsets; len(at) > 0; at = at[offsetSize:] {
		if from := binary.LittleEndian.Uint32(at); uint64(from) < uint64(len(b.entries)) {
			f.sum += b.entries[from]
		}
	}
}

// In looks for a key in the place that Seek has returned for it. The slice is valid while the
// transaction is open.
func (f *Finder) In(p Place, key []byte) (body []byte, found bool, err error) {
	if p == nil {
		return nil, false, nil
	}
	return findInBlock(f.bucket, f.kind, p, key)
}
