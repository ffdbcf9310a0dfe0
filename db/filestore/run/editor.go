package run

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// An Editor changes packed records in the order of their keys, in one transaction after the other:
//
//	for each transaction: Begin, Set and Remove until Full, End
//
// It rewrites the blocks that have changed records, and packs the records of neighbouring blocks
// together:
//
//	before    [a b c d] [e f g h] [i j k l] [m n o p]
//	changes        c₁     f₁ g₁ removed                   and the new d₁, between d and e
//	after     [a b c₁ d] [d₁ e f₁ h] [i j k l] [m n o p]
//
// Where every block has a change, as when a quarter of the records is changed at random, all blocks
// are full afterwards. Around a lone change that makes a block too large, the block is split in the
// middle, as in any tree: a small rest would make each later change split again. At the end of the
// keys a block is filled before another one begins, so records that come in order leave no gaps.
//
// The blocks are put into the bucket in End: until then the cursor that reads is undisturbed. bbolt
// refers to their memory until the commit.
type Editor struct {
	bucket *bolt.Bucket
	blocks *bolt.Cursor
	room   int

	name, raw []byte // the block at which the cursor stands; nil: behind the last
	inRange   bool   // records before the cursor are pending, or may be
	open      bool   // the entries of the block at the cursor are being taken
	block     block
	i         int // the next entry to take

	pending pending
	ranges  int       // rows of blocks that were taken
	gone    [][]byte  // names of blocks that were taken
	made    []renewed // blocks that take their place
	arena   chunks
}

// # Full pages
//
// bbolt never splits a page of four elements or fewer, however large they are. Pages of two blocks
// get a third and a fourth one as new records come in, and then take two pages of the file: a
// quarter of the room is lost, and a lookup reads both. Such pages stay as they are until they have
// five blocks, so without a remedy there are 1.75 blocks in a page.
//
// The remedy is bbolt's rebalance, which joins a page from which something was deleted with its
// neighbour when the page is small; a commit then cuts what was joined into pairs, and only the
// last piece has three or four blocks. What is small is half of FillPercent pages. A FillPercent of
// gather lets pages be joined until gather/2 of them are one, and leaves the cut alone, which takes
// no more than 1 into account. So 1.97 blocks stand in a page.
//
// Branch pages are joined in the same way, gather/2 of them for each level and transaction. That,
// and the neighbours of what has changed, are also written; so this is for transactions that
// rewrite one block after the other, longRange of them in a row. In all others bbolt goes by the
// page.
const (
	gather    = 32
	longRange = 8
)

// renewed is a block and its name.
type renewed struct{ name, block []byte }

// Begin goes on in a transaction.
func (e *Editor) Begin(tx *bolt.Tx) (err error) {
	if e.bucket, err = tx.CreateBucketIfNotExists([]byte(PackedBucket)); err != nil {
		return err
	}
	e.bucket.FillPercent = 1 // two blocks fill a page
	e.room = blockRoom(tx.DB().Info().PageSize)
	e.blocks, e.name, e.raw = e.bucket.Cursor(), nil, nil
	e.inRange, e.open = false, false
	e.ranges, e.gone, e.made = 0, e.gone[:0], e.made[:0]
	e.pending.reset(e.room)
	e.arena.reset()
	return nil
}

// Written returns how many bytes of blocks the transaction has so far.
func (e *Editor) Written() int { return e.arena.size }

// Set stores a record; its key is greater than all before. old is what the key had, valid until the
// transaction ends.
func (e *Editor) Set(key, value []byte) (old []byte, found bool, err error) {
	if old, found, err = e.take(key); err == nil {
		e.pending.add(key, value)
		e.emitFull()
	}
	return old, found, err
}

// Remove is Set for a key that is to have no record. Blocks without the key stay as they are.
func (e *Editor) Remove(key []byte) (old []byte, found bool, err error) {
	if !e.open && !e.inRange {
		// Most keys that are not there need no block to be taken.
		if _, found, err = FindPacked(e.bucket, key); err != nil || !found {
			return nil, false, err
		}
	}
	return e.take(key)
}

// take makes all records before key pending, and takes the record of key.
func (e *Editor) take(key []byte) (old []byte, found bool, err error) {
	if err := e.reach(key); err != nil || !e.open {
		return nil, false, err
	}
	k, value, err := e.block.entry(e.i)
	if err != nil || !bytes.Equal(k, key) {
		return nil, false, err
	}
	e.i++
	return value, true, nil
}

