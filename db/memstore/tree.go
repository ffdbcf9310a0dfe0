package memstore

import (
	"bytes"
	"sync"

	"gotycoon/db/memstore/slab"
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
	batch   Batch         // of the Update under way
	ends    []int         // see splitting
	leaves  []slab.Addr   // of the keys that were warmed last, in their order; 0 where unknown
	fingers fingers       // leaves of the latest puts
	cleared []*slab.Arena // to be released when mu is free

	mu    sync.RWMutex // guards the fields below and the pages
	arena *slab.Arena
	root  slab.Addr // 0: no records
	count int
}

// Batch changes a Tree during an Update.
type Batch struct{ t *Tree }

// A pathStep is a page on the way to another, and the slot where the way goes on.
type pathStep struct {
	at   slab.Addr
	slot int
}

// NewTree returns an empty Tree.
func NewTree() *Tree {
	return &Tree{arena: slab.New()}
}

// A Reserve keeps the memory of Trees that were freed for the next ones, see slab.Reserve.
type Reserve = slab.Reserve

// NewReserve returns an empty Reserve that keeps up to limit bytes.
func NewReserve(limit int64) *Reserve { return slab.NewReserve(limit) }

// NewTreeOn returns an empty Tree that takes its memory from a Reserve, and gives it back there.
func NewTreeOn(r *Reserve) *Tree { return &Tree{arena: slab.NewOn(r)} }

// releaseCleared gives memory back. The caller holds writer, and not mu.
func (t *Tree) releaseCleared() {
	for _, a := range t.cleared {
		a.Release()
	}
	t.cleared = nil
}

// Put stores a record and returns the first byte (0 if it is empty) and the size of the value that
// it replaces.
func (t *Tree) Put(key, value []byte) (first byte, size int, existed bool) {
	t.writer.Lock()
	defer t.writer.Unlock()
	apart := makeApart(t.arena, key, value) // before readers have to wait
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.put(key, value, apart)
}

// put stores a record whose block, if it needs one, has been made. The caller holds the locks.
func (t *Tree) put(key, value []byte, apart slab.Addr) (first byte, size int, existed bool) {
	t.scratch = appendEntry(t.scratch[:0], key, value, apart)
	return t.putScratch(key)
}

// putScratch stores the entry in t.scratch, whose key is key.
func (t *Tree) putScratch(key []byte) (first byte, size int, existed bool) {
	if t.root == 0 {
		t.root, _ = newPage(t.arena, 0, pageMin, 0)
	}
	p := t.descend(key)
	t.point()
	i, found := p.search(t.arena, 0, key)
	if !found {
		t.count++
		t.insert(len(t.path)-1, i, key, t.scratch)
		return 0, 0, false
	}
	e := parseEntry(p.entry(i))
	if old := e.value(t.arena); len(old) > 0 {
		first, size = old[0], len(old)
	}
	e.freeApart(t.arena)
	t.overwrite(p, i, e.size, key)
	return first, size, true
}

// point points a finger at the leaf to which t.path leads.
func (t *Tree) point() {
	leaf := len(t.path) - 1
	if one := t.fingers.point(t.path[leaf].at); one != nil {
		one.fence(t.fences(leaf))
	}
}

// putAt is put for the i-th of the keys that were warmed. It goes the whole way only where the leaf
// is unknown, or has to be replaced.
func (t *Tree) putAt(i int, key, value []byte, apart slab.Addr) (first byte, size int, existed bool) {
	leaf, find := slab.Addr(0), page.search
	if i < len(t.leaves) {
		leaf = t.leaves[i]
	} else {
		leaf, find = t.fingers.find(key), page.searchNear
	}
	if leaf == 0 {
		return t.put(key, value, apart)
	}
	t.scratch = appendEntry(t.scratch[:0], key, value, apart)
	p := pageAt(t.arena, leaf)
	slot, found := find(p, t.arena, 0, key)
	switch {
	case found:
		e := parseEntry(p.entry(slot))
		if old := e.value(t.arena); len(old) > 0 {
			first, size = old[0], len(old)
		}
		if t.fitsOver(p, slot) {
			return first, size, true
		}
	case p.gap() >= len(t.scratch)+pageSlot && !t.arena.Sparse(leaf):
		p.insert(slot, headOf(key, p.prefix()), t.scratch)
		p.set(offLast, slot)
		t.count++
		return 0, 0, false
	}
	return t.putScratch(key)
}

// fitsOver puts the entry in t.scratch in the place of entry i of a leaf, unless it is too long.
func (t *Tree) fitsOver(p page, i int) bool {
	b := p.entry(i)
	size := 0
	if k, v, ok := shortSizes(b); ok {
		size = 2 + k + v
	} else {
		e := parseEntry(b)
		if size = e.size; len(t.scratch) <= size {
			e.freeApart(t.arena)
		}
	}
	if len(t.scratch) > size {
		return false
	}
	copy(b, t.scratch)
	p.set(offGarbage, p.get(offGarbage)+size-len(t.scratch))
	return true
}

// freePage frees a page, and forgets that it was the leaf of some keys: other pages may get its
// keys, or its address. No page gives keys away without being freed, so the other leaves stay
// right. When there are many, looking through them would take longer than they save.
func (t *Tree) freePage(at slab.Addr) {
	t.fingers.forget(at)
	if len(t.leaves) > mostLeaves {
		t.leaves = t.leaves[:0]
	}
	for i, leaf := range t.leaves {
		if leaf == at {
			t.leaves[i] = 0
		}
	}
	t.arena.Free(at)
}

const mostLeaves = 512

