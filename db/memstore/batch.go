package memstore

import "gotycoon/db/memstore/slab"

// Batch changes a Tree during an Update.
type Batch struct{ t *Tree }

// Update runs f, which may change the tree through the Batch and must not call the Tree itself. Readers see all of its
// changes or none; they wait until it returns.
func (t *Tree) Update(f func(*Batch)) {
	t.writer.Lock()
	defer t.writer.Unlock()
	t.update(f)
	t.releaseCleared()
}

func (t *Tree) update(f func(*Batch)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&Batch{t})
}

// releaseCleared gives memory back, which takes a fifth of a second for a GiB. The caller holds writer only.
func (t *Tree) releaseCleared() {
	for _, a := range t.cleared {
		a.Release()
	}
	t.cleared = nil
}

// Put stores a record.
func (b *Batch) Put(key, value []byte) { b.Replace(key, value) }

// Replace stores a record and tells about the value it replaces, as Tree.Replace does.
func (b *Batch) Replace(key, value []byte) (first byte, size int, existed bool) {
	return b.t.put(key, value, makeApart(b.t.arena, key, value))
}

// ReplaceJoined is Replace for a value in two parts, which are too large to be joined before they are stored.
func (b *Batch) ReplaceJoined(key, head, tail []byte) (first byte, size int, existed bool) {
	return b.t.putJoined(key, head, tail)
}

// ReplaceMade is Replace for a value that has been copied already, in front of which head is put where there was room left for it.
func (b *Batch) ReplaceMade(key, head []byte, v *Value) (first byte, size int, existed bool) {
	copy(v.made.Bytes(), head)
	t := b.t
	t.scratch = appendMade(t.scratch[:0], key, v.size, t.arena.Adopt(v.made))
	return t.putScratch(key)
}

// Get returns the value of key, which is valid until the next change.
func (b *Batch) Get(key []byte) (value []byte, found bool) { return b.t.find(key) }

// Delete removes a record.
func (b *Batch) Delete(key []byte) (existed bool) { return b.t.remove(key) }

// Clear removes all records.
func (b *Batch) Clear() { b.t.reset(slab.New()) }

// reset empties the tree and makes it use a fresh arena. The caller holds the locks.
func (t *Tree) reset(fresh *slab.Arena) {
	t.cleared = append(t.cleared, t.arena)
	t.arena, t.root, t.count = fresh, 0, 0
}
