package memstore

import (
	"bytes"

	"gotycoon/db/memstore/slab"
)

// Put stores a record.
func (t *Tree) Put(key, value []byte) { t.Replace(key, value) }

// Replace stores a record and returns the first byte (0 if it is empty) and the size of the value
// that it replaces.
func (t *Tree) Replace(key, value []byte) (first byte, size int, existed bool) {
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

// putJoined is put for a value in two parts that is not inline.
func (t *Tree) putJoined(key, head, tail []byte) (first byte, size int, existed bool) {
	t.scratch = appendJoined(t.scratch[:0], t.arena, key, head, tail)
	return t.putScratch(key)
}

// putScratch stores the entry in t.scratch, whose key is key.
func (t *Tree) putScratch(key []byte) (first byte, size int, existed bool) {
	if t.root == 0 {
		t.root, _ = newPage(t.arena, 0, pageMin, 0)
	}
	p := t.descend(key)
	i, found := t.search(p, 0, key)
	if !found {
		t.count++
		t.insert(len(t.path)-1, i, key, t.scratch)
		return 0, 0, false
	}
	e := parseEntry(p.entry(i))
	if old := e.value(t.arena); len(old) > 0 {
		first, size = old[0], len(old)
	}
	t.freeApart(&e)
	t.overwrite(p, i, e.size, key)
	return first, size, true
}

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

func (t *Tree) freeApart(e *entry) {
	if at := e.apart(); at != 0 {
		t.arena.Free(at)
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
		i := t.childSlot(p, key)
		t.path = append(t.path, pathStep{at, i})
		at = t.child(p, i)
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

// withSlack adds room for entries to come: less than a sixteenth would mean a rebuild for every few
// inserts, more would be wasted in most pages.
func withSlack(size int) int { return min(size+size/16, pageMax) }

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
			p.append(old.head(i), entryBytes(old, i))
		}
	}
	p.set(offLast, old.get(offLast))
	t.arena.Free(t.path[depth].at)
	t.relink(depth, at)
	return p
}

func entryBytes(p page, i int) []byte {
	b := p.entry(i)
	e := parseEntry(b)
	return b[:e.size]
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
			low = t.key(p, i)
		}
		if high == nil && i+1 < p.count() {
			high = t.key(p, i+1)
		}
	}
	return low, high
}

// prefixOf returns the length of the prefix that all keys between two fences have.
func (t *Tree) prefixOf(low, high []byte) int {
	if low == nil || high == nil {
		return 0
	}
	return commonPrefix(low, high)
}

// commonPrefix returns at most what a page's header can hold.
func commonPrefix(a, b []byte) int {
	n := 0
	for limit := min(len(a), len(b), 1<<16-1); n < limit && a[n] == b[n]; n++ {
	}
	return n
}

// separator returns a key that is behind a and not behind b, to lead to pages that end with a and
// begin with b. It is the shortest such key in byte order.
func (t *Tree) separator(a, b []byte) []byte {
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return bytes.Clone(b[:n+1])
}