// overwrite puts the entry in t.scratch in place of entry i of the leaf at the end of the path. The
// old entry has the given size.
func (t *Tree) overwrite(p page, i, size int, key []byte) {
	if len(t.scratch) <= size {
		copy(p.entry(i), t.scratch)
		p.set(offGarbage, p.get(offGarbage)+size-len(t.scratch))
		return
	}
	last := p.get(offLast)
	p.remove(i, size)
	p.set(offLast, noLast)
	at := t.path[len(t.path)-1].at
	t.insert(len(t.path)-1, i, key, t.scratch)
	if t.path[len(t.path)-1].at == at {
		p.set(offLast, last)
	}
}

// descend makes t.path the way to the leaf for key and returns the leaf.
func (t *Tree) descend(key []byte) page {
	t.path = t.path[:0]
	at := t.root
	for {
		p := pageAt(t.arena, at)
		if p.leaf() {
			t.path = append(t.path, pathStep{at: at})
			return p
		}
		i := p.childSlot(t.arena, key)
		t.path = append(t.path, pathStep{at, i})
		at = p.child(t.arena, i)
	}
}

// pageOn returns the page at a depth of the path.
func (t *Tree) pageOn(depth int) page { return pageAt(t.arena, t.path[depth].at) }

// insert puts an entry before slot i of the page at a depth of the path. Below that depth the path
// is void afterwards.
func (t *Tree) insert(depth, i int, key, entry []byte) {
	p := t.pageOn(depth)
	if p.gap() < len(entry)+pageSlot {
		need := p.live() + len(entry) + pageSlot
		if need > pageMax {
			t.split(depth, i, entry)
			return
		}
		p = t.rebuild(depth, withSlack(need))
	} else if t.arena.Sparse(t.path[depth].at) { // without this, pages of changing sizes leave a fifth of the memory unused
		p = t.rebuild(depth, len(p))
	}
	p.insert(i, headOf(key, p.prefix()), entry)
	p.set(offLast, i)
}

// split puts an entry before slot i of the page at a depth of the path, and makes two pages of it.
func (t *Tree) split(depth, i int, entry []byte) {
	s := newSplitting(t.arena, t.pageOn(depth), i, entry, t.ends)
	t.ends = s.ends
	cut := s.cut()
	var between []byte
	if s.page.leaf() {
		between = separator(s.key(cut-1), s.key(cut))
	} else {
		between = bytes.Clone(s.key(cut))
	}
	low, high := t.fences(depth)
	left := s.build(0, cut, prefixOf(low, between))
	right := s.build(cut, s.page.count()+1, prefixOf(between, high))
	t.freePage(t.path[depth].at)
	if depth == 0 {
		t.growRoot(left, between, right)
		return
	}
	t.relink(depth, left)
	t.insert(depth-1, t.path[depth-1].slot+1, between, childEntry(t.arena, between, right))
}

// growRoot puts a new root above two pages.
func (t *Tree) growRoot(left slab.Addr, between []byte, right slab.Addr) {
	l, r := childEntry(t.arena, nil, left), childEntry(t.arena, between, right)
	size := pageHeader + 2*pageSlot + len(l) + len(r)
	at, p := newPage(t.arena, pageAt(t.arena, left).level()+1, withSlack(size), 0)
	p.append(headOf(nil, 0), l)
	p.append(headOf(between, 0), r)
	p.set(offLast, 1)
	t.root = at
}

// rebuild gives the page at a depth of the path another size and returns it, without garbage.
func (t *Tree) rebuild(depth, size int) page {
	old := t.pageOn(depth)
	at, p := newPage(t.arena, old.level(), size, old.prefix())
	if old.get(offGarbage) == 0 {
		n := old.count()
		copy(p[pageHeader:], old[pageHeader:pageHeader+n*pageSlot])
		heap := old.get(offHeap)
		copy(p[len(p)-heap:], old[len(old)-heap:])
		p.set(offCount, n)
		p.set(offHeap, heap)
	} else {
		for i := range old.count() {
			p.append(old.head(i), old.entryBytes(i))
		}
	}
	p.set(offLast, old.get(offLast))
	t.fingers.move(t.path[depth].at, at)
	t.freePage(t.path[depth].at)
	t.relink(depth, at)
	return p
}

// relink makes the parent lead to another page at a depth of the path.
func (t *Tree) relink(depth int, at slab.Addr) {
	t.path[depth].at = at
	if depth == 0 {
		t.root = at
		return
	}
	e := parseEntry(t.pageOn(depth - 1).entry(t.path[depth-1].slot))
	putAddr(e.value(t.arena), at)
}

// fences returns the keys that enclose the page at a depth of the path; nil is an end of the tree.
func (t *Tree) fences(depth int) (low, high []byte) {
	for d := depth - 1; d >= 0; d-- {
		p, i := t.pageOn(d), t.path[d].slot
		if low == nil && i > 0 {
			low = p.key(t.arena, i)
		}
		if high == nil && i+1 < p.count() {
			high = p.key(t.arena, i+1)
		}
	}
	return low, high
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
		p = pageAt(t.arena, p.child(t.arena, p.childSlot(t.arena, key)))
	}
	i, found := p.search(t.arena, 0, key)
	if !found {
		return nil, 0, false
	}
	b := p.entry(i)
	if k, v, ok := shortSizes(b); ok {
		return b[2+k : 2+k+v : 2+k+v], 0, true
	}
	e := parseEntry(b)
	return e.value(t.arena), e.apart(), true
}

// reset empties the tree and makes it use a fresh arena. The caller holds the locks.
func (t *Tree) reset(fresh *slab.Arena) {
	t.cleared = append(t.cleared, t.arena)
	t.arena, t.root, t.count = fresh, 0, 0
	t.fingers.clear()
	t.leaves = t.leaves[:0]
}

// Bytes returns the bytes of memory that the tree occupies.
func (t *Tree) Bytes() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.arena.Used()
}
