package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
)

// A Run is what memory has of a finished run.
type Run struct {
	Info
	name   [8]byte
	filter Filter
}

// Number returns the number of the run; the greater one is the newer.
func (r *Run) Number() uint64 { return binary.BigEndian.Uint64(r.name[:]) }

// MayHave reports whether the run may have a key with the hash.
func (r *Run) MayHave(hash uint64) bool { return r.filter.MayHave(hash) }

// Any reports whether a file has runs, finished or not.
func Any(tx *bolt.Tx) bool {
	all := tx.Bucket([]byte(Bucket))
	if all == nil {
		return false
	}
	k, _ := all.Cursor().First()
	return k != nil
}

// Load returns the finished runs of a file, oldest first.
func Load(tx *bolt.Tx) (runs []*Run, err error) {
	all := tx.Bucket([]byte(Bucket))
	if all == nil {
		return nil, nil
	}
	err = all.ForEachBucket(func(name []byte) error {
		if len(name) != 8 {
			return ErrDamaged
		}
		r, err := load(all.Bucket(name), name)
		if r != nil {
			runs = append(runs, r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	return runs, nil
}

// Finished returns the names of the buckets of the finished runs, oldest first.
func Finished(tx *bolt.Tx) (names [][]byte, err error) {
	all := tx.Bucket([]byte(Bucket))
	if all == nil {
		return nil, nil
	}
	err = all.ForEachBucket(func(name []byte) error {
		if all.Bucket(name).Get([]byte{InfoKey}) != nil {
			names = append(names, bytes.Clone(name))
		}
		return nil
	})
	return names, err
}

// load reads what memory has of one run; nil for an unfinished one.
func load(b *bolt.Bucket, name []byte) (*Run, error) {
	text := b.Get([]byte{InfoKey})
	if text == nil {
		return nil, nil
	}
	r := &Run{name: [8]byte(name)}
	if len(text) != 8*len(r.fields()) {
		return nil, ErrDamaged
	}
	for i, n := range r.fields() {
		*n = int64(binary.BigEndian.Uint64(text[8*i:]))
	}
	var ok bool
	if r.filter, ok = decodeFilter(b.Get([]byte{FilterKey})); !ok {
		return nil, ErrDamaged
	}
	return r, nil
}

// In returns the run's bucket in a transaction; nil where the transaction does not have the run.
func (r *Run) In(tx *bolt.Tx) *bolt.Bucket {
	runs := tx.Bucket([]byte(Bucket))
	if runs == nil {
		return nil
	}
	return runs.Bucket(r.name[:])
}

// Find looks a key up in a run. The slice is valid while the transaction is open.
func (r *Run) Find(tx *bolt.Tx, key []byte) (flagged []byte, found bool, err error) {
	b := r.In(tx)
	if b == nil {
		return nil, false, ErrDamaged
	}
	return findInBlocks(b, BlockKey, key)
}

// FindOnDisk is Find for a file that is larger than memory: see paging.Mirror.
func (r *Run) FindOnDisk(tx *bolt.Tx, key []byte, m *paging.Mirror) (flagged []byte, found bool, err error) {
	b := r.In(tx)
	if b == nil {
		return nil, false, ErrDamaged
	}
	return findOnDisk(b, BlockKey, key, m)
}

// findOnDisk begins in the block that most likely has the key, and tells the mirror what it has
// read.
func findOnDisk(b *bolt.Bucket, kind byte, key []byte, m *paging.Mirror) (body []byte, found bool, err error) {
	var room [64]byte
	name := append(append(room[:0], kind), key...)
	body, found, sure := guess(b, name, m)
	if !sure {
		body, found, err = findInBlocks(b, kind, key)
	}
	if found && err == nil {
		m.Read(b, name, body)
	}
	return body, found, err
}

// guess looks a key up in the block that most likely has it. sure reports whether no other block
// can have the key.
//
// A block that is damaged, or that the disk cannot read, says nothing: the key may be in the block
// before it. So the checksum is compared, which takes less time than the page of the block takes to
// come from the disk, and a fault is caught.
func guess(b *bolt.Bucket, name []byte, m *paging.Mirror) (body []byte, found, sure bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault
			body, found, sure = nil, false, false
		default:
			panic(r)
		}
	}()
	kind, key := name[0], name[1:]
	last, raw, ok := m.Guess(b, name)
	if !ok || last[0] != kind {
		return nil, false, false
	}
	bl, err := openBlock(raw, true)
	if err != nil {
		return nil, false, false
	}
	if first, _, err := bl.entry(0); err != nil || bytes.Compare(first, key) > 0 {
		return nil, false, false
	}
	body, found, err = findInBlock(b, kind, raw, key)
	return body, found, err == nil
}

// findInBlocks looks a key up in the blocks of a bucket.
func findInBlocks(b *bolt.Bucket, kind byte, key []byte) (body []byte, found bool, err error) {
	var room [64]byte
	at := append(append(room[:0], kind), key...)
	last, raw := b.Cursor().Seek(at)
	if last == nil || last[0] != kind {
		return nil, false, nil
	}
	return findInBlock(b, kind, raw, key)
}

// findInBlock looks a key up in a block of a bucket. An entry of a run that is empty stands outside
// its block.
func findInBlock(b *bolt.Bucket, kind byte, raw, key []byte) (body []byte, found bool, err error) {
	bl, err := openBlock(raw, false)
	if err != nil {
		return nil, false, err
	}
	i, exact, err := bl.search(key)
	if err != nil || !exact {
		return nil, false, err
	}
	if _, body, err = bl.entry(i); err == nil && len(body) == 0 && kind == BlockKey {
		body, err = findLarge(b, key, false)
	}
	return body, err == nil, err
}

// findLarge returns the value that stands outside its block.
func findLarge(b *bolt.Bucket, key []byte, check bool) ([]byte, error) {
	return openLarge(b.Get(append([]byte{LargeKey}, key...)), check)
}

// A Cursor walks through the entries of a run, or through packed records, in one direction.
type Cursor struct {
	bucket   *bolt.Bucket
	kind     byte // first byte of the names of blocks
	blocks   *bolt.Cursor
	backward bool
	check    bool

	walk paging.Walk // is told of each block before the block is read

	block block
	i     int // in block

	key, flagged []byte // the current entry; key is nil at the end
	err          error
}

// Cursor returns a cursor, which compares the checksum of each block.
func (r *Run) Cursor(tx *bolt.Tx, backward bool) *Cursor {
	b := r.In(tx)
	if b == nil {
		return &Cursor{err: ErrDamaged}
	}
	return newCursor(b, BlockKey, backward)
}

func newCursor(b *bolt.Bucket, kind byte, backward bool) *Cursor {
	return &Cursor{bucket: b, kind: kind, backward: backward, check: true, blocks: b.Cursor()}
}

// Watch has long walks keep out of the way of others, see package paging. It is called before the
// cursor is moved.
func (c *Cursor) Watch(walks *paging.Walks, p *paging.Passages) {
	if c.bucket != nil {
		walks.Begin(&c.walk, p, c.bucket, c.backward)
	}
}

// Entry returns the current entry; key is nil at the end and after an error. The slices are valid
// while the transaction is open.
func (c *Cursor) Entry() (key, flagged []byte) { return c.key, c.flagged }

// Err returns why the walk ended early.
func (c *Cursor) Err() error { return c.err }

// First goes to the first entry, backward to the last.
func (c *Cursor) First() {
	if c.err != nil {
		return
	}
	if c.backward {
		c.lastBlock()
	} else {
		c.open(c.blocks.Seek([]byte{c.kind}))
	}
}

// lastBlock goes to the last entry of the last block.
func (c *Cursor) lastBlock() {
	if k, _ := c.blocks.Seek([]byte{c.kind + 1}); k == nil {
		c.open(c.blocks.Last())
	} else {
		c.open(c.blocks.Prev())
	}
}

// Seek goes to the first entry at or behind key in the direction of the walk. exact reports whether
// it is the entry of key.
func (c *Cursor) Seek(key []byte) (exact bool) {
	if c.err != nil {
		return false
	}
	at := append([]byte{c.kind}, key...)
	last, raw := c.blocks.Seek(at)
	if last == nil || last[0] != c.kind { // every key is before this one
		if c.backward {
			c.lastBlock()
		} else {
			c.end(nil)
		}
		return false
	}
	c.walk.At(last)
	bl, err := openBlock(raw, c.check)
	if err == nil {
		c.block = bl
		c.i, exact, err = bl.search(key)
	}
	if err != nil {
		c.end(err)
		return false
	}
	if c.backward && !exact {
		c.i--
	}
	c.settleIn()
	return exact
}

// Next goes one entry on.
func (c *Cursor) Next() {
	if c.key == nil {
		return
	}
	if c.backward {
		c.i--
	} else {
		c.i++
	}
	c.settleIn()
}

// settleIn reads the entry at i, or goes on to the neighbouring block.
func (c *Cursor) settleIn() {
	switch {
	case c.i < 0:
		c.open(c.blocks.Prev())
	case c.i >= c.block.len():
		c.open(c.blocks.Next())
	default:
		c.read()
	}
}

// open takes a block, and its first entry in the direction of the walk.
func (c *Cursor) open(last, raw []byte) {
	if last == nil || last[0] != c.kind {
		c.walk.Over()
		c.end(nil)
		return
	}
	c.walk.At(last)
	var err error
	if c.block, err = openBlock(raw, c.check); err != nil {
		c.end(err)
		return
	}
	if c.i = 0; c.backward {
		c.i = c.block.len() - 1
	}
	c.read()
}

func (c *Cursor) read() {
	key, flagged, err := c.block.entry(c.i)
	if err == nil && len(flagged) == 0 && c.kind == BlockKey {
		flagged, err = findLarge(c.bucket, key, c.check)
	}
	if err != nil {
		c.end(err)
		return
	}
	if key == nil {
		key = bytes.Clone([]byte{})
	}
	c.key, c.flagged = key, flagged
}

func (c *Cursor) end(err error) { c.key, c.flagged, c.err = nil, nil, err }
