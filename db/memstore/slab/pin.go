package slab

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
	if mem := p.arena.pins.release(p); mem != nil {
		p.arena.reaper.unmap(int64(len(mem)), mem)
	}
}

// release ends one reading of a block, and returns the memory that nobody needs any more.
func (s *pins) release(p *Pin) (mem []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.readers--; p.readers > 0 {
		return nil
	}
	if s.of[p.number] == p {
		delete(s.of, p.number)
	}
	mem, p.mem = p.mem, nil
	return mem
}

// leave reports whether a freed block is still being read, and leaves the memory of such a block to
// its last reader.
func (s *pins) leave(number uint32, mem []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of[number]
	if p != nil {
		p.mem = mem
		delete(s.of, number)
	}
	return p != nil
}
