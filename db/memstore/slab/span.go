package slab

import (
	"encoding/binary"
)

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

// Release gives all memory back, soon (see reaper), or to the Reserve, and leaves the Arena empty.
// Nobody may look at a block any more.
func (a *Arena) Release() {
	var all [][]byte
	for number, m := range a.meta {
		if m.kind == noChunk {
			continue
		}
		mem := a.forget(uint32(number))
		if mem == nil || m.kind != ownChunk && !m.cool && a.reserve.put(kept{mem, m.huge}) {
			continue
		}
		all = append(all, mem)
	}
	if had := a.mapped.Swap(0); len(all) > 0 {
		a.reaper.unmap(had, all...)
	}
	fresh := New()
	a.chunks.Store(fresh.chunks.Load())
	a.meta, a.spans = fresh.meta, fresh.spans
	a.room, a.pool, a.cold, a.warm = fresh.room, fresh.pool, fresh.cold, 0
	a.spare, a.gone = nil, nil
	a.used.Store(0)
}

// keepWarm is how many empty spans keep their pages, so that a store whose size swings does not ask
// the operating system for the same memory again and again: 4 MiB, or a quarter of what is in use.
// A tree that grows empties many spans at a time, because its pages outgrow them together, and
// needs the memory at once for the larger ones.
func (a *Arena) keepWarm() int { return max(64, int(a.used.Load()/(4*spanSize))) }

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

// pooledSpan takes a span out of the pool, one with pages if there is one. An empty pool is filled
// first.
func (a *Arena) pooledSpan() uint32 {
	if a.pool.head == 0 && a.cold.head == 0 {
		number := a.newChunk(spanChunk)
		for i := uint32(perChunk); i > 0; i-- {
			id := number*perChunk + i - 1
			a.spans[id] = span{cold: true}
			a.push(&a.cold, id)
		}
	}
	id := a.pool.head
	if id == 0 {
		id = a.cold.head
	}
	a.unpool(id)
	return id
}

func (a *Arena) unpool(id uint32) {
	if a.spans[id].cold {
		a.drop(&a.cold, id)
		return
	}
	a.drop(&a.pool, id)
	a.warm--
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

// poolSpan puts a span without blocks into the pool. Where too many of the pool's spans have pages,
// two give theirs back, so that there are fewer and fewer while the arena shrinks.
func (a *Arena) poolSpan(id uint32) {
	a.spans[id].cold = false
	a.push(&a.pool, id)
	a.warm++
	for i := 0; i < 2 && a.warm > a.keepWarm(); i++ {
		a.cool(a.pool.head)
	}
}

// cool gives the pages of a span in the pool back.
func (a *Arena) cool(id uint32) {
	number := id / perChunk
	mem := a.chunk(number)
	if m := &a.meta[number]; m.huge {
		preferSmall(mem)
		m.huge = false
	}
	a.meta[number].cool = true
	at := id % perChunk * spanSize
	discard(mem[at : at+spanSize])
	a.unpool(id)
	a.spans[id].cold = true
	a.push(&a.cold, id)
}
