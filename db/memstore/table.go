package memstore

import (
	"encoding/binary"

	"gotycoon/db/memstore/slab"
)

// A slot of a table is 8 bytes, little-endian: 24 bits of the hash above the 40 bits of the
// record's address. 0 is an empty slot.
const (
	slotSize = 8
	fragBits = 64 - slab.AddrBits
	addrMask = 1<<slab.AddrBits - 1

	minSlots = 8
	maxSlack = 64 // slots behind the last home, usually
)

// A table is a part of a hash index: an array of slots in ascending order of their hash fragments.
//
// Invariants:
//   - A slot is at its home or behind it, with no empty slot in between. A fragment's home is
//     fragment/2^24 of the homes, so the order of slots is the order of fragments, whatever the
//     size of the table. Therefore a table grows by one pass over its slots without a look at the
//     records (2 ns a slot).
//   - Slots with the same fragment are in the order of (hash, key); their records are looked at for
//     that.
//   - The last slot is empty.
//
// The zero value is an empty table.
type table struct {
	slots []byte
	at    slab.Addr // block of slots
	homes uint64
	n     int // records
}

// size returns the number of slots.
func (t *table) size() int { return len(t.slots) / slotSize }

func (t *table) slot(i int) uint64 { return binary.LittleEndian.Uint64(t.slots[i*slotSize:]) }

func (t *table) setSlot(i int, s uint64) { binary.LittleEndian.PutUint64(t.slots[i*slotSize:], s) }

func (t *table) home(frag uint64) int { return int(frag * t.homes >> fragBits) }

// first returns where the fragment's slots are, or would be put, in a table that has slots.
func (t *table) first(frag uint64) int {
	i := t.home(frag)
	for {
		s := t.slot(i)
		if s == 0 || s>>slab.AddrBits >= frag {
			return i
		}
		i++
	}
}

// next returns the first used slot at or behind i, and 0 if there is none.
func (t *table) next(i int) (int, uint64) {
	for ; i < t.size(); i++ {
		if s := t.slot(i); s != 0 {
			return i, s
		}
	}
	return i, 0
}

// insert puts s at slot i and moves the slots from there on. It returns false if the table has no
// room so near its end.
func (t *table) insert(i int, s uint64) bool {
	end := i
	for t.slot(end) != 0 {
		end++
	}
	if end == t.size()-1 {
		return false
	}
	copy(t.slots[(i+1)*slotSize:], t.slots[i*slotSize:end*slotSize])
	t.setSlot(i, s)
	t.n++
	return true
}

// remove empties slot i and moves the slots behind it nearer to their homes.
func (t *table) remove(i int) {
	end := i + 1
	for {
		s := t.slot(end)
		if s == 0 || t.home(s>>slab.AddrBits) == end {
			break
		}
		end++
	}
	copy(t.slots[i*slotSize:], t.slots[(i+1)*slotSize:end*slotSize])
	t.setSlot(end-1, 0)
	t.n--
}

// crowded reports whether the table must grow before another insert: over 80 % of the homes are
// taken.
func (t *table) crowded() bool { return uint64(t.n)*5 >= t.homes*4 }

// sparse reports whether the table takes more than four times the memory that it needs.
func (t *table) sparse() bool { return t.homes > 2*minSlots && uint64(t.n)*5 < t.homes }

// slack returns the number of slots behind the last home.
func (t *table) slack() int { return t.size() - int(t.homes) }

// resize moves the slots to a new block with room for n records.
func (t *table) resize(a *slab.Arena, n int) {
	slots := max(minSlots, n*4/3)
	t.move(a, slots, min(maxSlack, slots/4))
}

// grow makes the table a quarter larger: 80 % full before, it is 64 % full afterwards. A larger
// step would save little time (a record is moved four times on average) and cost memory.
func (t *table) grow(a *slab.Arena) { t.resize(a, max(t.size()*15/16, minSlots)) }

// lengthen makes more room behind the last home. No more than 64 slots should ever be needed there
// (the chance is below 1 in 10^11), but if they are, the table must not try to grow for ever.
func (t *table) lengthen(a *slab.Arena) { t.move(a, t.size(), t.slack()*2) }

// move moves the slots to a new block with at least the given number of slots besides the slack.
func (t *table) move(a *slab.Arena, slots, slack int) {
	old := *t
	for ; !t.fill(a, &old, slots, slack); slack *= 2 {
	}
	old.free(a)
}

// fill makes t a table with the content of old. It returns false, with nothing done, if the slack
// does not suffice.
func (t *table) fill(a *slab.Arena, old *table, slots, slack int) bool {
	bytes := slab.Round((slots + slack) * slotSize)
	at := a.Alloc(bytes)
	made := table{slots: a.Bytes(at)[:bytes:bytes], at: at, n: old.n}
	clear(made.slots)
	size := made.size()
	made.homes = uint64(size - slack)
	to := 0
	for from := 0; from < old.size(); from++ {
		s := old.slot(from)
		if s == 0 {
			continue
		}
		to = max(to, made.home(s>>slab.AddrBits))
		if to >= size-1 {
			made.free(a)
			return false
		}
		made.setSlot(to, s)
		to++
	}
	*t = made
	return true
}

func (t *table) free(a *slab.Arena) {
	if t.at != 0 {
		a.Free(t.at)
	}
	*t = table{}
}
