package memstore

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

const (
	tableBits  = 10
	tableCount = 1 << tableBits
)

// An index finds records by key in 1024 tables, chosen by the highest bits of the hash. With ten
// million records a table has ten thousand slots, so that growing a table takes some 30 µs.
//
// The order of records is that of (64-bit hash, key). The index has no locks: its owner guards each
// table, the arena and all changes.
type index struct {
	seed   maphash.Seed
	links  int // bytes in front of each record that belong to the owner
	arena  *slab.Arena
	tables [tableCount]table
}

func newIndex(links int) *index {
	return &index{seed: maphash.MakeSeed(), links: links, arena: slab.New()}
}

func (x *index) hash(key []byte) uint64 { return maphash.Bytes(x.seed, key) }

// place appends the key in a form that is ordered by bytes as the index orders keys.
func (x *index) place(dst, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, x.hash(key)), key...)
}

// tableOf returns the number of the table for a hash.
func tableOf(hash uint64) int { return int(hash >> (64 - tableBits)) }

// fragOf returns the part of a hash that slots hold: the bits that follow the table's number.
func fragOf(hash uint64) uint64 { return hash << tableBits >> slab.AddrBits }

// record returns the parts of a record; they are valid as long as the record lives.
func (x *index) record(at slab.Addr) (key, value []byte) {
	return parseRecord(x.arena.Bytes(at)[x.links:])
}

// blockSize returns the memory that a record takes.
func (x *index) blockSize(at slab.Addr) int64 {
	key, value := x.record(at)
	return int64(slab.Round(x.links + recordSize(key, value)))
}

// A record of a hash table is a block of
//
//	┌───────────────┬─────────────────┬───────────────────┬─────┬───────┐
//	│ links (Cache) │ uvarint: key    │ uvarint: value    │ key │ value │
//	│ 10 bytes      │ size            │ size              │     │       │
//	└───────────────┴─────────────────┴───────────────────┴─────┴───────┘

// A record of a Cache begins with the addresses of the next newer and the next older record of its
// slot, 5 bytes each, little-endian.
const (
	linkSize  = slab.AddrBits / 8
	linkBytes = 2 * linkSize

	newer = 0
	older = linkSize
)

func link(a *slab.Arena, at slab.Addr, which int) slab.Addr {
	return getAddr(a.Bytes(at)[which:])
}

func setLink(a *slab.Arena, at slab.Addr, which int, to slab.Addr) {
	putAddr(a.Bytes(at)[which:], to)
}

// recordSize returns the size of a record without links.
func recordSize(key, value []byte) int {
	return uvarintSize(len(key)) + uvarintSize(len(value)) + len(key) + len(value)
}

// putRecord writes a record without links.
func putRecord(block, key, value []byte) {
	n := binary.PutUvarint(block, uint64(len(key)))
	n += binary.PutUvarint(block[n:], uint64(len(value)))
	n += copy(block[n:], key)
	pieces.Copy(block[n:], value)
}

// parseRecord returns the parts of a record without links. Their capacity ends with them.
func parseRecord(block []byte) (key, value []byte) {
	keySize, valueSize, n := recordSizes(block)
	end := n + keySize + valueSize
	return block[n : n+keySize : n+keySize], block[n+keySize : end : end]
}

// recordSizes returns the sizes of the parts and where the key begins. Most records have sizes of
// one byte each.
func recordSizes(block []byte) (keySize, valueSize, n int) {
	if block[0] < 0x80 && block[1] < 0x80 {
		return int(block[0]), int(block[1]), 2
	}
	k, n := binary.Uvarint(block)
	v, m := binary.Uvarint(block[n:])
	return int(k), int(v), n + m
}

// uvarintSize returns the number of bytes that n takes as a uvarint.
func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// get returns the record with key, 0 where there is none.
func (x *index) get(hash uint64, key []byte) slab.Addr {
	t := &x.tables[tableOf(hash)]
	if len(t.slots) == 0 {
		return 0
	}
	frag := fragOf(hash)
	for i := t.first(frag); ; i++ {
		s := t.slot(i)
		if s == 0 || s>>slab.AddrBits != frag {
			return 0
		}
		if k, _ := x.record(slab.Addr(s & addrMask)); bytes.Equal(k, key) {
			return slab.Addr(s & addrMask)
		}
	}
}

