package memstore

import (
	"bytes"
	"encoding/binary"
	"math"

	"gotycoon/db/memstore/slab"
	"gotycoon/internal/pieces"
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

func (p page) get(off int) int { return int(binary.LittleEndian.Uint16(p[off:])) }

func (p page) set(off int, v int) { binary.LittleEndian.PutUint16(p[off:], uint16(v)) }

func (p page) leaf() bool { return p[offLevel] == 0 }

func (p page) level() int { return p.get(offLevel) }

func (p page) count() int { return p.get(offCount) }

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

// entryBytes returns entry i alone.
func (p page) entryBytes(i int) []byte {
	b := p.entry(i)
	e := parseEntry(b)
	return b[:e.size]
}

// key returns the key of slot i.
func (p page) key(a *slab.Arena, i int) []byte {
	b := p.entry(i)
	if k, _, ok := shortSizes(b); ok {
		return b[2 : 2+k : 2+k]
	}
	e := parseEntry(b)
	return e.key(a)
}

// child returns the page that slot i of an inner page leads to.
func (p page) child(a *slab.Arena, i int) slab.Addr {
	b := p.entry(i)
	if k, _, ok := shortSizes(b); ok {
		return getAddr(b[2+k:])
	}
	e := parseEntry(b)
	return getAddr(e.value(a))
}

// search returns the first slot, from a given one on, whose key is not before key, and whether it
// is that key.
func (p page) search(a *slab.Arena, from int, key []byte) (slot int, found bool) {
	head, n := headOf(key, p.prefix()), p.count()
	i := p.firstHead(from, n, head)
	if i == n || p.head(i) != head {
		return i, false
	}
	if c := bytes.Compare(p.key(a, i), key); c >= 0 {
		return i, c == 0
	}
	if head < math.MaxUint32 { // slots with the same head
		n = p.firstHead(i+1, n, head+1)
	}
	return p.searchTied(a, i+1, n, key)
}

// searchNear is search for a key that most likely belongs behind the last insert, as in leaves that
// fingers point at.
func (p page) searchNear(a *slab.Arena, from int, key []byte) (slot int, found bool) {
	last, n := p.get(offLast), p.count()
	if last < from || last >= n {
		return p.search(a, from, key)
	}
	switch c := bytes.Compare(p.key(a, last), key); {
	case c == 0:
		return last, true
	case c > 0:
		return p.search(a, from, key)
	}
	if last++; last == n {
		return n, false
	}
	if c := bytes.Compare(p.key(a, last), key); c >= 0 {
		return last, c == 0
	}
	return p.search(a, last+1, key)
}

// searchTied is search among the slots from ≤ i < to, whose heads are the key's. It looks at the
// place of the last insert and the next first: there is the place of keys that come in order, as
// journals do, whose heads often say nothing at the end of a tree, where pages have no prefix.
func (p page) searchTied(a *slab.Arena, from, to int, key []byte) (slot int, found bool) {
	if last := p.get(offLast); from <= last && last < to {
		c := bytes.Compare(p.key(a, last), key)
		if c < 0 && last+1 < to {
			from = last + 1
			c = bytes.Compare(p.key(a, from), key)
			last = from
		}
		switch {
		case c == 0:
			return last, true
		case c < 0:
			from = last + 1
		default:
			to = last
		}
	}
	for from < to {
		half := int(uint(from+to) / 2)
		switch c := bytes.Compare(p.key(a, half), key); {
		case c == 0:
			return half, true
		case c < 0:
			from = half + 1
		default:
			to = half
		}
	}
	return from, false
}

// firstHead returns the first slot of from ≤ i < to whose head is at least head, and to where there
// is none. A branch on each comparison would be guessed wrong every second time, so the outcome is
// computed: less is -1 for a smaller head, otherwise 0.
func (p page) firstHead(from, to int, head uint32) int {
	n := to - from
	for n > 1 {
		half := n >> 1
		less := int((int64(p.head(from+half-1)) - int64(head)) >> 63)
		from += half & less
		n -= half
	}
	if n == 1 && p.head(from) < head {
		from++
	}
	return from
}

// childSlot returns the slot of the child that a key belongs to.
func (p page) childSlot(a *slab.Arena, key []byte) int {
	i, found := p.search(a, 1, key)
	if found {
		return i
	}
	return i - 1
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

// withSlack adds room for entries to come: less than a sixteenth would mean a rebuild for every few
// inserts, more would be wasted in most pages.
func withSlack(size int) int { return min(size+size/16, pageMax) }

// pageAt returns the page with an address.
func pageAt(a *slab.Arena, at slab.Addr) page {
	b := a.Bytes(at)
	size := int(binary.LittleEndian.Uint16(b[offSize:]))
	return page(b[:size:size])
}

// An entryKind is a form of an entry, which is what a page holds for a key. In a leaf the entry's
// value is the record's, elsewhere the address of a child page in 5 bytes.
//
//	inline       uvarint: key size × 4      uvarint: value size   key   value
//	valueApart   uvarint: key size × 4 + 1  uvarint: value size   key   address of the value's block
//	bothApart    uvarint: key size × 4 + 2  uvarint: value size         address of a block with both
type entryKind int

const (
	inline entryKind = iota
	valueApart
	bothApart
)

const (
	addrSize  = slab.AddrBits / 8
	maxInline = 256 // bytes of key and value together in an inline entry; of the key in valueApart
	maxEntry  = maxInline + addrSize + 16
)

// An entry is a parsed entry.
type entry struct {
	kind    entryKind
	size    int // bytes in the page
	keySize int
	valSize int
	body    []byte // what follows the sizes
}

// shortSizes returns the sizes in an inline entry whose sizes take a byte each, as in most. ok is
// false for other entries.
func shortSizes(b []byte) (key, value int, ok bool) {
	return int(b[0] >> 2), int(b[1]), (b[0]&0x83 | b[1]&0x80) == 0
}

func parseEntry(b []byte) entry {
	var tag, val uint64
	n := 2
	if b[0] < 0x80 && b[1] < 0x80 { // most have a key below 32 and a value below 128 bytes
		tag, val = uint64(b[0]), uint64(b[1])
	} else {
		var m int
		tag, n = binary.Uvarint(b)
		val, m = binary.Uvarint(b[n:])
		n += m
	}
	e := entry{kind: entryKind(tag & 3), keySize: int(tag >> 2), valSize: int(val)}
	var body int
	switch e.kind {
	case inline:
		body = e.keySize + e.valSize
	case valueApart:
		body = e.keySize + addrSize
	case bothApart:
		body = addrSize
	}
	e.size = n + body
	e.body = b[n:e.size]
	return e
}

// apart returns the address of the entry's block, 0 if it has none.
func (e *entry) apart() slab.Addr {
	switch e.kind {
	case valueApart:
		return getAddr(e.body[e.keySize:])
	case bothApart:
		return getAddr(e.body)
	}
	return 0
}

// freeApart frees the entry's block, if it has one.
func (e *entry) freeApart(a *slab.Arena) {
	if at := e.apart(); at != 0 {
		a.Free(at)
	}
}

func (e *entry) key(a *slab.Arena) []byte {
	if e.kind == bothApart {
		return a.Bytes(getAddr(e.body))[:e.keySize:e.keySize]
	}
	return e.body[:e.keySize:e.keySize]
}

func (e *entry) value(a *slab.Arena) []byte {
	b := e.body
	switch e.kind {
	case inline:
		b = b[e.keySize:]
	case valueApart:
		b = a.Bytes(getAddr(b[e.keySize:]))
	case bothApart:
		b = a.Bytes(getAddr(b))[e.keySize:]
	}
	return b[:e.valSize:e.valSize]
}

// kindFor returns how a record is kept.
func kindFor(key, value []byte) entryKind {
	switch {
	case len(key)+len(value) <= maxInline:
		return inline
	case len(key) <= maxInline:
		return valueApart
	}
	return bothApart
}

// makeApart allocates and fills the block that an entry for the record needs, and returns 0 if it
// needs none.
func makeApart(a *slab.Arena, key, value []byte) slab.Addr {
	switch kindFor(key, value) {
	case valueApart:
		at := a.Alloc(len(value))
		pieces.Copy(a.Bytes(at), value)
		return at
	case bothApart:
		at := a.Alloc(len(key) + len(value))
		b := a.Bytes(at)
		pieces.Copy(b[copy(b, key):], value)
		return at
	}
	return 0
}

// appendEntry appends the entry of a record whose block, if it needs one, has been made.
func appendEntry(dst, key, value []byte, apart slab.Addr) []byte {
	kind := kindFor(key, value)
	dst = binary.AppendUvarint(dst, uint64(len(key))<<2|uint64(kind))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	switch kind {
	case inline:
		return append(append(dst, key...), value...)
	case valueApart:
		return appendAddr(append(dst, key...), apart)
	}
	return appendAddr(dst, apart)
}

// appendJoined allocates and fills the block of a record whose value comes in two parts, together
// longer than an inline value, and appends the record's entry.
func appendJoined(dst []byte, a *slab.Arena, key, head, tail []byte) []byte {
	kind, inBlock := valueApart, []byte(nil)
	if len(key) > maxInline {
		kind, inBlock = bothApart, key
	}
	at := a.Alloc(len(inBlock) + len(head) + len(tail))
	b := a.Bytes(at)
	n := copy(b, inBlock)
	n += copy(b[n:], head)
	pieces.Copy(b[n:], tail)
	dst = binary.AppendUvarint(dst, uint64(len(key))<<2|uint64(kind))
	dst = binary.AppendUvarint(dst, uint64(len(head)+len(tail)))
	if kind == valueApart {
		dst = append(dst, key...)
	}
	return appendAddr(dst, at)
}

// appendMade appends the entry of a record whose value, of a given size, is in a block.
func appendMade(dst, key []byte, size int, at slab.Addr) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key))<<2|uint64(valueApart))
	dst = binary.AppendUvarint(dst, uint64(size))
	return appendAddr(append(dst, key...), at)
}

func appendAddr(dst []byte, at slab.Addr) []byte {
	dst = append(dst, make([]byte, addrSize)...)
	putAddr(dst[len(dst)-addrSize:], at)
	return dst
}

func getAddr(b []byte) slab.Addr {
	_ = b[4]
	return slab.Addr(b[0]) | slab.Addr(b[1])<<8 | slab.Addr(b[2])<<16 | slab.Addr(b[3])<<24 | slab.Addr(b[4])<<32
}

func putAddr(b []byte, at slab.Addr) {
	_ = b[4]
	b[0], b[1], b[2], b[3], b[4] = byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(at>>32)
}
