package slab

import "encoding/binary"

// keepWarm is the number of empty spans whose pages are kept, so that a store whose size swings a
// little does not ask the operating system for the same memory again and again.
const keepWarm = 64

// A span is a row of blocks of one class. Never used blocks are at its end; freed blocks form a
// list through their first four bytes.
type span struct {
	free       uint32 // place in the chunk of the first freed block, plus 1; 0 is none. In units
	fresh      uint32 // place in the chunk of the first never used block, in units
	left       uint32 // never used blocks
	used       uint32 // live blocks
	prev, next uint32 // in the class's list or in the pool
	class      uint8
	cold       bool // an empty span whose pages were given back
}

// list is a doubly linked list of spans; 0 is the end, because the first chunk number is 1.
type list struct{ head uint32 }

func (a *Arena) push(l *list, id uint32) {
	s := &a.spans[id]
	s.prev, s.next = 0, l.head
	if l.head != 0 {
		a.spans[l.head].prev = id
	}
	l.head = id
}

func (a *Arena) drop(l *list, id uint32) {
	s := &a.spans[id]
	if s.prev != 0 {
		a.spans[s.prev].next = s.next
	} else {
		l.head = s.next
	}
	if s.next != 0 {
		a.spans[s.next].prev = s.prev
	}
	s.prev, s.next = 0, 0
}

// take returns a block of a span that has room.
func (a *Arena) take(id uint32) Addr {
	s := &a.spans[id]
	number := id / perChunk
	place := s.fresh
	if s.free != 0 {
		place = s.free - 1
		s.free = binary.LittleEndian.Uint32(a.chunk(number)[place*unit:])
	} else {
		s.fresh += uint32(classSizes[s.class] / unit)
		s.left--
	}
	s.used++
	if s.free == 0 && s.left == 0 {
		a.drop(&a.room[s.class], id)
	}
	return Addr(number)<<chunkShift | Addr(place)
}

// give takes a block of a span back.
func (a *Arena) give(id uint32, at Addr) {
	s := &a.spans[id]
	full := s.free == 0 && s.left == 0
	place := uint32(at & chunkMask)
	binary.LittleEndian.PutUint32(a.chunk(id / perChunk)[place*unit:], s.free)
	s.free = place + 1
	s.used--
	if full {
		a.push(&a.room[s.class], id)
	}
	if s.used == 0 {
		a.drop(&a.room[s.class], id)
		a.retire(id)
	}
}

// newSpan prepares a span of a class and makes it the first with room.
func (a *Arena) newSpan(class int) uint32 {
	size := classSizes[class]
	id, bytes := uint32(0), spanSize
	if size > maxSpanBlock {
		id, bytes = a.newChunk(wholeChunk)*perChunk, chunkSize
	} else {
		id = a.pooledSpan()
	}
	s := &a.spans[id]
	*s = span{
		class: uint8(class),
		fresh: id % perChunk * (spanSize / unit),
		left:  uint32(bytes / size),
	}
	a.meta[id/perChunk].busy++
	a.push(&a.room[class], id)
	return id
}

// pooledSpan takes a span out of the pool. An empty pool is filled first.
func (a *Arena) pooledSpan() uint32 {
	if a.pool.head == 0 {
		number := a.newChunk(spanChunk)
		for i := uint32(perChunk); i > 0; i-- {
			id := number*perChunk + i - 1
			a.spans[id] = span{cold: true}
			a.push(&a.pool, id)
		}
	}
	id := a.pool.head
	a.unpool(id)
	return id
}

func (a *Arena) unpool(id uint32) {
	a.drop(&a.pool, id)
	if !a.spans[id].cold {
		a.warm--
	}
}

// retire takes a span that has no blocks any more out of use, and its chunk if that has no other
// blocks.
func (a *Arena) retire(id uint32) {
	number := id / perChunk
	m := &a.meta[number]
	m.busy--
	switch {
	case m.busy > 0:
		a.poolSpan(id)
	case m.kind == wholeChunk:
		a.retireChunk(number)
	default:
		a.poolSpan(id)
		for i := range uint32(perChunk) {
			a.unpool(number*perChunk + i)
		}
		a.retireChunk(number)
	}
}

func (a *Arena) poolSpan(id uint32) {
	s := &a.spans[id]
	s.cold = a.warm >= keepWarm
	if s.cold {
		at := id % perChunk * spanSize
		discard(a.chunk(id / perChunk)[at : at+spanSize])
	} else {
		a.warm++
	}
	a.push(&a.pool, id)
}

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
