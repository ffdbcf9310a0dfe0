package run

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

const (
	maxInBlock = 16 << 10 // key and value bytes of the largest entry in a block
	arenaRoom  = 96 << 10 // two of the largest blocks; with less the transaction is full
)

// A Writer writes one run, in as many transactions as the caller likes:
//
//	w := NewWriter(number, most)
//	for each transaction: Begin, Add until Full, End
//	in the last one: Begin, Add, Finish, which ends as well
//
// A Writer keeps blocks in memory of its own, which bbolt refers to until the transaction is
// committed; so it takes one transaction at a time.
type Writer struct {
	name   [8]byte
	info   Info
	filter Filter

	bucket *bolt.Bucket // of the transaction
	room   int          // for a block and its last key
	build  blockBuilder
	last   []byte // key of the newest entry, behind BlockKey
	arena  []byte
	large  int // bytes of large values in the transaction
}

// NewWriter returns a writer of run number, which gets at most so many entries. A transaction takes
// blocks of about room bytes.
func NewWriter(number uint64, most int64, room int) *Writer {
	w := &Writer{filter: newFilter(most), arena: make([]byte, 0, max(room, 2*arenaRoom))}
	binary.BigEndian.PutUint64(w.name[:], number)
	return w
}

// Begin goes on in a transaction. The error may say that a finished run has the number.
func (w *Writer) Begin(tx *bolt.Tx) error {
	runs, err := tx.CreateBucketIfNotExists([]byte(Bucket))
	if err != nil {
		return err
	}
	if w.bucket, err = runs.CreateBucketIfNotExists(w.name[:]); err != nil {
		return err
	}
	if w.bucket.Get([]byte{InfoKey}) != nil {
		return fmt.Errorf("run %d is in the file already", binary.BigEndian.Uint64(w.name[:]))
	}
	w.bucket.FillPercent = 1 // keys come in order
	w.room = blockRoom(tx.DB().Info().PageSize)
	w.arena, w.large = w.arena[:0], 0
	return nil
}

// Full reports whether the transaction has enough and should be ended.
func (w *Writer) Full() bool {
	return cap(w.arena)-len(w.arena) < arenaRoom || w.large >= cap(w.arena)
}

// Add writes the next entry. Its key is greater than that of the entry before.
func (w *Writer) Add(key, flagged []byte, live bool, liveBytes int) error {
	w.info.Entries++
	w.info.Bytes += int64(len(key) + len(flagged))
	if live {
		w.info.Live++
		w.info.LiveBytes += int64(liveBytes)
	}
	w.filter.add(Hash(key))
	inside := flagged
	if len(key)+len(flagged) > maxInBlock {
		inside = nil
		if err := w.bucket.Put(append([]byte{LargeKey}, key...), closeLarge(flagged)); err != nil {
			return err
		}
		w.large += len(flagged)
	}
	if w.build.sizeWith(key, inside)+len(key) > w.room {
		if err := w.putBlock(); err != nil {
			return err
		}
	}
	w.last = append(append(w.last[:0], BlockKey), key...)
	w.build.add(key, inside)
	return nil
}

// putBlock ends the block under way.
func (w *Writer) putBlock() error {
	if len(w.build.offsets) == 0 {
		return nil
	}
	at := len(w.arena)
	w.arena = w.build.finish(w.arena)
	return w.bucket.Put(w.last, w.arena[at:len(w.arena):len(w.arena)])
}

// End ends the transaction's part of the run.
func (w *Writer) End() error { return w.putBlock() }

// Finish ends the run; about and aboutBytes become Info.About and AboutBytes. With the
// transaction's commit the run is there as a whole.
func (w *Writer) Finish(about, aboutBytes int64) (*Run, error) {
	w.info.About, w.info.AboutBytes = about, aboutBytes
	if err := w.putBlock(); err != nil {
		return nil, err
	}
	if err := w.bucket.Put([]byte{FilterKey}, w.filter.encode()); err != nil {
		return nil, err
	}
	if err := w.bucket.Put([]byte{InfoKey}, w.info.encode()); err != nil {
		return nil, err
	}
	return &Run{name: w.name, Info: w.info, filter: w.filter}, nil
}

// Info returns the figures of what was added so far.
func (w *Writer) Info() Info { return w.info }

// Drop removes a finished run from the file.
func Drop(tx *bolt.Tx, r *Run) error {
	if err := tx.Bucket([]byte(Bucket)).DeleteBucket(r.name[:]); err != nil {
		return fmt.Errorf("drop run %d: %w", r.Number(), err)
	}
	return nil
}

// DropUpTo removes the blocks of a run that have no key behind the given one: the layer below has
// their entries. now is what the run still has, and the result is what it has afterwards. live says
// of an entry whether it is a record, and how many bytes that has.
func DropUpTo(tx *bolt.Tx, r *Run, now Info, key []byte, live func(key, flagged []byte) (bool, int)) (left Info, err error) {
	b := r.In(tx)
	if b == nil {
		return now, ErrDamaged
	}
	left = now
	var names [][]byte
	c := b.Cursor()
	for name, raw := c.Seek([]byte{BlockKey}); name != nil && name[0] == BlockKey && bytes.Compare(name[1:], key) <= 0; name, raw = c.Next() {
		names = append(names, name)
		bl, err := openBlock(raw, true)
		if err != nil {
			return now, err
		}
		for i := range bl.len() {
			key, flagged, err := bl.entry(i)
			if err == nil && len(flagged) == 0 {
				names = append(names, append([]byte{LargeKey}, key...))
				flagged, err = findLarge(b, key, false) // nobody needs the value any more, only its size
			}
			if err != nil {
				return now, err
			}
			left.Entries--
			left.Bytes -= int64(len(key) + len(flagged))
			if is, size := live(key, flagged); is {
				left.Live--
				left.LiveBytes -= int64(size)
			}
		}
	}
	for _, name := range names {
		if err := b.Delete(name); err != nil {
			return now, fmt.Errorf("drop what was merged of run %d: %w", r.Number(), err)
		}
	}
	if len(names) > 0 {
		err = b.Put([]byte{InfoKey}, left.encode())
	}
	return left, err
}

// DropAll removes all runs from the file, finished or not.
func DropAll(tx *bolt.Tx) error {
	if tx.Bucket([]byte(Bucket)) == nil {
		return nil
	}
	return tx.DeleteBucket([]byte(Bucket))
}

// DropUnfinished removes runs whose writer did not come to its end.
func DropUnfinished(tx *bolt.Tx) error {
	all := tx.Bucket([]byte(Bucket))
	if all == nil {
		return nil
	}
	var names [][]byte
	err := all.ForEachBucket(func(name []byte) error {
		if b := all.Bucket(name); b.Get([]byte{InfoKey}) == nil {
			names = append(names, bytes.Clone(name))
		}
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, all.DeleteBucket(name))
	}
	return err
}
