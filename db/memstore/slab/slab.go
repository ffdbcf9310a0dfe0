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
package slab

import "sync/atomic"

// Addr names a block: its chunk and its place in the chunk in units of 8 bytes. 0 names no block.
// Addresses need AddrBits bits.
type Addr uint64

// AddrBits is the number of bits an Addr may use, which allows for 8 TiB.
const AddrBits = 40

const (
	unit      = 8 // bytes; blocks begin at multiples of it
	chunkSize = unit << chunkShift
	spanSize  = unit << spanShift
	spanShift = 13                   // Addr to span
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
	warm   int                      // spans in pool whose pages were not given back
	spare  []uint32                 // chunks without blocks, kept for reuse
	gone   []uint32                 // chunk numbers to be used again

	pins pins

	used   atomic.Int64
	mapped atomic.Int64
}

// New returns an empty Arena, which takes no memory before the first Alloc.
func New() *Arena {
	a := &Arena{meta: make([]chunkMeta, 1), spans: make([]span, perChunk)}
	chunks := make([][]byte, 1)
	a.chunks.Store(&chunks)
	return a
}

// Alloc returns a block of at least n bytes with undefined content.
func (a *Arena) Alloc(n int) Addr {
	if n > maxClassSize {
		return a.allocOwn(n)
	}
	c := classOf(n)
	id := a.room[c].head
	if id == 0 {
		id = a.newSpan(c)
	}
	a.used.Add(int64(classSizes[c]))
	return a.take(id)
}

// Free takes a block back. Nobody may look at it any more.
func (a *Arena) Free(at Addr) {
	number := uint32(at >> chunkShift)
	m := &a.meta[number]
	if m.kind == ownChunk {
		a.used.Add(-int64(len(a.chunk(number))))
		a.unmap(number)
		return
	}
	id := uint32(at >> spanShift)
	if m.kind == wholeChunk {
		id = number * perChunk
	}
	a.used.Add(-int64(classSizes[a.spans[id].class]))
	a.give(id, at)
}

// Bytes returns the memory from the block's first byte on. It is longer than the block: the caller
// must know the block's size and keep to it.
func (a *Arena) Bytes(at Addr) []byte {
	return (*a.chunks.Load())[at>>chunkShift][(at&chunkMask)*unit:]
}

// Used returns the bytes in live blocks, including what the rounding to size classes adds.
func (a *Arena) Used() int64 { return a.used.Load() }

// Mapped returns the bytes taken from the operating system, touched or not.
func (a *Arena) Mapped() int64 { return a.mapped.Load() }

// Release gives all memory back and leaves the Arena empty. Nobody may look at a block any more.
func (a *Arena) Release() {
	for number := range a.meta {
		if a.meta[number].kind != noChunk {
			a.unmap(uint32(number))
		}
	}
	fresh := New()
	a.chunks.Store(fresh.chunks.Load())
	a.meta, a.spans = fresh.meta, fresh.spans
	a.room, a.pool, a.warm = fresh.room, fresh.pool, 0
	a.spare, a.gone = nil, nil
	a.used.Store(0)
}

func (a *Arena) chunk(number uint32) []byte { return (*a.chunks.Load())[number] }