// reach takes all records before key that are to be rewritten. If a block has records from key on,
// it is open, and i is the first of them.
func (e *Editor) reach(key []byte) error {
	for {
		if e.open {
			if there, err := e.copyUpTo(key); err != nil || there {
				return err
			}
			e.close()
		}
		switch {
		case !e.inRange:
			e.seek(key)
		case e.name == nil: // key comes behind everything
			return nil
		case bytes.Compare(e.name[1:], key) < 0 && !e.pending.underfull():
			e.endRange()
			continue
		}
		if e.name == nil {
			return nil
		}
		if err := e.openBlock(); err != nil {
			return err
		}
	}
}

// seek goes to the block that key belongs into, and begins a range. A key behind all others belongs
// into the last block while that has room.
func (e *Editor) seek(key []byte) {
	e.inRange = true
	e.ranges++
	var at [64]byte
	e.name, e.raw = e.blocks.Seek(append(append(at[:0], PackedKey), key...))
	if e.name != nil {
		return
	}
	if e.name, e.raw = e.blocks.Last(); len(e.raw) > e.room*3/4 {
		e.name, e.raw = nil, nil
	}
}

func (e *Editor) openBlock() (err error) {
	e.block, err = openBlock(e.raw, true)
	e.i, e.open = 0, err == nil
	return err
}

// copyUpTo takes the entries of the open block that come before key; there reports whether the
// block has others.
func (e *Editor) copyUpTo(key []byte) (there bool, err error) {
	for ; e.i < e.block.len(); e.i++ {
		raw, at, n, err := e.block.raw(e.i)
		if err != nil {
			return false, err
		}
		if bytes.Compare(raw[at:at+n], key) >= 0 {
			return true, nil
		}
		e.pending.addRaw(raw, at, n)
		e.emitFull()
	}
	return false, nil
}

// copyRest takes the other entries of the open block.
func (e *Editor) copyRest() error {
	for ; e.i < e.block.len(); e.i++ {
		raw, at, n, err := e.block.raw(e.i)
		if err != nil {
			return err
		}
		e.pending.addRaw(raw, at, n)
		e.emitFull()
	}
	return nil
}

// close ends the open block, all of whose entries were taken, and goes to the next block.
func (e *Editor) close() {
	e.gone = append(e.gone, e.name)
	e.open = false
	e.name, e.raw = e.blocks.Next()
}

// emitFull makes blocks while there are records for more than two.
func (e *Editor) emitFull() {
	for e.pending.size() > 2*e.room {
		e.emit(e.pending.fits)
	}
}

func (e *Editor) emit(n int) {
	name, size := e.pending.name(n), e.pending.blockSize(n)
	room := e.arena.take(len(name) + 1 + size)
	named := append(append(room[:0], PackedKey), name...)
	e.made = append(e.made, renewed{named, e.pending.cut(n, room[len(named):len(named)])})
}

// endRange makes blocks of all pending records. Blocks in between that stay as they are come next.
func (e *Editor) endRange() {
	for n := e.pending.len(); n > 0; n = e.pending.len() {
		first := e.pending.fits
		if first < n && e.name != nil && e.pending.size() <= 2*e.room {
			first = min(first, e.pending.half())
		}
		e.emit(first)
	}
	e.inRange = false
}

// End takes what is left of the last block that was changed, and changes the bucket.
func (e *Editor) End() error {
	for e.open || e.inRange && e.name != nil && e.pending.underfull() {
		if !e.open {
			if err := e.openBlock(); err != nil {
				return err
			}
		}
		if err := e.copyRest(); err != nil {
			return err
		}
		e.close()
	}
	e.endRange()
	return e.write()
}

// write changes the bucket. Both lists are in order.
func (e *Editor) write() error {
	if len(e.gone) >= longRange*e.ranges {
		e.bucket.FillPercent = gather
	}
	made := e.made
	for _, name := range e.gone {
		for len(made) > 0 && bytes.Compare(made[0].name, name) < 0 {
			made = made[1:]
		}
		if len(made) > 0 && bytes.Equal(made[0].name, name) {
			continue
		}
		if err := e.bucket.Delete(name); err != nil {
			return err
		}
	}
	for _, r := range e.made {
		if err := e.bucket.Put(r.name, r.block); err != nil {
			return err
		}
	}
	return nil
}
