package script

import (
	"sync"

	"gotycoon/db"
)

// holds keeps interpreters from waiting for each other in a circle. While a script's function runs as a visitor, or its
// transaction is open, something of a database is locked. Only one interpreter at a time does that to a database: it has a hold
// on it. One that has a hold takes another before it touches another database, even for a moment, so that all waiting is seen
// here; one that would wait for itself gets an error instead.
type holds struct {
	mu    sync.Mutex
	owner map[*db.DB]*holder
	freed chan struct{} // closed, and replaced, when a hold is given up
}

// holder is an interpreter as holds sees it. Its fields are guarded by holds.mu, but its own goroutine may read count.
type holder struct {
	count map[*db.DB]int
	waits *db.DB // nil: it does not wait
}

func (h *holds) init() { h.owner, h.freed = map[*db.DB]*holder{}, make(chan struct{}) }

// any tells whether the holder has a hold.
func (who *holder) any() bool { return len(who.count) > 0 }

// take takes a hold, once more where the holder has it. It reports false when the one who has it waits for this holder.
// stop ends the waiting; the hold is not taken then, either.
func (h *holds) take(who *holder, d *db.DB, stop <-chan struct{}) bool {
	for {
		freed, ok := h.try(who, d)
		if freed == nil {
			return ok
		}
		select {
		case <-freed:
		case <-stop:
			h.mu.Lock()
			who.waits = nil
			h.mu.Unlock()
			return false
		}
	}
}

// try takes a hold if it can. Else it returns what to wait for, nil when that would be for ever.
func (h *holds) try(who *holder, d *db.DB) (freed <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	who.waits = nil
	owner := h.owner[d]
	if owner == nil || owner == who {
		h.owner[d] = who
		if who.count == nil {
			who.count = map[*db.DB]int{}
		}
		who.count[d]++
		return nil, true
	}
	for next := owner; next != nil && next.waits != nil; next = h.owner[next.waits] {
		if h.owner[next.waits] == who {
			return nil, false
		}
	}
	who.waits = d
	return h.freed, false
}

// give gives up one hold.
func (h *holds) give(who *holder, d *db.DB) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if who.count[d]--; who.count[d] <= 0 {
		h.free(who, d)
	}
}

func (h *holds) free(who *holder, d *db.DB) {
	delete(who.count, d)
	if h.owner[d] == who {
		delete(h.owner, d)
	}
	close(h.freed)
	h.freed = make(chan struct{})
}

// releaseAll gives up everything at the end of a call.
func (h *holds) releaseAll(who *holder) {
	if !who.any() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range who.count {
		h.free(who, d)
	}
}
