package slab

import (
	"sync"
	"time"
)

// A Reserve keeps the chunks of Arenas that were released, with their pages, for the next Arenas
// that are made on it, but for chunks that gave some pages back. It is for an owner that releases
// an Arena and fills another one again and again.
//
// Each page of a new chunk costs a fault, under the lock of the owner's writers. The kernel clears
// a huge page in 0.1 ms. But in a virtual machine whose host has taken the memory back meanwhile
// the same fault takes 5 ms, and every client waits for it.
//
// A chunk that no Arena has needed for keepFor goes back to the operating system. Any goroutine may
// call the methods.
type Reserve struct {
	mu     sync.Mutex
	chunks []kept // the last one is taken first
	limit  int    // chunks
	least  int    // chunks that were always there since the latest trim
	timer  *time.Timer
	closed bool
}

// kept is a chunk in a Reserve.
type kept struct {
	mem  []byte
	huge bool
}

const keepFor = 10 * time.Second

// NewReserve returns an empty Reserve that keeps up to limit bytes.
func NewReserve(limit int64) *Reserve { return &Reserve{limit: int(limit / chunkSize)} }

// Bytes returns the memory that is kept, pages that were never touched included.
func (r *Reserve) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.chunks)) * chunkSize
}

// Close gives the memory back. From then on nothing is kept.
func (r *Reserve) Close() {
	r.mu.Lock()
	r.closed, r.least = true, len(r.chunks)
	r.mu.Unlock()
	r.trim()
}

// take returns a chunk, false if there is none or it is not wanted.
func (r *Reserve) take(wanted bool) (k kept, ok bool) {
	if r == nil || !wanted {
		return k, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.chunks) - 1
	if n < 0 {
		return k, false
	}
	k, r.chunks[n] = r.chunks[n], kept{}
	r.chunks = r.chunks[:n]
	r.least = min(r.least, n)
	return k, true
}

// put keeps a chunk, unless there is no room.
func (r *Reserve) put(k kept) (ok bool) {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.chunks) >= r.limit {
		return false
	}
	r.chunks = append(r.chunks, k)
	if r.timer == nil {
		r.timer = time.AfterFunc(keepFor, r.trim)
	}
	return true
}

// trim gives back the chunks that nobody has needed since the latest trim, the oldest ones, and
// comes again while there are chunks.
func (r *Reserve) trim() {
	for _, k := range r.unneeded() {
		unmapAll([][]byte{k.mem})
	}
}

// unneeded takes out what trim gives back.
func (r *Reserve) unneeded() []kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := append([]kept(nil), r.chunks[:r.least]...)
	r.chunks = append([]kept(nil), r.chunks[r.least:]...)
	r.least = len(r.chunks)
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if len(r.chunks) > 0 {
		r.timer = time.AfterFunc(keepFor, r.trim)
	}
	return gone
}
