package rebuild

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
)

// The format of a bbolt file, version 2. Numbers are in the byte order of the machine. A page of n
// bytes is
//
//	offset  0          8            10           12              16
//	        ┌──────────┬────────────┬────────────┬───────────────┬───────────────────────────
//	        │ id, u64  │ flags, u16 │ count, u16 │ overflow, u32 │ elements, then their data
//	        └──────────┴────────────┴────────────┴───────────────┴───────────────────────────
//
// and goes on for overflow pages behind it. Elements have 16 bytes; pos counts from the beginning
// of the element:
//
//	leaf    flags u32 (1: a bucket), pos u32, key size u32, value size u32; then key and value
//	branch  pos u32, key size u32, page id u64; then the key, which is the smallest of that page
//
// The value of a bucket is the page id of its root and a sequence number, 8 bytes each. With page
// id 0 the root page itself follows, with id 0. A free list page has no elements but ids of 8
// bytes; with count 0xFFFF the first id is their number.
//
// Pages 0 and 1 are meta pages; the valid one with the larger transaction number counts:
//
//	offset  size
//	16      4     magic
//	20      4     version: 2
//	24      4     page size
//	28      4     flags
//	32      8     root, page id
//	40      8     sequence
//	48      8     free list, page id
//	56      8     end, in pages
//	64      8     transaction number
//	72      8     FNV-1a 64 of bytes 16 to 71
const (
	headSize    = 16 // of a page
	elementSize = 16
	bucketSize  = 16 // of a bucket's value, without an inline page
	metaSize    = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	elementBucket = 1 // flag of a leaf element

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)

	minPageSize = 512
	maxPageSize = 64 << 10
)

// A head is the beginning of a page.
type head struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

func readHead(b []byte) head {
	return head{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint16(b[8:]), binary.NativeEndian.Uint16(b[10:]), binary.NativeEndian.Uint32(b[12:])}
}

func (h head) write(b []byte) {
	binary.NativeEndian.PutUint64(b, h.id)
	binary.NativeEndian.PutUint16(b[8:], h.flags)
	binary.NativeEndian.PutUint16(b[10:], h.count)
	binary.NativeEndian.PutUint32(b[12:], h.overflow)
}

// meta is a meta page.
type meta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	end      uint64 // pages of the file that are in use, or were
	tx       uint64
}

var (
	errNotMeta  = errors.New("not a meta page of a database file")
	errChecksum = errors.New("checksum of the meta page does not match")
)

// readMeta decodes what stands behind the head of a meta page.
func readMeta(b []byte) (meta, error) {
	m := meta{binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint64(b[16:]), binary.NativeEndian.Uint64(b[32:]), binary.NativeEndian.Uint64(b[40:]), binary.NativeEndian.Uint64(b[48:])}
	if binary.NativeEndian.Uint32(b) != boltMagic || binary.NativeEndian.Uint32(b[4:]) != boltVersion {
		return m, errNotMeta
	}
	if binary.NativeEndian.Uint64(b[56:]) != metaSum(b) {
		return m, errChecksum
	}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return m, errNotMeta
	}
	return m, nil
}

func (m meta) write(b []byte) {
	binary.NativeEndian.PutUint32(b, boltMagic)
	binary.NativeEndian.PutUint32(b[4:], boltVersion)
	binary.NativeEndian.PutUint32(b[8:], m.pageSize)
	binary.NativeEndian.PutUint32(b[12:], 0)
	binary.NativeEndian.PutUint64(b[16:], m.root)
	binary.NativeEndian.PutUint64(b[24:], 0)
	binary.NativeEndian.PutUint64(b[32:], m.freelist)
	binary.NativeEndian.PutUint64(b[40:], m.end)
	binary.NativeEndian.PutUint64(b[48:], m.tx)
	binary.NativeEndian.PutUint64(b[56:], metaSum(b))
}

func metaSum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b[:metaSize-8]) // documented never to fail
	return h.Sum64()
}
