package slab

import "sync"

// pins are the blocks with a mapping of their own that are being read without a lock.
type pins struct {
	mu sync.Mutex
	of map[uint32]*Pin // by chunk number, those whose blocks are live
}

// Pin keeps the memory of a block while it is read, also when the block is freed meanwhile. Its content does not change.
type Pin struct {
	arena   *Arena
	number  uint32
	readers int
	mem     []byte // of a block that has been freed; nil: nothing is to be given back
}

// Pin keeps a block, which must be live, until Release. It returns nil for a block that has no mapping of its own: such a block is small.
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
