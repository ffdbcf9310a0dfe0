package memstore

import (
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog/update"
)

const (
	prepareSize = 1 << 20          // larger values are copied before anything is locked
	pinSize     = store.LargeValue // larger values are read when nothing is locked any more
)

// Value is a copy of a large value that a Tree can take as it is.
type Value struct {
	made *slab.Made
	head int
	size int
}

// Prepared holds copies of large values that are made before the locks of an Apply are taken. So
// other updates need not wait until 250 MiB are copied and the system has found the memory. A copy
// is found by the address of the slice that was copied, so the slice must stay as it is until the
// copy has been taken. The zero value is empty, and any number of goroutines may use it.
type Prepared struct {
	many atomic.Int64 // len(of), so that updates of the usual size need no lock
	mu   sync.Mutex   // guards of
	of   map[*byte]Value
}

// Add copies the values of updates that are large and stay as they are, each with room for head
// bytes in front.
func (p *Prepared) Add(ups []update.Update, head int) {
	for i := range ups {
		if u := &ups[i]; preparable(u) && len(u.Key) <= maxInline {
			p.add(u.Value, head, head+len(u.Value), func(b []byte) { pieces.Copy(b[head:], u.Value) })
		}
	}
}

// preparable reports whether the value of an update is to be copied beforehand.
func preparable(u *update.Update) bool {
	return u.Stays && u.Op == update.OpSet && len(u.Value) >= prepareSize
}

// add allocates a block of a size for value and has it filled.
func (p *Prepared) add(value []byte, head, size int, fill func(b []byte)) {
	made := slab.Make(size)
	if made == nil {
		return
	}
	fill(made.Bytes())
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.of[&value[0]]; twice {
		made.Free()
		return
	}
	if p.of == nil {
		p.of = map[*byte]Value{}
	}
	p.of[&value[0]] = Value{made, head, size}
	p.many.Add(1)
}

// Take returns the copy of a value with room for head bytes in front, nil if there is no such copy.
func (p *Prepared) Take(value []byte, head int) *Value {
	if len(value) < prepareSize || p.many.Load() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v, found := p.of[&value[0]]
	if !found {
		return nil
	}
	delete(p.of, &value[0])
	p.many.Add(-1)
	if v.head != head {
		v.made.Free()
		return nil
	}
	return &v
}

// Forget gives back the copies that have not been taken.
func (p *Prepared) Forget(ups []update.Update) {
	for i := range ups {
		if !preparable(&ups[i]) || p.many.Load() == 0 {
			continue
		}
		p.mu.Lock()
		if v, found := p.of[&ups[i].Value[0]]; found {
			v.made.Free()
			delete(p.of, &ups[i].Value[0])
			p.many.Add(-1)
		}
		p.mu.Unlock()
	}
}

// pinLarge keeps the block of a large value, so that the value can be read without a lock. It
// returns nil for other values.
func pinLarge(a *slab.Arena, at slab.Addr, value []byte) *slab.Pin {
	if len(value) < pinSize || at == 0 {
		return nil
	}
	return a.Pin(at)
}
