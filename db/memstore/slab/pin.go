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
