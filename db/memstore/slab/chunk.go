package slab

const (
	pageSize  = 4 << 10
	keepSpare = 1 // chunks without blocks that are kept for reuse
)

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
	busy uint32 // spans with blocks
}

func roundOwn(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// allocOwn returns a block with a mapping of its own.
func (a *Arena) allocOwn(n int) Addr {
	size := roundOwn(n)
	number := a.mapChunk(size)
	a.meta[number].kind = ownChunk
	a.used.Add(int64(size))
	return Addr(number) << chunkShift
}

// newChunk returns an unused chunk of the usual size.
func (a *Arena) newChunk(k kind) uint32 {
	var number uint32
	if n := len(a.spare); n > 0 {
		number = a.spare[n-1]
		a.spare = a.spare[:n-1]
	} else {
		number = a.mapChunk(chunkSize)
	}
	a.meta[number].kind = k
	return number
}

// retireChunk keeps a chunk that has no blocks any more for reuse, or gives it back.
func (a *Arena) retireChunk(number uint32) {
	if len(a.spare) >= keepSpare {
		a.unmap(number)
		return
	}
	a.meta[number].kind = spareChunk
	a.spare = append(a.spare, number)
}

// mapChunk gets memory from the operating system. If that fails (the number of mappings of a
// process is limited), Go's heap is asked, which ends the process with its own message if there is
// no memory.
func (a *Arena) mapChunk(size int) uint32 {
	mem, err := mapMemory(size)
	if err != nil {
		mem = make([]byte, size)
	}
	return a.place(mem, err != nil)
}

// place gives memory a chunk number.
func (a *Arena) place(mem []byte, heap bool) uint32 {
	a.mapped.Add(int64(len(mem)))
	number := a.number()
	a.meta[number] = chunkMeta{heap: heap}
	(*a.chunks.Load())[number] = mem
	return number
}

// number returns a free chunk number. Readers keep using the old table while a longer one is made:
// they look only at the entries of live blocks, which are the same in both tables.
func (a *Arena) number() uint32 {
	if n := len(a.gone); n > 0 {
		number := a.gone[n-1]
		a.gone = a.gone[:n-1]
		return number
	}
	chunks := append(*a.chunks.Load(), nil)
	if len(chunks) > maxChunks {
		panic("slab: out of addresses")
	}
	a.chunks.Store(&chunks)
	a.meta = append(a.meta, chunkMeta{})
	a.spans = append(a.spans, make([]span, perChunk)...)
	return uint32(len(chunks) - 1)
}

func (a *Arena) unmap(number uint32) {
	chunks := *a.chunks.Load()
	mem := chunks[number]
	chunks[number] = nil
	a.mapped.Add(-int64(len(mem)))
	if !a.meta[number].heap {
		a.pins.drop(number, mem)
	}
	a.meta[number] = chunkMeta{}
	a.gone = append(a.gone, number)
}
