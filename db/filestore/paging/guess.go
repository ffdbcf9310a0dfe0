package paging

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// Guess returns the first element of a leaf in which a lookup of a name may find what it looks for,
// where that is more likely than not. Without a guess ok is false.
//
// Packages that keep blocks name each after its last key, and look for the first name that is not
// less than a key. bbolt's branch pages have the first name of each leaf. So a key between the last
// name of a leaf and the first name of the next one leads bbolt to the first of the two, where it
// finds nothing, and then to the second:
//
//	branch        c               h               m
//	leaves    [ a─c  d─e ]    [ f─h  i─k ]    [ l─m …
//
// The names of the blocks are c, e, h, k and m. Of the keys between c and h, d is in the leaf of c,
// and g is not; bbolt begins in the leaf of c for both.
//
// With two blocks in a leaf that happens to every other key, and when the leaves are not in memory,
// it is 1.5 reads of the disk for a lookup. Nothing in memory says where the leaf of c ends. But
// the two blocks between c and h are about equally large, so a key in the upper half of what is
// between the two names is probably in the second block. Looking there first makes it 1.0 to 1.2
// reads where keys are spread evenly, as random ones are, and as numbers are, from name to name.
// Where they are not, the guess is wrong more often, and the lookup begins in the leaf of c after
// all.
//
// The caller finds out whether the guess was right: a block whose first key is not greater than the
// key that is looked for has that key, or nothing has.
//
// Rejected: to name blocks after their first key, which would need no guess. All files that there
// are would have to be written anew.
//
// Guess reads the leaf of which it returns the element. Where the disk cannot read the page, that
// is a fault, see debug.SetPanicOnFault.
func (m *Mirror) Guess(b *bolt.Bucket, name []byte) (first, value []byte, ok bool) {
	f := fileOf(b.Tx())
	page := uint64(b.RootPage())
	if page == 0 { // the bucket is inside the page of another one
		return nil, nil, false
	}
	branches := m.depths.of(b, f, name)
	if branches == 0 {
		return nil, nil, false
	}
	var at branch
	i := 0
	for range branches {
		if at, ok = f.branch(page); !ok {
			return nil, nil, false
		}
		i = at.find(name)
		page = at.child(i)
	}
	if i+1 == at.n || !upperHalf(at.key(i), at.key(i+1), name) {
		return nil, nil, false
	}
	first, value, ok = f.firstElement(at.child(i + 1))
	return first, value, ok && bytes.Equal(first, at.key(i+1))
}

// upperHalf reports whether a name between two others is nearer to the second, taking names for
// numbers.
func upperHalf(from, to, name []byte) bool {
	same := 0
	for same < min(len(from), len(to), len(name)) && from[same] == to[same] {
		same++
	}
	base := max(baseOf(from[same:]), baseOf(to[same:]), baseOf(name[same:]))
	a, b, x := number(from[same:], base), number(to[same:], base), number(name[same:], base)
	return a < x && x <= b && x-a > b-x
}

const digits = 7 // of a name that are looked at; with base 256 they fit into 64 bits

// baseOf returns 10 for decimal numbers, 16 for hexadecimal ones, and 256 for other names. Between
// 199 and 200 there are many strings, but no numbers.
func baseOf(name []byte) uint64 {
	base := uint64(10)
	for _, c := range name[:min(len(name), digits)] {
		switch {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'f':
			base = 16
		default:
			return 256
		}
	}
	return base
}

// number returns the beginning of a name as a number.
func number(name []byte, base uint64) (n uint64) {
	for i := range digits {
		n *= base
		switch {
		case i >= len(name):
		case base == 256:
			n += uint64(name[i])
		case name[i] >= 'a':
			n += uint64(name[i]-'a') + 10
		default:
			n += uint64(name[i] - '0')
		}
	}
	return n
}

const flagLeaf = 0x02

// firstElement returns the first element of a leaf, unless it is a bucket.
func (f file) firstElement(page uint64) (name, value []byte, ok bool) {
	if page >= f.pages() {
		return nil, nil, false
	}
	raw := f.bytes(span{page, 1 + f.overflow(page)})
	if binary.NativeEndian.Uint16(raw[8:])&flagLeaf == 0 || binary.NativeEndian.Uint16(raw[10:]) == 0 {
		return nil, nil, false
	}
	e := raw[headSize:]
	flags, pos := binary.NativeEndian.Uint32(e), uint64(binary.NativeEndian.Uint32(e[4:]))
	names, values := uint64(binary.NativeEndian.Uint32(e[8:])), uint64(binary.NativeEndian.Uint32(e[12:]))
	if flags != 0 || pos+names+values > uint64(len(e)) {
		return nil, nil, false
	}
	e = e[pos:]
	return e[:names:names], e[names : names+values : names+values], true
}
