package memstore

import (
	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
)

// Look appends the value of key to dst. If the value is large, Look returns the place of the value
// instead, and a pin: the value stays there until the pin is released. So writers need not wait
// until a reader has copied a large value.
func (t *Tree) Look(dst, key []byte) (got, large []byte, pin *slab.Pin, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, at, found := t.locate(key)
	if pin = pinLarge(t.arena, at, value); pin != nil {
		return dst, value, pin, true
	}
	return append(dst, value...), nil, nil, found
}

// LookBulk calls visit for those of keys that have a record, in their order. value is valid during
// the call. Changes wait until the last call is done, so visit must be quick.
func (t *Tree) LookBulk(keys [][]byte, visit func(i int, value []byte)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.warm(keys, nil)
	for i, key := range keys {
		if value, found := t.find(key); found {
			visit(i, value)
		}
	}
}

// GetHead appends at most the first n bytes of the value of key to dst.
func (t *Tree) GetHead(dst, key []byte, n int) (head []byte, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, found := t.find(key)
	return append(dst, value[:min(n, len(value))]...), found
}

// has reports whether there is a record with key.
func (t *Tree) has(key []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, found := t.find(key)
	return found
}

// Len returns the number of records.
func (t *Tree) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count
}

// Mapped returns the bytes taken from the operating system. Pages that were never touched cost
// nothing.
func (t *Tree) Mapped() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.arena.Mapped()
}

// usualDepth is the depth up to which a scan's path needs no memory of the heap.
const usualDepth = 8

// scanPiece is the number of records visited under one lock: changes, and reads behind them, wait
// for less than a millisecond.
const scanPiece = 1024

// Scan visits the records from a place of the order, in one direction or the other, until visit
// returns false. Up to scanPiece records are of one state; changes come in between the pieces. The
// error is always nil.
func (t *Tree) Scan(from store.Start, visit func(key, value []byte) bool) error {
	for more := true; more; {
		from, more = t.scanPiece(from, visit)
	}
	return nil
}

// scanPiece visits some records and returns where to go on. more is false at the end, or when visit
// returned false.
func (t *Tree) scanPiece(from store.Start, visit func(key, value []byte) bool) (next store.Start, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.root == 0 {
		return from, false
	}
	var room [usualDepth]pathStep
	w := walk{tree: t, path: room[:0], step: 1, left: scanPiece}
	if from.Backward {
		w.step = -1
	}
	w.start(from)
	for ok := true; ok; ok = w.nextLeaf() {
		if !w.visitLeaf(visit) {
			next = store.Start{Key: w.last, Backward: from.Backward}
			return next, w.last != nil
		}
	}
	return from, false
}

// A walk is a way through the leaves of a Tree.
type walk struct {
	tree *Tree
	path []pathStep // above leaf
	leaf page
	slot int // in leaf; may be before or behind all slots
	step int // 1 forward, -1 backward
	left int // records of the piece

	last []byte // a copy of the piece's last key; nil before its end
}

// start goes to the first record to be visited.
func (w *walk) start(from store.Start) {
	t := w.tree
	p, at := pageAt(t.arena, t.root), t.root
	for !p.leaf() {
		i := w.edge(p)
		if !from.Edge {
			i = p.childSlot(t.arena, from.Key)
		}
		w.path = append(w.path, pathStep{at, i})
		at = p.child(t.arena, i)
		p = pageAt(t.arena, at)
	}
	w.leaf = p
	if from.Edge {
		w.slot = w.edge(p)
		return
	}
	i, found := p.search(t.arena, 0, from.Key)
	w.slot = i
	switch {
	case found && !from.Inclusive:
		w.slot += w.step
	case !found && from.Backward:
		w.slot--
	}
}

// edge returns the slot of a page that comes first in the walk's direction.
func (w *walk) edge(p page) int {
	if w.step < 0 {
		return p.count() - 1
	}
	return 0
}

// visitLeaf visits the rest of the leaf. It returns false when visit did, or when the piece ends.
func (w *walk) visitLeaf(visit func(key, value []byte) bool) bool {
	arena := w.tree.arena
	for n := w.leaf.count(); w.slot >= 0 && w.slot < n; w.slot += w.step {
		e := parseEntry(w.leaf.entry(w.slot))
		if !visit(e.key(arena), e.value(arena)) {
			return false
		}
		if w.left--; w.left == 0 {
			w.last = append([]byte{}, e.key(arena)...)
			return false
		}
	}
	return true
}

// nextLeaf goes to the next leaf, and returns false if there is none.
func (w *walk) nextLeaf() bool {
	arena := w.tree.arena
	for d := len(w.path) - 1; d >= 0; d-- {
		p := pageAt(arena, w.path[d].at)
		w.path[d].slot += w.step
		if i := w.path[d].slot; i < 0 || i >= p.count() {
			continue
		}
		w.descend(d)
		return true
	}
	return false
}

// descend goes from a step of the path to the first leaf below it.
func (w *walk) descend(d int) {
	arena := w.tree.arena
	last := w.path[d]
	at := pageAt(arena, last.at).child(arena, last.slot)
	p := pageAt(arena, at)
	for d++; d < len(w.path); d++ { // all leaves have the same depth
		w.path[d] = pathStep{at, w.edge(p)}
		at = p.child(arena, w.edge(p))
		p = pageAt(arena, at)
	}
	w.leaf, w.slot = p, w.edge(p)
}
