package slab

import "sync"

// A reaper gives memory back to the operating system while nobody waits: a GiB that has been
// touched takes a fifth of a second. Without the reaper, the clear of a database, or the update
// that replaces a value of 250 MiB, would make every writer wait for so long, because the owner of
// an Arena frees blocks under the lock of its writers.
//
// An Arena and those made by its Fresh share a reaper. Its goroutines know of nothing but the
// memory that they give back, and end by themselves; whoever has to see the memory gone calls
// Arena.Wait.
type reaper struct {
	wg   sync.WaitGroup
	park func() // of tests: called before memory is given back; nil: nothing to call
}

// reapSize is the size of memory that is worth a goroutine.
const reapSize = 8 << 20

// reapPiece is how much is given back at a time, in about a millisecond: meanwhile the kernel makes
// other mappings of the process wait.
const reapPiece = 4 << 20

// unmap gives mappings back. size is the sum of their lengths, or more, if the caller is in a
// hurry.
func (r *reaper) unmap(size int64, all ...[]byte) {
	if size < reapSize {
		unmapAll(all)
		return
	}
	r.wg.Go(func() {
		if r.park != nil {
			r.park()
		}
		unmapAll(all)
	})
}

func unmapAll(all [][]byte) {
	for _, mem := range all {
		for rest := mem; len(rest) > reapPiece; rest = rest[reapPiece:] {
			discard(rest[:reapPiece])
		}
		unmapMemory(mem)
	}
}
