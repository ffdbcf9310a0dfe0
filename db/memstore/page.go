package memstore

import (
	"encoding/binary"

	"gotycoon/db/memstore/slab"
)

// A page is a node of a Tree:
//
//	offset  0       2       4      6         8      10       12     14
//	        ┌───────┬───────┬──────┬─────────┬──────┬────────┬──────┬─────────┬─────┬─────────────────┐
//	        │ level │ count │ heap │ garbage │ size │ prefix │ last │ slots → │ gap │ ← heap: entries │
//	        └───────┴───────┴──────┴─────────┴──────┴────────┴──────┴─────────┴─────┴─────────────────┘
//
//	level    0 is a leaf; the children of a page have a level one less
//	count    slots
//	heap     bytes in the heap, garbage included
//	garbage  bytes of removed entries in the heap
//	size     of the page: it grows and shrinks with its content, so that a tree has little slack
//	prefix   number of bytes that are the same in all keys that belong here, left out of heads
//	last     slot of the last insert, to recognise ascending and descending inserts
//
// A slot is the head of the key and, in two bytes, where the entry begins, counted from the end of
// the page. The head is the key's first four bytes behind the prefix in big-endian order (0 bytes
// where the key is shorter). Slots are in key order. Heads decide most comparisons without a look
// at the entry.
//
// All numbers but the head are little-endian.
type page []byte

const (
	pageHeader = 14
	pageSlot   = 6
	pageMin    = 64
	pageMax    = 8 << 10

	offLevel, offCount, offHeap, offGarbage, offSize, offPrefix, offLast = 0, 2, 4, 6, 8, 10, 12
)

func (p page) get(off int) int    { return int(binary.LittleEndian.Uint16(p[off:])) }
func (p page) set(off int, v int) { binary.LittleEndian.PutUint16(p[off:], uint16(v)) }

func (p page) leaf() bool  { return p[offLevel] == 0 }
func (p page) level() int  { return p.get(offLevel) }
func (p page) count() int  { return p.get(offCount) }
func (p page) prefix() int { return p.get(offPrefix) }

// live returns the bytes that the page must have to hold its content.
func (p page) live() int {
	return pageHeader + p.count()*pageSlot + p.get(offHeap) - p.get(offGarbage)
}

// gap returns the bytes between slots and heap.
func (p page) gap() int {
	return len(p) - pageHeader - p.count()*pageSlot - p.get(offHeap)
}

func (p page) head(i int) uint32 {
	return binary.LittleEndian.Uint32(p[pageHeader+i*pageSlot:])
}

func (p page) setHead(i int, head uint32) {
	binary.LittleEndian.PutUint32(p[pageHeader+i*pageSlot:], head)
}

// entry returns the page from entry i on.
func (p page) entry(i int) []byte {
	return p[len(p)-p.get(pageHeader+i*pageSlot+4):]
}

// insert adds an entry, for which there must be a gap, before slot i.
func (p page) insert(i int, head uint32, entry []byte) {
	heap := p.get(offHeap) + len(entry)
	copy(p[len(p)-heap:], entry)
	n := p.count()
	at := pageHeader + i*pageSlot
	copy(p[at+pageSlot:], p[at:pageHeader+n*pageSlot])
	p.setHead(i, head)
	p.set(at+4, heap)
	p.set(offHeap, heap)
	p.set(offCount, n+1)
}

// remove takes out slot i, whose entry has the given size.
func (p page) remove(i, size int) {
	n := p.count()
	at := pageHeader + i*pageSlot
	copy(p[at:], p[at+pageSlot:pageHeader+n*pageSlot])
	p.set(offCount, n-1)
	p.set(offGarbage, p.get(offGarbage)+size)
}

// append adds an entry behind the others.
func (p page) append(head uint32, entry []byte) { p.insert(p.count(), head, entry) }

// headOf returns the head of a key behind a prefix.
func headOf(key []byte, prefix int) uint32 {
	if len(key) >= prefix+4 {
		return binary.BigEndian.Uint32(key[prefix:])
	}
	var b [4]byte
	if len(key) > prefix {
		copy(b[:], key[prefix:])
	}
	return binary.BigEndian.Uint32(b[:])
}

// newPage allocates an empty page with room for at least size bytes, at most pageMax.
func newPage(a *slab.Arena, level, size, prefix int) (slab.Addr, page) {
	size = slab.Round(min(max(size, pageMin), pageMax))
	at := a.Alloc(size)
	p := page(a.Bytes(at)[:size:size])
	clear(p[:pageHeader])
	p.set(offLevel, level)
	p.set(offSize, size)
	p.set(offPrefix, prefix)
	p.set(offLast, noLast)
	return at, p
}

// noLast is no slot, and not next to a slot.
const noLast = 1<<16 - 2

// pageAt returns the page with an address.
func pageAt(a *slab.Arena, at slab.Addr) page {
	b := a.Bytes(at)
	size := int(binary.LittleEndian.Uint16(b[offSize:]))
	return page(b[:size:size])
}
