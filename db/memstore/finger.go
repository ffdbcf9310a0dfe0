package memstore

import (
	"bytes"

	"gotycoon/db/memstore/slab"
)

// # Fingers
//
// Many clients change the same few leaves again and again: those of a counter, of the end of a
// journal and of the record that tells how long it is, of a queue. A finger points at a leaf, so
// that a put goes to the leaf without the way from the root.
//
// Some keys that come together, as a round of a journal and the record of its state do, are not
// warmed (warm.go) where fingers know the first and the last of them: their leaves are in the
// processor's caches.
//
// Whether a key belongs to the leaf is told by the fences that the leaf had when the finger was put
// there. They stay right until the leaf is freed: no page gives keys away without being freed, see
// freePage, and what a page gets from a neighbour only moves its fences apart.
//
// To copy the fences takes time, in vain where keys come in no order. So the first way to a leaf
// only notes the leaf, and the second one, soon after, its fences.
//
// Rejected: the leaf's first and last key as fences. They cost nothing, and a key at the end of the
// leaf, where all keys of a journal come, is behind the last one.

// mostFingers is how many leaves are pointed at. A search looks at all of them.
const mostFingers = 3

// fingers are the leaves to which the latest ways from the root have led.
type fingers struct {
	all  [mostFingers]finger
	next int // the one that gives way
}

// finger points at a leaf.
type finger struct {
	leaf      slab.Addr // 0: none
	fenced    bool      // the fences are known
	open      bool      // there is no high fence
	low, high []byte    // copies of the leaf's fences
}

// find returns the leaf that a key belongs to, 0 if no finger knows it.
func (f *fingers) find(key []byte) slab.Addr {
	for i := range f.all {
		if one := &f.all[i]; one.fenced && one.encloses(key) {
			return one.leaf
		}
	}
	return 0
}

// enclose reports whether fingers know the leaves of the first and of the last of some keys.
func (f *fingers) enclose(keys [][]byte) bool {
	return len(keys) > 0 && f.find(keys[0]) != 0 && f.find(keys[len(keys)-1]) != 0
}

func (f *finger) encloses(key []byte) bool {
	return bytes.Compare(f.low, key) <= 0 && (f.open || bytes.Compare(key, f.high) < 0)
}

// point notes the leaf to which a way from the root has led. It returns a finger whose fences are
// to be set, nil for none.
func (f *fingers) point(leaf slab.Addr) *finger {
	for i := range f.all {
		if one := &f.all[i]; one.leaf == leaf {
			return one
		}
	}
	one := &f.all[f.next]
	one.leaf, one.fenced = leaf, false
	f.next = (f.next + 1) % mostFingers
	return nil
}

// fence sets the fences of the finger's leaf; a high one of nil is the end of the tree.
func (f *finger) fence(low, high []byte) {
	f.fenced, f.open = true, high == nil
	f.low, f.high = append(f.low[:0], low...), append(f.high[:0], high...)
}

// move notes that a leaf has become another page, with the same fences.
func (f *fingers) move(from, to slab.Addr) {
	for i := range f.all {
		if one := &f.all[i]; one.leaf == from {
			one.leaf = to
		}
	}
}

// forget forgets a page that is being freed.
func (f *fingers) forget(at slab.Addr) {
	for i := range f.all {
		if one := &f.all[i]; one.leaf == at {
			one.leaf, one.fenced = 0, false
		}
	}
}

// clear forgets all leaves.
func (f *fingers) clear() { *f = fingers{} }
