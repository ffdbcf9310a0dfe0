package memstore

import (
	"bytes"
	"sync"

	"gotycoon/db/memstore/slab"
	"gotycoon/internal/pieces"
)

// A Tree is a map of byte strings in key order: a B+tree whose pages are blocks of a slab.Arena.
// Any number of goroutines may read it while one changes it; further changes wait.
//
// Readers wait while a change is made (1 µs, more for an Update), and changes wait for a piece of a
// Scan.
//
// Invariants of the pages:
//   - All keys below slot i of an inner page are at or behind the key of slot i, and before the key
//     of slot i+1. The key of slot 0 counts as smaller than any key.
//   - The fences of a page are the nearest keys left and right of the way from the root to the
//     page. All keys that may ever come to the page lie between its fences. Both fences begin with
//     the same page.prefix() bytes, so all these keys do, too.
//   - No page is empty, and the root, if it is an inner page, has at least two children.
//
// Lock order: writer -> mu.
type Tree struct {
	writer  sync.Mutex    // held over a change; guards the fields to the next blank line
	path    []pathStep    // from the root to the page that is being changed
	scratch []byte        // an encoded entry
	ends    []int         // see splitting
	cleared []*slab.Arena // to be released when mu is free

	mu    sync.RWMutex // guards the fields below and the pages
	arena *slab.Arena
	root  slab.Addr // 0: no records
	count int
}

// A pathStep is a page on the way to another, and the slot where the way goes on.
type pathStep struct {
	at   slab.Addr
	slot int
}

// NewTree returns an empty Tree.
func NewTree() *Tree {
	return &Tree{arena: slab.New()}
}

// Get appends the value of key to dst.
func (t *Tree) Get(dst, key []byte) (value []byte, found bool) {
	dst, large, pin, found := t.Look(dst, key)
	if pin != nil {
		defer pin.Release()
		dst = pieces.Append(dst, large)
	}
	return dst, found
}

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

// GetHead is Get for at most the first n bytes of a value.
func (t *Tree) GetHead(dst, key []byte, n int) (head []byte, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, found := t.find(key)
	return append(dst, value[:min(n, len(value))]...), found
}

// find returns the value of key where it lies. The caller holds writer or mu.
func (t *Tree) find(key []byte) (value []byte, found bool) {
	value, _, found = t.locate(key)
	return value, found
}

// locate is find, and also returns the block with the value, 0 if the value has no block of its
// own.
func (t *Tree) locate(key []byte) (value []byte, at slab.Addr, found bool) {
	if t.root == 0 {
		return nil, 0, false
	}
	p := pageAt(t.arena, t.root)
	for !p.leaf() {
		p = pageAt(t.arena, t.child(p, t.childSlot(p, key)))
	}
	i, found := t.search(p, 0, key)
	if !found {
		return nil, 0, false
	}
	e := parseEntry(p.entry(i))
	return e.value(t.arena), e.apart(), true
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

// Bytes returns the bytes of memory that the tree occupies.
func (t *Tree) Bytes() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.arena.Used()
}

// Mapped returns the bytes taken from the operating system. Pages that were never touched cost
// nothing.
func (t *Tree) Mapped() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.arena.Mapped()
}

// Clear removes all records.
func (t *Tree) Clear() { t.Update((*Batch).Clear) }

// Free gives all memory back. The tree is empty then, and may be used again.
func (t *Tree) Free() { t.Clear() }

// childSlot returns the slot of the child that a key belongs to.
func (t *Tree) childSlot(p page, key []byte) int {
	i, found := t.search(p, 1, key)
	if found {
		return i
	}
	return i - 1
}

// search returns the first slot, from a given one on, whose key is not before key, and whether it
// is that key.
func (t *Tree) search(p page, from int, key []byte) (slot int, found bool) {
	head := headOf(key, p.prefix())
	low, high := from, p.count()
	for low < high {
		mid := int(uint(low+high) >> 1)
		h := p.head(mid)
		before := h < head
		if h == head {
			c := bytes.Compare(t.key(p, mid), key)
			if c == 0 {
				return mid, true
			}
			before = c < 0
		}
		if before {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, false
}

func (t *Tree) key(p page, i int) []byte {
	e := parseEntry(p.entry(i))
	return e.key(t.arena)
}

// child returns the page that slot i of an inner page leads to.
func (t *Tree) child(p page, i int) slab.Addr {
	e := parseEntry(p.entry(i))
	return getAddr(e.value(t.arena))
}
