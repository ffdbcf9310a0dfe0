package ulog

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// # Retention: which segments may go
//
// A segment may be removed when nobody needs an update in it any more. Many need updates: a
// database file needs those after its last checkpoint, a database in memory those after its newest
// snapshot on the disk, a follower those that it has not acknowledged, a copy those after its
// instant. The log cannot know any of these stamps, and none of the holders knows the others.
// Therefore each holder registers a Hold with the log. A Hold has a stamp, which says: "I have
// every update up to this stamp, and need the later ones." The holder moves the stamp on only after
// the updates up to the new stamp are durable on its side. RemoveFiles obeys all holds, whatever
// stamp its caller names.
//
// Rejected: the caller of RemoveFiles asks all holders for their stamps and passes the smallest
// one. That fails in two ways. A holder is forgotten: the caller asked the database files, but the
// snapshot of a database in memory was older than all of them. Or an answer is stale: the caller
// notes the last stamp of the newest segment, updates go on in it while a snapshot is written, and
// the caller then judges the segment by the stamp that it noted.
//
// RemoveFiles decides on one look at the log: under Log.mu it takes the number of the newest
// segment together with the stamps of all holds. Segments with a smaller number do not change any
// more, and their headers are final (see rotate), so RemoveFiles judges each of them by its real
// last stamp. The newest segment stays, and so do segments that are begun meanwhile. A holder that
// registers at the same time waits for holds.removing: either the removal sees its hold, or the
// hold begins after the removal and keeps the segments that are left. If the holder needed a
// removed segment, Reader.Next returns a gap.
//
//	segments      1          2          3            4 (newest)
//	last stamps   100        200        300          …
//	holds                       │ a.kct 210    │ follower 305
//	RemoveFiles(max) removes 1 and 2. Segment 3 has updates that a.kct lacks.
//
// Some holders can do without their updates: a follower that has missed updates fetches a copy of
// the databases. Such a holder registers a weak hold. RemoveFiles obeys a weak hold, ReclaimFiles
// does not. ReclaimFiles is for a full disk: a follower that stands still must not stop the server
// from taking updates.

// A Hold keeps the segments of a log that may have updates newer than a stamp. It may be used by
// many goroutines. A nil Hold holds nothing, and its methods do nothing: databases without a log
// have a nil Hold.
type Hold struct {
	in    *holds
	what  string
	weak  bool
	stamp atomic.Uint64 // the holder has everything up to here; never falls
	until atomic.Int64  // UnixNano of the moment at which the hold ends by itself; 0: it does not
	gone  func() bool   // nil: only Release ends the hold; guarded by in.mu
}

// HoldInfo describes a hold for people.
type HoldInfo struct {
	What  string // who holds
	From  Stamp  // updates newer than this are kept
	Weak  bool   // ReclaimFiles ignores the hold
	Bytes int64  // size of the segments with updates newer than From, without the newest segment
}

// holds is the registry of a log.
type holds struct {
	removing sync.Mutex  // held over removals and the registration of holds
	mu       *sync.Mutex // Log.mu: a removal looks at the holds and at the log at one moment
	now      func() time.Time
	all      map[*Hold]struct{} // guarded by mu
}

// add registers a hold, see Log.Hold.
func (hs *holds) add(what string, from Stamp, weak bool) *Hold {
	h := &Hold{in: hs, what: what, weak: weak}
	h.stamp.Store(uint64(from))
	hs.removing.Lock()
	defer hs.removing.Unlock()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.all[h] = struct{}{}
	return h
}

// Advance says that the holder has everything up to a stamp and will never need it again. A stamp
// that is not newer changes nothing.
func (h *Hold) Advance(to Stamp) {
	if h == nil {
		return
	}
	for {
		at := h.stamp.Load()
		if uint64(to) <= at || h.stamp.CompareAndSwap(at, uint64(to)) {
			return
		}
	}
}

// From returns the stamp that the holder has come to.
func (h *Hold) From() Stamp {
	if h == nil {
		return maxStamp
	}
	return Stamp(h.stamp.Load())
}

// Linger has the hold end by itself after a time, unless another call renews it before. A time of 0
// makes the hold last again. A renewal may come too late: a removal that has found the hold ended
// forgets it, and the hold keeps nothing any more. A holder that must not lose its segments
// registers a new hold and releases this one.
func (h *Hold) Linger(d time.Duration) {
	if h == nil {
		return
	}
	until := int64(0)
	if d > 0 {
		until = h.in.now().Add(d).UnixNano()
	}
	h.until.Store(until)
}

// Ended reports whether a hold that lingers has ended.
func (h *Hold) Ended() bool {
	if h == nil {
		return true
	}
	until := h.until.Load()
	return until != 0 && h.in.now().UnixNano() >= until
}

// EndsWith registers a function that reports whether the holder has gone. A removal calls gone, and
// releases the hold if the answer is true. The goroutine of a follower notices a closed connection
// only at the next heartbeat, but a user who removes files right after a follower has ended expects
// that the follower does not count any more.
func (h *Hold) EndsWith(gone func() bool) {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	h.gone = gone
}

// releaseGone releases the holds of holders that have gone. The caller holds holds.removing.
func (hs *holds) releaseGone() {
	var ask []*Hold
	hs.mu.Lock()
	for h := range hs.all {
		if h.gone != nil {
			ask = append(ask, h)
		}
	}
	hs.mu.Unlock()
	for _, h := range ask {
		if h.gone() {
			h.Release()
		}
	}
}

// Release ends the hold. Releasing twice is fine.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	delete(h.in.all, h)
}

// live returns the holds that have not ended, in the order of their stamps, and forgets the others.
// The caller holds Log.mu.
func (hs *holds) live() []*Hold {
	var all []*Hold
	for h := range hs.all {
		if h.Ended() {
			delete(hs.all, h)
			continue
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(a.From(), b.From()), strings.Compare(a.what, b.what))
	})
	return all
}
