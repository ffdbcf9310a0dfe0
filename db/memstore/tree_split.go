package memstore

import (
	"bytes"
	"sort"

	"gotycoon/db/memstore/slab"
)

// A splitting is a page with one more entry than it can hold, as a row of count+1 entries.
type splitting struct {
	tree  *Tree
	page  page
	slot  int // of the additional entry
	entry []byte
	ends  []int // bytes that entries and slots take, up to and with each one
}

func (t *Tree) newSplitting(p page, slot int, entry []byte) splitting {
	s := splitting{tree: t, page: p, slot: slot, entry: entry, ends: t.ends[:0]}
	sum := 0
	for i := range p.count() + 1 {
		e := parseEntry(s.at(i))
		sum += pageSlot + e.size
		s.ends = append(s.ends, sum)
	}
	t.ends = s.ends
	return s
}

// at returns the bytes from entry i on.
func (s *splitting) at(i int) []byte {
	switch {
	case i == s.slot:
		return s.entry
	case i > s.slot:
		i--
	}
	return s.page.entry(i)
}

func (s *splitting) key(i int) []byte {
	e := parseEntry(s.at(i))
	return e.key(s.tree.arena)
}

// need returns the size of a page for entries from ≤ i < to.
func (s *splitting) need(from, to int) int {
	size := pageHeader + s.ends[to-1]
	if from > 0 {
		size -= s.ends[from-1]
	}
	return size
}

// cut returns the number of entries for the left page. Ascending inserts leave a full page behind
// and go on in the next page, descending ones likewise; others get two halves.
func (s *splitting) cut() int {
	n := s.page.count()
	cut := 0
	switch last := s.page.get(offLast); {
	case s.slot == last+1:
		cut = min(s.slot+1, n)
	case s.slot == last:
		cut = max(s.slot, 1)
	}
	if cut > 0 && s.need(0, cut) <= pageMax && s.need(cut, n+1) <= pageMax {
		return cut
	}
	half := sort.SearchInts(s.ends, s.ends[n]/2)
	return min(half+1, n)
}

// build makes a page of entries from ≤ i < to.
func (s *splitting) build(from, to, prefix int) slab.Addr {
	t := s.tree
	at, p := newPage(t.arena, s.page.level(), withSlack(s.need(from, to)), prefix)
	for i := from; i < to; i++ {
		b := s.at(i)
		e := parseEntry(b)
		p.append(headOf(e.key(t.arena), prefix), b[:e.size])
	}
	if from <= s.slot && s.slot < to {
		p.set(offLast, s.slot-from)
	}
	return at
}

// split puts an entry before slot i of the page at a depth of the path, and makes two pages of it.
func (t *Tree) split(depth, i int, entry []byte) {
	s := t.newSplitting(t.pageOn(depth), i, entry)
	cut := s.cut()
	var between []byte
	if s.page.leaf() {
		between = t.separator(s.key(cut-1), s.key(cut))
	} else {
		between = bytes.Clone(s.key(cut))
	}
	low, high := t.fences(depth)
	left := s.build(0, cut, t.prefixOf(low, between))
	right := s.build(cut, s.page.count()+1, t.prefixOf(between, high))
	t.arena.Free(t.path[depth].at)
	if depth == 0 {
		t.growRoot(left, between, right)
		return
	}
	t.relink(depth, left)
	t.insert(depth-1, t.path[depth-1].slot+1, between, t.childEntry(between, right))
}

// growRoot puts a new root above two pages.
func (t *Tree) growRoot(left slab.Addr, between []byte, right slab.Addr) {
	l, r := t.childEntry(nil, left), t.childEntry(between, right)
	size := pageHeader + 2*pageSlot + len(l) + len(r)
	at, p := newPage(t.arena, pageAt(t.arena, left).level()+1, withSlack(size), 0)
	p.append(headOf(nil, 0), l)
	p.append(headOf(between, 0), r)
	p.set(offLast, 1)
	t.root = at
}

// childEntry returns the entry of an inner page for a child.
func (t *Tree) childEntry(key []byte, child slab.Addr) []byte {
	var value [addrSize]byte
	putAddr(value[:], child)
	return appendEntry(nil, key, value[:], makeApart(t.arena, key, value[:]))
}
