package paging

import (
	"bytes"
	"encoding/binary"
	"sort"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// file is the map of a file in an open transaction. Pages are laid out as drawn in package rebuild.
type file struct {
	data []byte // up to the end of the transaction
	page int    // bytes
}

func fileOf(tx *bolt.Tx) file {
	info := tx.DB().Info()
	return file{unsafe.Slice(*(**byte)(unsafe.Pointer(&info.Data)), tx.Size()), info.PageSize}
}

// offset returns where in the file the bytes of b are; ok is false for bytes that are elsewhere in
// memory, as those of an open writing transaction are.
func (f file) offset(b []byte) (at int, ok bool) {
	n := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	return int(n), n < uintptr(len(f.data))
}

func (f file) pages() uint64 { return uint64(len(f.data) / f.page) }

// bytes returns the memory of some pages.
func (f file) bytes(r span) []byte {
	return f.data[int(r.page)*f.page : int(r.page+r.n)*f.page]
}

const (
	headSize    = 16 // of a page
	elementSize = 16
	flagBranch  = 0x01
)

// A branch is a branch page, which may be damaged: then it has no elements.
type branch struct {
	raw []byte
	n   int
}

// branch returns a page; ok is false for one that is no branch page.
func (f file) branch(page uint64) (b branch, ok bool) {
	if page >= f.pages() {
		return branch{}, false
	}
	at := int(page) * f.page
	head := f.data[at:]
	if binary.NativeEndian.Uint16(head[8:])&flagBranch == 0 {
		return branch{}, false
	}
	count, more := int(binary.NativeEndian.Uint16(head[10:])), uint64(binary.NativeEndian.Uint32(head[12:]))
	if page+more >= f.pages() {
		return branch{}, false
	}
	raw := f.data[at : at+int(more+1)*f.page]
	if headSize+count*elementSize > len(raw) {
		return branch{}, false
	}
	return branch{raw, count}, count > 0
}

// overflow returns how many pages behind it a page takes.
func (f file) overflow(page uint64) uint64 {
	if page >= f.pages() {
		return 0
	}
	more := uint64(binary.NativeEndian.Uint32(f.data[int(page)*f.page+12:]))
	return min(more, f.pages()-1-page)
}

func (b branch) element(i int) []byte { return b.raw[headSize+i*elementSize:] }

// key returns the smallest key of a child; nil where the page is damaged.
func (b branch) key(i int) []byte {
	e := b.element(i)
	pos, size := uint64(binary.NativeEndian.Uint32(e)), uint64(binary.NativeEndian.Uint32(e[4:]))
	if pos+size > uint64(len(e)) {
		return nil
	}
	return e[pos : pos+size]
}

func (b branch) child(i int) uint64 { return binary.NativeEndian.Uint64(b.element(i)[8:]) }

// find returns the child that has a key.
func (b branch) find(key []byte) int {
	i := sort.Search(b.n, func(i int) bool { return bytes.Compare(b.key(i), key) > 0 })
	return max(0, i-1)
}

// A span is some pages that stand together.
type span struct{ page, n uint64 }

func (s span) end() uint64 { return s.page + s.n }