// seek returns the slot of the record with key, or the slot of the first record behind the key's
// place.
func (x *index) seek(t *table, hash uint64, key []byte) (i int, found bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	frag := fragOf(hash)
	for i = t.first(frag); ; i++ {
		s := t.slot(i)
		if s == 0 || s>>slab.AddrBits != frag {
			return i, false
		}
		if c := x.compare(slab.Addr(s&addrMask), hash, key); c >= 0 {
			return i, c == 0
		}
	}
}

// compare compares a record with a place of the order. The hash is needed only where fragments
// coincide.
func (x *index) compare(at slab.Addr, hash uint64, key []byte) int {
	k, _ := x.record(at)
	if bytes.Equal(k, key) {
		return 0
	}
	if h := x.hash(k); h != hash {
		if h < hash {
			return -1
		}
		return 1
	}
	return bytes.Compare(k, key)
}

// put makes the index refer to the record at, and returns the record that it replaces, 0 for none.
func (x *index) put(hash uint64, key []byte, at slab.Addr) (old slab.Addr) {
	t := &x.tables[tableOf(hash)]
	s := fragOf(hash)<<slab.AddrBits | uint64(at)
	i, found := x.seek(t, hash, key)
	if found {
		old = slab.Addr(t.slot(i) & addrMask)
		t.setSlot(i, s)
		return old
	}
	if t.crowded() {
		t.grow(x.arena)
		i, _ = x.seek(t, hash, key)
	}
	for !t.insert(i, s) {
		t.lengthen(x.arena)
		i, _ = x.seek(t, hash, key)
	}
	return 0
}

// remove takes the record with key out of the index and returns it, 0 for none.
func (x *index) remove(hash uint64, key []byte) slab.Addr {
	t := &x.tables[tableOf(hash)]
	i, found := x.seek(t, hash, key)
	if !found {
		return 0
	}
	at := slab.Addr(t.slot(i) & addrMask)
	t.remove(i)
	switch {
	case t.n == 0:
		t.free(x.arena)
	case t.sparse():
		t.resize(x.arena, t.n*3/2)
	}
	return at
}

// reset empties the index and makes it use a fresh arena. It returns the old arena, for the owner
// to release.
func (x *index) reset(fresh *slab.Arena) *slab.Arena {
	old := x.arena
	x.arena = fresh
	x.tables = [tableCount]table{}
	return old
}

// scanBatch is the number of records visited under one lock. A scan of a whole table would make its
// writer, and the readers behind the writer, wait for a millisecond.
const scanBatch = 128

// tableLocker lets a scan lock the table it looks at.
type tableLocker interface {
	rlock(table int)
	runlock(table int)
}

// A position is a place in an index's order, between two records or on a record.
type position struct {
	table int
	hash  uint64
	key   []byte
	first bool // at the first record of the table; hash and key do not count
	at    bool // on the record with the key rather than behind it
}

// scan visits the records from a place of the order until visit returns false.
func (x *index) scan(l tableLocker, from store.Start, visit func(key, value []byte) bool) {
	p := position{first: true}
	if !from.Edge {
		hash := x.hash(from.Key)
		p = position{table: tableOf(hash), hash: hash, key: append([]byte(nil), from.Key...), at: from.Inclusive}
	}
	for p.table < tableCount && x.scanBatch(l, &p, visit) {
	}
}

// scanBatch visits some records of one table and moves the position behind them. It returns false
// when visit did.
func (x *index) scanBatch(l tableLocker, p *position, visit func(key, value []byte) bool) bool {
	l.rlock(p.table)
	defer l.runlock(p.table)
	t := &x.tables[p.table]
	i, s := t.next(x.slotAt(t, p))
	for n := 1; s != 0; n++ {
		key, value := x.record(slab.Addr(s & addrMask))
		if n == scanBatch { // the position's key is copied before visit can change anything
			p.hash, p.key = x.hash(key), append(p.key[:0], key...)
			p.first, p.at = false, false
			return visit(key, value)
		}
		if !visit(key, value) {
			return false
		}
		i, s = t.next(i + 1)
	}
	*p = position{table: p.table + 1, first: true, key: p.key}
	return true
}

// slotAt returns the slot where a position's records begin.
func (x *index) slotAt(t *table, p *position) int {
	if p.first {
		return 0
	}
	i, found := x.seek(t, p.hash, p.key)
	if found && !p.at {
		i++
	}
	return i
}
