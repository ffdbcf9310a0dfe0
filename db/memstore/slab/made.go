package slab

// Made is a block over the largest class that is filled before it belongs to an Arena: its memory comes from the system page by page as it
// is written to, which takes a fifth of a second for 250 MiB, and nobody need wait for that.
type Made struct {
	mem  []byte
	heap bool
}

// Make returns a block of n bytes with undefined content, nil if n is too small for one.
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
