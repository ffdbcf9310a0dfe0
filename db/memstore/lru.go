package memstore

import "gotycoon/db/memstore/slab"

// A record of a Cache begins with the addresses of the next newer and the next older record of its slot, 5 bytes each,
// little-endian.
const (
	linkSize  = slab.AddrBits / 8
	linkBytes = 2 * linkSize

	newer = 0
	older = linkSize
)

// lru is a list of records in the order of their last use.
type lru struct{ newest, oldest slab.Addr }

// add makes a record that is in no list the newest.
func (l *lru) add(a *slab.Arena, at slab.Addr) {
	setLink(a, at, newer, 0)
	setLink(a, at, older, l.newest)
	if l.newest != 0 {
		setLink(a, l.newest, newer, at)
	} else {
		l.oldest = at
	}
	l.newest = at
}

// drop takes a record out of the list.
func (l *lru) drop(a *slab.Arena, at slab.Addr) {
	n, o := link(a, at, newer), link(a, at, older)
	if n != 0 {
		setLink(a, n, older, o)
	} else {
		l.newest = o
	}
	if o != 0 {
		setLink(a, o, newer, n)
	} else {
		l.oldest = n
	}
}

// touch makes a record of the list the newest.
func (l *lru) touch(a *slab.Arena, at slab.Addr) {
	if l.newest != at {
		l.drop(a, at)
		l.add(a, at)
	}
}

func link(a *slab.Arena, at slab.Addr, which int) slab.Addr {
	return getAddr(a.Bytes(at)[which:])
}

func setLink(a *slab.Arena, at slab.Addr, which int, to slab.Addr) {
	putAddr(a.Bytes(at)[which:], to)
}

func getAddr(b []byte) slab.Addr {
	_ = b[4]
	return slab.Addr(b[0]) | slab.Addr(b[1])<<8 | slab.Addr(b[2])<<16 | slab.Addr(b[3])<<24 | slab.Addr(b[4])<<32
}

func putAddr(b []byte, at slab.Addr) {
	_ = b[4]
	b[0], b[1], b[2], b[3], b[4] = byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(at>>32)
}
