package filestore

import (
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// An overlay holds the updates since a freeze, by key. A removed key is a tombstone, which hides
// the key's record in the file; a clear hides everything below.
//
// Many goroutines may read an overlay while one changes it. A frozen overlay is only read. See "The
// life of an overlay" in checkpoint.go.
type overlay struct {
	tree    *memstore.Tree
	lww     bool         // versions are noted
	cleared atomic.Bool  // everything below is hidden
	refs    atomic.Int64 // views that have the overlay

	// Guarded by applyMu until the freeze:
	stamp  update.Stamp // newest update applied, or where the file stood at the start
	follow followed     // becomes Meta.Position; without a stamp: unchanged

	// Set by the freeze:
	clearedBy Version // of the last clear
	flush     uint64  // number of the flush that brings the overlay into the file
	memory    int64   // bytes that the overlay takes

	countMu sync.Mutex // held while keys are looked up for the count; taken before mu
	total   *usage     // what the file has after the overlay's flush; guarded by countMu

	// The fields below are for the exact count, see count.go.
	mu         sync.Mutex // guards the fields below
	liveCount  int64      // records that are not tombstones
	liveBytes  int64      // their key and value bytes
	largeBytes int64      // the part of liveBytes in values over largeValue
	fresh      keyList    // keys not yet looked up below
	below      usage      // what the looked-up keys have below
	scratch    []byte
	keys       [][]byte // of the updates that are being applied
}

// followed is how far a master was followed, from the newest note in the log that the file or an
// overlay has.
type followed struct {
	state []byte
	at    update.Stamp // of the note
}

// newOverlay returns an empty overlay, whose memory comes from the overlays that were before it.
func newOverlay(from *memstore.Reserve, at update.Stamp, lww bool) *overlay {
	return &overlay{tree: memstore.NewTreeOn(from), lww: lww, stamp: at}
}

// apply changes the overlay; readers see all of ups or nothing. It returns the memory that the
// overlay takes, and how much of it large values take. The caller holds applyMu.
func (o *overlay) apply(at update.Stamp, ups []update.Update, prepared *memstore.Prepared) (size, large int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range ups {
		o.keys = append(o.keys, ups[i].Key)
	}
	o.tree.Update(o.keys, func(b *memstore.Batch) {
		for i := range ups {
			switch u := &ups[i]; u.Op {
			case update.OpSet:
				o.begin(b, flagLive, at, ups, i)
				o.put(b, i, u, prepared)
			case update.OpRemove:
				o.begin(b, flagDead, at, ups, i)
				o.replace(b, i, u.Key, nil, nil)
			case update.OpClear:
				o.clear(b)
			}
		}
	})
	o.stamp = max(o.stamp, at)
	clear(o.keys)
	if o.keys = o.keys[:0]; cap(o.keys) > keepKeys {
		o.keys = nil
	}
	return o.tree.Bytes() + int64(o.fresh.size), o.largeBytes
}

// keepKeys is how many updates come together at most whose list of keys is kept for the next ones.
const keepKeys = 4096

// begin puts into scratch the flag and the version that stand in front of the value of ups[i].
func (o *overlay) begin(b *memstore.Batch, flag byte, at update.Stamp, ups []update.Update, i int) {
	o.scratch = append(o.scratch[:0], flag)
	if o.lww {
		o.note(b, at, ups, i)
	}
}

// note adds the version of ups[i] to the flag in scratch. The removal of an expired or evicted
// record (at is 0) is not in the log and has no version of its own. The key then keeps the version
// that this overlay has noted before; if there is none, Entry finds the version below the overlay.
func (o *overlay) note(b *memstore.Batch, at update.Stamp, ups []update.Update, i int) {
	v := VersionOf(at, ups, i)
	if at == 0 {
		before, found := b.Get(ups[i].Key)
		if !found || before[0]&flagNoted == 0 {
			return
		}
		v = decodeVersion(before[1:])
	}
	o.scratch[0] |= flagNoted
	o.scratch = appendVersion(o.scratch, v)
}

// put stores the record of the i-th update, whose flag and version are in scratch. For a large
// value it looks whether Prepare has made a copy.
func (o *overlay) put(b *memstore.Batch, i int, u *update.Update, prepared *memstore.Prepared) {
	if len(u.Value) <= largeValue {
		o.scratch = append(o.scratch, u.Value...)
		o.replace(b, i, u.Key, nil, nil)
	} else {
		o.replace(b, i, u.Key, u.Value, prepared.Take(u.Value, len(o.scratch)))
		o.largeBytes += int64(len(u.Value))
	}
	o.liveCount++
	o.liveBytes += int64(len(u.Key) + len(u.Value))
}

// largeValue is the size of the longest value that is copied into scratch.
const largeValue = 64 << 10

// replace stores scratch as the entry of key, which is that of the i-th update: alone, in front of
// the copy made of a large value, or joined with the bytes of a large value. It takes the entry
// that was there before out of the sums.
func (o *overlay) replace(b *memstore.Batch, i int, key, large []byte, made *memstore.Value) {
	var oldFlag byte
	var oldSize int
	var existed bool
	switch {
	case made != nil:
		oldFlag, oldSize, existed = b.PutMade(key, o.scratch, made)
	case large == nil:
		oldFlag, oldSize, existed = b.Put(i, key, o.scratch)
	default:
		oldFlag, oldSize, existed = b.PutJoined(key, o.scratch, large)
	}
	switch {
	case !existed && !o.cleared.Load():
		o.fresh.add(key)
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
	o.fresh, o.below = keyList{}, usage{}
}

// get looks a key up, first in the tree and then in the flag cleared. A clear works in the opposite
// order: it sets cleared before it empties the tree. So a reader that no longer finds a cleared key
// in the tree is sure to see the flag, and reports the key dead. In any other order the reader
// could report the key unknown, and then find the cleared record in the file.
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

// entry looks up the entry of a key in the overlay.
func (o *overlay) entry(key []byte) (LastUpdate, bool) {
	var room [headSize]byte
	head, found := o.tree.GetHead(room[:0], key, headSize)
	if !found {
		return LastUpdate{}, false
	}
	return notedEntry(head)
}

// scan visits the overlay's entries, tombstones included.
func (o *overlay) scan(from store.Start, visit func(key, flagged []byte) bool) {
	_ = o.tree.Scan(from, visit) // memory cannot fail
}

// release drops one view's hold, and gives the memory back after the last.
func (o *overlay) release() {
	if o.refs.Add(-1) == 0 {
		o.tree.Free()
	}
}

// A view is what a reader sees in front of the file: the active overlay, and the frozen ones that
// wait to be flushed. A view never changes: a freeze and the end of a flush replace the whole view.
// An overlay gives its memory back when the last view that has it is released.
//
// A reader takes the view first and begins its transaction afterwards. If a flush ends between the
// two steps, the reader sees the updates of that overlay twice, in its view and in the file, which
// does no harm. In the other order the reader could miss these updates: its transaction would be
// older than the flush, and its view, taken after the flush, would no longer have the overlay.
type view struct {
	overlays []*overlay // newest first: the active one, then the frozen ones

	refs atomic.Int64 // readers, plus one while the view is current; 0 is final
}

func newView(overlays ...*overlay) *view {
	v := &view{overlays: overlays}
	v.refs.Store(1)
	for _, o := range overlays {
		o.refs.Add(1)
	}
	return v
}

func (v *view) active() *overlay { return v.overlays[0] }

// frozen returns the overlays that wait to be flushed, newest first.
func (v *view) frozen() []*overlay { return v.overlays[1:] }

// oldest returns the overlay that is flushed next; nil where none is frozen.
func (v *view) oldest() *overlay {
	if len(v.overlays) == 1 {
		return nil
	}
	return v.overlays[len(v.overlays)-1]
}

func (v *view) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	for _, o := range v.overlays {
		o.release()
	}
}

// state says what a view knows of a key.
type state int

const (
	unknown state = iota // not in the overlays: the file decides
	live                 // present
	dead                 // removed, or hidden by a clear
)

// get looks a key up in the overlays, the newest one first.
func (v *view) get(dst, key []byte, r store.Reader) ([]byte, state, error) {
	for _, o := range v.overlays {
		var st state
		var err error
		if dst, st, err = o.get(dst, key, r); st != unknown || err != nil {
			return dst, st, err
		}
	}
	return dst, unknown, nil
}
