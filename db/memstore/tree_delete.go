package memstore

import "gotycoon/db/memstore/slab"

const (
	mergeBelow = pageMax / 4     // a page with less is merged with a neighbour …
	mergeLimit = pageMax * 3 / 4 // … unless both together have more
)

// Delete removes a record.
func (t *Tree) Delete(key []byte) (existed bool) {
	t.writer.Lock()
	defer t.writer.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remove(key)
}

// remove removes a record. The caller holds the locks.
func (t *Tree) remove(key []byte) (existed bool) {
	if t.root == 0 {
		return false
	}
	p := t.descend(key)
	i, found := p.search(t.arena, 0, key)
	if !found {
		return false
	}
	t.count--
	t.removeEntry(p, i)
	p.set(offLast, noLast)
	t.tidy(len(t.path) - 1)
	return true
}

// removeEntry takes an entry out of a page, with its block.
func (t *Tree) removeEntry(p page, i int) {
	e := parseEntry(p.entry(i))
	e.freeApart(t.arena)
	p.remove(i, e.size)
}

// tidy restores what a page at a depth of the path must be after the removal of an entry: not
// empty, and not so small that it could be joined with a neighbour.
func (t *Tree) tidy(depth int) {
	p := t.pageOn(depth)
	switch {
	case p.count() == 0:
		t.removePage(depth)
	case depth == 0 && !p.leaf() && p.count() == 1:
		t.lowerRoot()
	case depth > 0 && p.live() < mergeBelow && t.merge(depth):
	case len(p) > pageMin && p.live() < len(p)/2:
		t.rebuild(depth, withSlack(p.live()))
	}
}

// removePage takes the empty page at a depth of the path out of the tree. Its neighbour gets its
// keys from now on.
func (t *Tree) removePage(depth int) {
	t.freePage(t.path[depth].at)
	if depth == 0 {
		t.root = 0
		return
	}
	parent, slot := t.pageOn(depth-1), t.path[depth-1].slot
	t.removeEntry(parent, slot)
	if parent.count() > 0 {
		rightmost := slot > 0
		if rightmost {
			slot--
		}
		t.path[depth-1].slot = slot
		t.widen(parent.child(t.arena, slot), prefixOf(t.fences(depth)), rightmost)
	}
	parent.set(offLast, noLast)
	t.tidy(depth - 1)
}

// widen shortens the prefix of the pages along an edge of a subtree, because keys with a shorter
// prefix may come to them.
func (t *Tree) widen(at slab.Addr, prefix int, rightmost bool) {
	for {
		p := pageAt(t.arena, at)
		if p.prefix() > prefix {
			p.set(offPrefix, prefix)
			for i := range p.count() {
				p.setHead(i, headOf(p.key(t.arena, i), prefix))
			}
		}
		if p.leaf() {
			return
		}
		slot := 0
		if rightmost {
			slot = p.count() - 1
		}
		at = p.child(t.arena, slot)
	}
}

// lowerRoot makes the only child of the root the root, as long as there is but one.
func (t *Tree) lowerRoot() {
	for {
		p := pageAt(t.arena, t.root)
		if p.leaf() || p.count() > 1 {
			return
		}
		child := p.child(t.arena, 0)
		t.removeEntry(p, 0)
		t.freePage(t.root)
		t.root = child
	}
}

// merge joins the page at a depth of the path with a neighbour of the same parent. It returns
// false, with nothing done, if no neighbour is small enough.
func (t *Tree) merge(depth int) bool {
	parent, slot := t.pageOn(depth-1), t.path[depth-1].slot
	size := t.pageOn(depth).live()
	fits := func(neighbour int) bool {
		return neighbour >= 0 && neighbour < parent.count() &&
			size+pageAt(t.arena, parent.child(t.arena, neighbour)).live() <= mergeLimit
	}
	switch {
	case fits(slot + 1):
		t.mergeAt(depth, slot)
	case fits(slot - 1):
		t.mergeAt(depth, slot-1)
	default:
		return false
	}
	return true
}

// mergeAt merges the children of slot and slot+1 of the page above a depth of the path.
func (t *Tree) mergeAt(depth, slot int) {
	parent := t.pageOn(depth - 1)
	left, right := parent.child(t.arena, slot), parent.child(t.arena, slot+1)
	t.path[depth-1].slot = slot + 1
	_, high := t.fences(depth)
	t.path[depth-1].slot = slot
	low, _ := t.fences(depth)
	merged := t.join(pageAt(t.arena, left), pageAt(t.arena, right), parent.key(t.arena, slot+1), prefixOf(low, high))
	t.freePage(left)
	t.freePage(right)
	t.relink(depth, merged)
	t.removeEntry(parent, slot+1)
	parent.set(offLast, noLast)
	t.tidy(depth - 1)
}

// join makes a page with the entries of two pages. between is the key that leads to the right one.
func (t *Tree) join(left, right page, between []byte, prefix int) slab.Addr {
	size := left.live() + right.live() + maxEntry
	at, p := newPage(t.arena, left.level(), withSlack(size), prefix)
	for i := range left.count() {
		p.append(headOf(left.key(t.arena, i), prefix), left.entryBytes(i))
	}
	first := 0
	if !right.leaf() { // slot 0 of an inner page has no key that counts, but here it will not be slot 0
		p.append(headOf(between, prefix), childEntry(t.arena, between, right.child(t.arena, 0)))
		e := parseEntry(right.entry(0))
		e.freeApart(t.arena)
		first = 1
	}
	for i := first; i < right.count(); i++ {
		p.append(headOf(right.key(t.arena, i), prefix), right.entryBytes(i))
	}
	return at
}
