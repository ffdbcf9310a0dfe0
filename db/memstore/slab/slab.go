// Package slab hands out blocks of memory that the garbage collector does not know of.
//
// An Arena takes chunks of 4 MiB from the operating system. A chunk is either cut into 64 spans of
// 64 KiB, each of which holds blocks of one size class, or is itself one span of a class of bigger
// blocks. Classes are at most an eighth apart, so that a block wastes 6 % on average. Blocks over
// 512 KiB get a mapping of their own. A span without live blocks goes to a pool from which any
// class may take it; a chunk without live blocks is given back.
//
// Blocks are named by an Addr of 40 bits, not by a pointer, so that structures of millions of
// blocks cost the collector nothing.
//
// From the top down: span.go allocates and frees blocks, chunk.go maps memory, pin.go keeps large
// blocks for readers, reserve.go keeps chunks for further Arenas, reaper.go gives memory back, this
// file has the Arena and finds blocks, and class.go has the sizes.
package slab

import (
	"sync"
	"sync/atomic"
)

// Addr names a block: its chunk and its place in the chunk in units of 8 bytes. 0 names no block.
// Addresses need AddrBits bits.
type Addr uint64

// AddrBits is the number of bits an Addr may use, which allows for 8 TiB.
const AddrBits = 40

const (
	chunkMask = 1<<chunkShift - 1    // Addr to place in the chunk
	perChunk  = chunkSize / spanSize // spans in a chunk
	maxChunks = 1 << (AddrBits - chunkShift)
)

// An Arena is a growing piece of memory cut into blocks. One goroutine at a time may allocate, free
// and release; meanwhile others may call Bytes for blocks that they know to be live, Used and
// Mapped.
type Arena struct {
	chunks atomic.Pointer[[][]byte] // by chunk number; nil where there is none. Number 0 is never used
	meta   []chunkMeta              // by chunk number; only for the writer
	spans  []span                   // perChunk for each chunk; only for the writer
	room   [maxClasses]list         // by class: spans with room for another block
	pool   list                     // spans without blocks, of chunks that have others with blocks
	cold   list                     // the same, whose pages were given back or never touched
	warm   int                      // spans in pool
	spare  []uint32                 // chunks without blocks, kept for reuse
	gone   []uint32                 // chunk numbers to be used again

	pins    pins
	reaper  *reaper
	reserve *Reserve // nil: released chunks go back to the operating system

	used   atomic.Int64
	mapped atomic.Int64
}

// A kind says how a chunk is cut up.
type kind uint8

const (
	noChunk    kind = iota // the number is free
	spanChunk              // into spans of spanSize
	wholeChunk             // one span of a class over maxSpanBlock
	ownChunk               // one block over maxClassSize; the mapping has the block's size
	spareChunk             // no blocks
)

type chunkMeta struct {
	kind kind
	heap bool   // from Go's heap, because a mapping could not be had
	huge bool   // on huge pages
	cool bool   // some of its pages were given back
	busy uint32 // spans with blocks
}

// A span is a row of blocks of one class. Never used blocks are at its end; freed blocks form a
// list through their first four bytes.
type span struct {
	free       uint32 // place in the chunk of the first freed block, plus 1; 0 is none. In units
	fresh      uint32 // place in the chunk of the first never used block, in units
	left       uint32 // never used blocks
	used       uint32 // live blocks
	prev, next uint32 // in the class's list, in the pool or in cold
	class      uint8
	cold       bool // the span is in the list cold, or has never had a block
}

// list is a doubly linked list of spans; 0 is the end, because the first chunk number is 1.
type list struct{ head uint32 }

// pins are the blocks with a mapping of their own that are being read without a lock.
type pins struct {
	mu sync.Mutex
	of map[uint32]*Pin // by chunk number, those whose blocks are live
}

// A Pin keeps the memory of a block while it is read, also when the block is freed meanwhile. Its
// content does not change.
type Pin struct {
	arena   *Arena
	number  uint32
	readers int
	mem     []byte // of a block that has been freed; nil: nothing is to be given back
}

// New returns an empty Arena, which takes no memory before the first Alloc.
func New() *Arena {
	a := &Arena{meta: make([]chunkMeta, 1), spans: make([]span, perChunk), reaper: new(reaper)}
	chunks := make([][]byte, 1)
	a.chunks.Store(&chunks)
	return a
}

// NewOn returns an empty Arena whose chunks come from a Reserve, and go there when the Arena is
// released.
func NewOn(r *Reserve) *Arena {
	a := New()
	a.reserve = r
	return a
}

// Fresh returns an empty Arena that takes the place of a in a store.
func (a *Arena) Fresh() *Arena {
	fresh := New()
	fresh.reaper, fresh.reserve = a.reaper, a.reserve
	return fresh
}

// Wait returns when the memory that was freed or released before is back with the operating system,
// or in the Reserve.
func (a *Arena) Wait() { a.reaper.wg.Wait() }

// Bytes returns the memory from the block's first byte on. It is longer than the block: the caller
// must know the block's size and keep to it.
func (a *Arena) Bytes(at Addr) []byte {
	return (*a.chunks.Load())[at>>chunkShift][(at&chunkMask)*unit:]
}

func (a *Arena) chunk(number uint32) []byte { return (*a.chunks.Load())[number] }

// Used returns the bytes in live blocks, including what the rounding to size classes adds.
func (a *Arena) Used() int64 { return a.used.Load() }

// Mapped returns the bytes taken from the operating system, touched or not.
func (a *Arena) Mapped() int64 { return a.mapped.Load() }

// Sparse reports whether a block is in a span less than half full, and a new block of its class
// would not be. An owner that moves such blocks when it comes across them keeps spans from being
// held by a few blocks each.
func (a *Arena) Sparse(at Addr) bool {
	if a.meta[at>>chunkShift].kind != spanChunk {
		return false
	}
	id := uint32(at >> spanShift)
	s := &a.spans[id]
	return int(s.used)*2 < spanSize/classSizes[s.class] && a.room[s.class].head != id
}
