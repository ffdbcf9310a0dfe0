package memstore

// Update runs f, which may change the tree through the Batch and must not call the Tree itself.
// Readers see all of its changes or none; they wait until it returns. keys are those that f is
// going to change, in the order of the changes, or none; with them Put is faster.
func (t *Tree) Update(keys [][]byte, f func(*Batch)) {
	t.writer.Lock()
	defer t.writer.Unlock()
	t.leaves = t.leaves[:0]
	if !t.fingers.enclose(keys) {
		t.leaves = t.warm(keys, t.leaves)
		t.pointNear(keys)
	}
	t.update(f)
	t.releaseCleared()
}

// pointNear points fingers at the leaves of keys that were warmed, if the keys are near each other:
// puts that know their leaf point at none.
func (t *Tree) pointNear(keys [][]byte) {
	if n := len(t.leaves); n == 0 || t.leaves[0] != t.leaves[n/2] {
		return
	}
	for _, key := range [][]byte{keys[0], keys[len(keys)-1]} {
		t.descend(key)
		t.point()
	}
}

func (t *Tree) update(f func(*Batch)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batch.t = t
	f(&t.batch)
}

// Put stores the record of the i-th of the keys that Update was given, and returns what Tree.Put
// does. Where Update was given none, i is 0.
func (b *Batch) Put(i int, key, value []byte) (first byte, size int, existed bool) {
	t := b.t
	apart := makeApart(t.arena, key, value)
	return t.putAt(i, key, value, apart)
}

// PutJoined is Put for a value in two parts that are too large to be joined before they are stored.
func (b *Batch) PutJoined(key, head, tail []byte) (first byte, size int, existed bool) {
	t := b.t
	t.scratch = appendJoined(t.scratch[:0], t.arena, key, head, tail)
	return t.putScratch(key)
}

// PutMade is Put for a value that has been copied already. head is put in front of it, where room
// was left.
func (b *Batch) PutMade(key, head []byte, v *Value) (first byte, size int, existed bool) {
	copy(v.made.Bytes(), head)
	t := b.t
	t.scratch = appendMade(t.scratch[:0], key, v.size, t.arena.Adopt(v.made))
	return t.putScratch(key)
}

// Get returns the value of key, which is valid until the next change.
func (b *Batch) Get(key []byte) (value []byte, found bool) { return b.t.find(key) }

// Clear removes all records.
func (b *Batch) Clear() { b.t.reset(b.t.arena.Fresh()) }

// Free removes all records and gives all memory back, to the Reserve or soon to the operating
// system: nobody waits. The tree may be used again.
func (t *Tree) Free() { t.Update(nil, (*Batch).Clear) }
