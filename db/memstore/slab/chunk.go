package slab

// # Huge pages
//
// A record among millions is in no cache, and neither is the way to it: with pages of 4 KiB the
// processor has to look the page's address up, in memory, before it can fetch the record, and in a
// virtual machine it does so twice. A chunk of two huge pages needs two entries of the processor's
// table, where it needed 1,024: a set into a cache of a million records took a third less time.
//
// The first hugeFrom bytes of an arena stay on small pages, so that a store of a few records takes
// a few KiB. A huge page is cleared when it is first touched, which takes 0.1 ms, less than the 512
// faults that it replaces.
//
// A store that takes its chunks from a Reserve may have one with all its pages instead.
//
// A chunk that gives the pages of an empty span back goes over to small pages for good. Otherwise
// the kernel would by and by make the span part of a huge page again, and take memory for nothing.

// hugeFrom is how much an arena has mapped before further chunks are on huge pages.
const hugeFrom = 16 << 20

// keepSpare is the number of chunks without blocks that are kept for reuse.
const keepSpare = 1

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
		number = a.furtherChunk(k)
	}
	a.meta[number].kind = k
	return number
}

// furtherChunk returns a chunk that the arena did not have before. One from the Reserve has all its
// pages, so a small arena takes none for a class of which it has perhaps a single block.
func (a *Arena) furtherChunk(k kind) (number uint32) {
	if old, ok := a.reserve.take(k == spanChunk || a.mapped.Load() >= hugeFrom); ok {
		number = a.place(old.mem, false)
		a.meta[number].huge = old.huge
	} else {
		number = a.mapChunk(chunkSize)
	}
	if m := &a.meta[number]; a.mapped.Load() > hugeFrom && !m.heap && !m.huge {
		preferHuge(a.chunk(number))
		m.huge = true
	}
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

// unmap gives a chunk back.
func (a *Arena) unmap(number uint32) {
	size := int64(len(a.chunk(number)))
	a.mapped.Add(-size)
	if mem := a.forget(number); mem != nil {
		a.reaper.unmap(size, mem)
	}
}

// forget makes the number of a chunk free, and returns the mapping that is to be given back. It
// returns nil for memory of Go's heap, and where a reader gives the mapping back in the end.
func (a *Arena) forget(number uint32) []byte {
	chunks := *a.chunks.Load()
	mem, heap := chunks[number], a.meta[number].heap
	chunks[number] = nil
	a.meta[number] = chunkMeta{}
	a.gone = append(a.gone, number)
	if heap || a.pins.leave(number, mem) {
		return nil
	}
	return mem
}

// A Made is a block over the largest class that is filled before it belongs to an Arena. Its memory
// comes from the system page by page as it is written to, which takes a fifth of a second for 250
// MiB; nobody has to wait for that.
type Made struct {
	mem  []byte
	heap bool
}

// Make returns a block of n bytes with undefined content, nil if n is too small for a block of its
// own.
func Make(n int) *Made {
	if n <= maxClassSize {
		return nil
	}
	size := roundOwn(n)
	mem, err := mapMemory(size)
	if err != nil {
		mem = make([]byte, size)
	}
	return &Made{mem, err != nil}
}

// Bytes returns the memory of the block.
func (m *Made) Bytes() []byte { return m.mem }

// Free gives back a block that no Arena has adopted.
func (m *Made) Free() {
	if !m.heap {
		unmapMemory(m.mem)
	}
	m.mem = nil
}

// Adopt makes the block one of the arena's, as if Alloc had returned it.
func (a *Arena) Adopt(m *Made) Addr {
	number := a.place(m.mem, m.heap)
	a.meta[number].kind = ownChunk
	a.used.Add(int64(len(m.mem)))
	return Addr(number) << chunkShift
}
