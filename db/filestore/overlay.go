package filestore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// What an overlay has of a key:
//
//	offset  0      1       9     11
//	        ┌──────┬───────┬─────┬───────┐
//	        │ flag │ stamp │ sid │ value │
//	        └──────┴───────┴─────┴───────┘
//
// Stamp and sid are the version, only with flagNoted; the value comes right behind the flag without it. A tombstone has no value.
const (
	flagDead  = 0      // tombstone: the key is removed, whatever is below
	flagLive  = 1 << 0 // a record
	flagNoted = 1 << 1 // with its version

	headSize = 1 + versionSize // at most
)

// valueAt returns where the value begins behind a flag.
func valueAt(flag byte) int {
	if flag&flagNoted == 0 {
		return 1
	}
	return headSize
}

// overlay holds the updates since a checkpoint, by key. Many read while one changes it; a frozen one is only read.
type overlay struct {
	tree    *memstore.Tree
	lww     bool         // versions are noted
	cleared atomic.Bool  // everything below is hidden
	refs    atomic.Int64 // views that have it

	follow followed // what becomes Meta.Follow; without a stamp: unchanged. Guarded by applyMu, as stamp is in effect

	clearedBy Version // of the last clear when it was frozen

	checkpoint uint64 // number of the checkpoint that takes it into the file; set when it is frozen

	countMu sync.Mutex // held while keys are looked up for count; before mu
	total   *usage     // of a frozen one: what the file has after its checkpoint, when known; guarded by countMu

	// For the exact count. A blind set does not look at the file, so it is not known whether its key exists below.
	mu        sync.Mutex // guards the fields below
	stamp     ulog.Stamp // newest update applied, or where the file stood at the start
	liveCount int64      // records that are not tombstones
	liveBytes int64      // their key and value bytes

	largeBytes int64  // of values over largeValue
	fresh      []byte // keys not yet looked up below, each with a varint length before it
	below      usage  // what the looked-up keys have below
	scratch    []byte
}

// usage is a number of records and their key and value bytes.
type usage struct{ count, bytes int64 }

func newOverlay(at ulog.Stamp, lww bool) *overlay {
	return &overlay{tree: memstore.NewTree(), lww: lww, stamp: at}
}

// release drops one view's hold and gives the memory back after the last.
func (o *overlay) release() {
	if o.refs.Add(-1) == 0 {
		o.tree.Free()
	}
}

// get looks a key up. A key missing because of a clear is dead: cleared is set before the tree is emptied, so it
// must be read after the tree.
func (o *overlay) get(dst, key []byte, r store.Reader) ([]byte, state, error) {
	at := len(dst)
	dst, large, pin, found := o.tree.Look(dst, key)
	switch {
	case !found && o.cleared.Load():
		return dst, dead, nil
	case !found:
		return dst, unknown, nil
	case pin != nil: // live: nothing else is large
		defer pin.Release()
		dst, err := store.Append(dst, large[valueAt(large[0]):], r)
		return dst, live, err
	case dst[at]&flagLive == 0:
		return dst[:at], dead, nil
	}
	n := valueAt(dst[at])
	copy(dst[at:], dst[at+n:])
	return dst[:len(dst)-n], live, nil
}

// apply changes the overlay; readers see all of ups or nothing. It returns the memory that the overlay takes, and large values of it. The
// caller holds applyMu.
func (o *overlay) apply(at ulog.Stamp, ups []ulog.Update, prepared *memstore.Prepared) (size, large int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tree.Update(func(b *memstore.Batch) {
		for i := range ups {
			switch u := &ups[i]; u.Op {
			case ulog.OpSet:
				o.begin(b, flagLive, at, ups, i)
				o.put(b, u.Key, u.Value, prepared.Take(u.Value, len(o.scratch)))
			case ulog.OpRemove:
				o.begin(b, flagDead, at, ups, i)
				o.replace(b, u.Key, nil, nil)
			case ulog.OpClear:
				o.clear(b)
			}
		}
	})
	o.stamp = max(o.stamp, at)
	return o.tree.Bytes() + int64(len(o.fresh)), o.largeBytes
}

// begin makes scratch the beginning of what the overlay is to have of the key of ups[i].
func (o *overlay) begin(b *memstore.Batch, flag byte, at ulog.Stamp, ups []ulog.Update, i int) {
	o.scratch = append(o.scratch[:0], flag)
	if o.lww {
		o.note(b, at, ups, i)
	}
}

// put stores a record that is begun in scratch. made is a copy of its value, nil if there is none yet.
func (o *overlay) put(b *memstore.Batch, key, value []byte, made *memstore.Value) {
	switch {
	case made != nil:
		o.replace(b, key, nil, made)
	case len(value) <= largeValue:
		o.scratch = append(o.scratch, value...)
		o.replace(b, key, nil, nil)
	default:
		o.replace(b, key, value, nil)
	}
	o.liveCount++
	o.liveBytes += int64(len(key) + len(value))
	if len(value) > largeValue {
		o.largeBytes += int64(len(value))
	}
}

// largeValue is the size from which on a value is not copied into scratch.
const largeValue = 64 << 10

// replace stores scratch, with a large value behind it or in front of a copy of one, and takes what it replaces out of the sums.
func (o *overlay) replace(b *memstore.Batch, key, large []byte, made *memstore.Value) {
	var oldFlag byte
	var oldSize int
	var existed bool
	switch {
	case made != nil:
		oldFlag, oldSize, existed = b.ReplaceMade(key, o.scratch, made)
	case large == nil:
		oldFlag, oldSize, existed = b.Replace(key, o.scratch)
	default:
		oldFlag, oldSize, existed = b.ReplaceJoined(key, o.scratch, large)
	}
	switch {
	case !existed && !o.cleared.Load():
		o.fresh = binary.AppendUvarint(o.fresh, uint64(len(key)))
		o.fresh = append(o.fresh, key...)
	case existed && oldFlag&flagLive != 0:
		o.liveCount--
		size := int64(oldSize - valueAt(oldFlag))
		o.liveBytes -= int64(len(key)) + size
		if size > largeValue {
			o.largeBytes -= size
		}
	}
}

func (o *overlay) clear(b *memstore.Batch) {
	o.cleared.Store(true)
	b.Clear()
	o.liveCount, o.liveBytes, o.largeBytes = 0, 0, 0
	o.fresh, o.below = nil, usage{}
}

// scan visits the overlay's entries, tombstones included.
func (o *overlay) scan(from store.Start, visit func(key, flagged []byte) bool) {
	_ = o.tree.Scan(from, visit) // memory cannot fail
}
