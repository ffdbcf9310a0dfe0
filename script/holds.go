package script

import (
	"sync"

	"gotycoon/db"
)

// holds keeps script calls from waiting for each other in a circle.
//
// A call keeps something of a database locked while its visitor runs or its transaction is open.
// Suppose that call A is in a transaction of database 1 and reads database 2, while call B is in a
// transaction of database 2 and reads database 1. Each would wait for the other one for ever, and
// with them every client of both databases.
//
// The rule: only one call at a time may keep something of a database locked, and this call has the
// hold on the database. A call that has a hold takes a second hold before it touches another
// database, even for a single read. So all waiting of such calls passes through take, which knows
// who waits for whom. The call whose wait would close the circle gets an error instead.
//
// In the example, A has the hold on 1 and B the hold on 2. A waits in take for 2. B asks for 1, and
// take sees that 1 belongs to A and that A waits for B: B gets the error, gives up its hold at its
// end, and A goes on.
//
// Taking the holds in the order of the databases would avoid circles without errors, but nobody
// knows in advance which databases a script will use.
type holds struct {
	mu    sync.Mutex
	owner map[*db.DB]*holder
	freed chan struct{} // closed, and replaced, when a hold is given up
}

// holder is an interpreter as holds sees it. holds.mu protects its fields. The goroutine of the
// call may read count without the lock, because only this goroutine changes count.
type holder struct {
	count map[*db.DB]int
	waits *db.DB // nil: it does not wait
}

func (h *holds) init() { h.owner, h.freed = map[*db.DB]*holder{}, make(chan struct{}) }

// any reports whether the holder has a hold.
func (who *holder) any() bool { return len(who.count) > 0 }

// take takes the hold on a database; the owner of the hold may take it several times. While another
// holder owns it, take waits. It returns false if the owner waits for who, directly or through
// others, and when stop is closed.
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

// try takes a hold if nobody else has it; then ok is true and freed is nil. Otherwise ok is false,
// and freed is the channel to wait for, or nil if the wait would close a circle.
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

// releaseAll gives up all holds at the end of a call.
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
