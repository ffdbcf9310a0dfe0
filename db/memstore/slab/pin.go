package slab

import "sync"

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

// Pin keeps a block, which must be live, until Release. It returns nil for a block that has no
// mapping of its own, which is small.
func (a *Arena) Pin(at Addr) *Pin {
	number := uint32(at >> chunkShift)
	if at&chunkMask != 0 || len(a.chunk(number)) == chunkSize {
		return nil
	}
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	p := a.pins.of[number]
	if p == nil {
		p = &Pin{arena: a, number: number}
		if a.pins.of == nil {
			a.pins.of = map[uint32]*Pin{}
		}
		a.pins.of[number] = p
	}
	p.readers++
	return p
}

// Release ends what Pin began. Any goroutine may call it.
func (p *Pin) Release() {
	a := p.arena
	a.pins.mu.Lock()
	defer a.pins.mu.Unlock()
	if p.readers--; p.readers > 0 {
		return
	}
	if a.pins.of[p.number] == p {
		delete(a.pins.of, p.number)
	}
	if p.mem != nil {
		unmapMemory(p.mem)
		p.mem = nil
	}
}

// drop gives the memory of a freed block back, now or when nobody reads it any more.
func (s *pins) drop(number uint32, mem []byte) {
	s.mu.Lock()
	p := s.of[number]
	if p != nil {
		p.mem = mem
		delete(s.of, number)
	}
	s.mu.Unlock()
	if p == nil {
		unmapMemory(mem)
	}
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
