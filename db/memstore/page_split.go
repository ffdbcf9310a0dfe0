package memstore

import (
	"bytes"
	"sort"

	"gotycoon/db/memstore/slab"
)

// A splitting is a page with one more entry than it can hold, as a row of count+1 entries.
type splitting struct {
	arena *slab.Arena
	page  page
	slot  int // of the additional entry
	entry []byte
	ends  []int // bytes that entries and slots take, up to and with each one
}

// newSplitting returns a splitting whose ends may take the memory of room.
func newSplitting(a *slab.Arena, p page, slot int, entry []byte, room []int) splitting {
	s := splitting{arena: a, page: p, slot: slot, entry: entry, ends: room[:0]}
	sum := 0
	for i := range p.count() + 1 {
		e := parseEntry(s.at(i))
		sum += pageSlot + e.size
		s.ends = append(s.ends, sum)
	}
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
	return e.key(s.arena)
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
	at, p := newPage(s.arena, s.page.level(), withSlack(s.need(from, to)), prefix)
	for i := from; i < to; i++ {
		b := s.at(i)
		e := parseEntry(b)
		p.append(headOf(e.key(s.arena), prefix), b[:e.size])
	}
	if from <= s.slot && s.slot < to {
		p.set(offLast, s.slot-from)
	}
	return at
}

// separator returns a key that is behind a and not behind b, to lead to pages that end with a and
// begin with b. It is the shortest such key in byte order.
func separator(a, b []byte) []byte {
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return bytes.Clone(b[:n+1])
}

// prefixOf returns the length of the prefix that all keys between two fences have.
func prefixOf(low, high []byte) int {
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

// childEntry returns the entry of an inner page for a child.
func childEntry(a *slab.Arena, key []byte, child slab.Addr) []byte {
	var value [addrSize]byte
	putAddr(value[:], child)
	return appendEntry(nil, key, value[:], makeApart(a, key, value[:]))
}
