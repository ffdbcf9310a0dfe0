package memstore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog/update"
)

// A plan is a list of updates that is made ready without a lock. So readers wait only for the work
// on the index.
type plan struct {
	fresh *slab.Arena // not nil: first everything is cleared, and this arena used from then on
	steps []step
	old   []slab.Addr // replaced records, to be freed when the locks are free

	prepared Prepared // records with large values
}

// copyLarge makes the records of updates with large values, before prepare.
func (p *plan) copyLarge(links int, ups []update.Update) {
	for i := range ups {
		if u := &ups[i]; preparable(u) {
			p.prepared.add(u.Value, 0, links+recordSize(u.Key, u.Value), func(b []byte) { putRecord(b[links:], u.Key, u.Value) })
		}
	}
}

// A step is one update: a set if at is not 0, otherwise a remove.
type step struct {
	hash uint64
	key  []byte
	at   slab.Addr // the new record, to which the index does not refer yet
}

// prepare makes the plan for ups. It leaves out the updates before the last clear, which removes
// their records anyhow.
func (p *plan) prepare(x *index, ups []update.Update) {
	p.fresh, p.steps, p.old = nil, p.steps[:0], p.old[:0]
	arena := x.arena
	if n := lastClear(ups); n >= 0 {
		arena = slab.New()
		p.fresh = arena
		ups = ups[n+1:]
	}
	for i := range ups {
		u := &ups[i]
		s := step{hash: x.hash(u.Key), key: u.Key}
		switch u.Op {
		case update.OpSet:
			if v := p.prepared.Take(u.Value, 0); v != nil {
				s.at = arena.Adopt(v.made)
				break
			}
			s.at = arena.Alloc(x.links + recordSize(u.Key, u.Value))
			putRecord(arena.Bytes(s.at)[x.links:], u.Key, u.Value)
		case update.OpRemove:
		default:
			continue // not an operation on records
		}
		p.steps = append(p.steps, s)
	}
}

// finish frees the replaced records, and forgets the caller's slices.
func (p *plan) finish(x *index) {
	for _, at := range p.old {
		x.arena.Free(at)
	}
	clear(p.steps)
	if cap(p.steps) > keepSteps {
		p.steps, p.old = nil, nil
	}
}

// keepSteps is the length of the longest plan whose memory is kept for the next one.
const keepSteps = 4096

// lastClear returns the index of the last clear, -1 for none.
func lastClear(ups []update.Update) int {
	for i := len(ups) - 1; i >= 0; i-- {
		if ups[i].Op == update.OpClear {
			return i
		}
	}
	return -1
}

// A record of a hash table is a block of
//
//	┌───────────────┬─────────────────┬───────────────────┬─────┬───────┐
//	│ links (Cache) │ uvarint: key    │ uvarint: value    │ key │ value │
//	│ 10 bytes      │ size            │ size              │     │       │
//	└───────────────┴─────────────────┴───────────────────┴─────┴───────┘

// recordSize returns the size of a record without links.
func recordSize(key, value []byte) int {
	return uvarintSize(len(key)) + uvarintSize(len(value)) + len(key) + len(value)
}

// putRecord writes a record without links.
func putRecord(block, key, value []byte) {
	n := binary.PutUvarint(block, uint64(len(key)))
	n += binary.PutUvarint(block[n:], uint64(len(value)))
	n += copy(block[n:], key)
	pieces.Copy(block[n:], value)
}

// parseRecord returns the parts of a record without links. Their capacity ends with them.
func parseRecord(block []byte) (key, value []byte) {
	keySize, valueSize, n := recordSizes(block)
	end := n + keySize + valueSize
	return block[n : n+keySize : n+keySize], block[n+keySize : end : end]
}

// recordSizes returns the sizes of the parts and where the key begins. Most records have sizes of
// one byte each.
func recordSizes(block []byte) (keySize, valueSize, n int) {
	if block[0] < 0x80 && block[1] < 0x80 {
		return int(block[0]), int(block[1]), 2
	}
	k, n := binary.Uvarint(block)
	v, m := binary.Uvarint(block[n:])
	return int(k), int(v), n + m
}

// uvarintSize returns the number of bytes that n takes as a uvarint.
func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

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
