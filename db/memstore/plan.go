package memstore

import (
	"gotycoon/db/memstore/slab"
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
		arena = arena.Fresh()
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

// lastClear returns the index of the last clear, -1 for none.
func lastClear(ups []update.Update) int {
	for i := len(ups) - 1; i >= 0; i-- {
		if ups[i].Op == update.OpClear {
			return i
		}
	}
	return -1
}

// copyLarge makes the records of updates with large values, before prepare.
func (p *plan) copyLarge(links int, ups []update.Update) {
	for i := range ups {
		if u := &ups[i]; preparable(u) {
			p.prepared.add(u.Value, 0, links+recordSize(u.Key, u.Value), func(b []byte) { putRecord(b[links:], u.Key, u.Value) })
		}
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
