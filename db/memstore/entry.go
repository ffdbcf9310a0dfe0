package memstore

import (
	"encoding/binary"

	"gotycoon/db/memstore/slab"
	"gotycoon/internal/pieces"
)

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
