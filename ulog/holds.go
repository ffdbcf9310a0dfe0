package ulog

import (
	"cmp"
	"maps"
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
// from taking updates. A weak hold may also have a bound in bytes (Holder.Most): beyond the bound
// no removal obeys it.
//
// A removal gives a hold up when it takes segments that the holder needs: because a time is over
// (Linger), because of the bound, or because the disk is full. The log then has a warning, once for
// each hold, since the holder will need a copy.
//
// Holds that must outlast the process are kept in a file, see lasting.go.

// A Kind is a sort of holder.
type Kind string

// The kinds of holders.
const (
	Database Kind = "database" // a database file, which has not taken all updates yet
	Snapshot Kind = "snapshot" // a snapshot, without its later updates, is no database
	Copy     Kind = "copy"     // a copy, snapshot or backup under way
	Follower Kind = "slave"    // a follower that is connected, or fetches copies
	Away     Kind = "away"     // a follower that has gone and may come back
	Pin      Kind = "hold"     // somebody has asked for it by a name, see Log.Pin
)

// A Holder says who holds segments.
type Holder struct {
	Kind Kind
	What string // names the holder for people
	Key  string // names a pin, or a follower across connections; empty: the hold is only this one
	Weak bool   // ReclaimFiles ignores the hold

	// Most is how many bytes of segments, without the newest, a weak hold may keep. A removal does
	// not obey a hold that would keep more. 0: any number.
	Most int64
	// Lasts is how long the hold of a follower with a Key lasts beyond the end of the process. 0:
	// it ends with the process.
	Lasts time.Duration
}

// A Hold keeps the segments of a log that may have updates newer than a stamp. It may be used by
// many goroutines. A nil Hold holds nothing, and its methods do nothing: databases without a log
// have a nil Hold.
type Hold struct {
	Holder
	in    *holds
	since time.Time
	stamp atomic.Uint64 // the holder has everything up to here; never falls
	until atomic.Int64  // UnixNano of the moment at which the hold ends by itself; 0: it does not
	gone  func() bool   // nil: only Release ends the hold; guarded by in.mu
	told  bool          // the log has said that the hold is given up; guarded by in.removing
}

// holds is the registry of a log.
type holds struct {
	removing sync.Mutex  // held over removals and the registration of holds
	mu       *sync.Mutex // Log.mu: a removal looks at the holds and at the log at one moment
	now      func() time.Time
	all      map[*Hold]struct{} // guarded by mu

	// See lasting.go.
	saving  sync.Mutex // held over the writing of the file, and while a pin changes
	saved   []byte     // what the file holds; guarded by saving
	savedAt time.Time  // when it was written; guarded by saving
}

// add registers a hold. A follower that has come back has a hold of its own, and ends what was held
// for it while it was away.
func (hs *holds) add(by Holder, from Stamp) *Hold {
	h := &Hold{Holder: by, in: hs, since: hs.now()}
	h.stamp.Store(uint64(from))
	hs.removing.Lock()
	defer hs.removing.Unlock()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if by.Kind == Follower && by.Key != "" {
		maps.DeleteFunc(hs.all, func(h *Hold, _ struct{}) bool { return h.Kind == Away && h.Key == by.Key })
	}
	hs.all[h] = struct{}{}
	return h
}

// pinned reports whether there is a pin that has not ended: somebody may be copying files of the
// log.
func (hs *holds) pinned() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for h := range hs.all {
		if h.Kind == Pin && !h.Ended() {
			return true
		}
	}
	return false
}

// mostAway is for how many followers that have gone a log is held; one more ends the oldest hold.
const mostAway = 64

// Leave ends the hold of a follower that goes, and holds the log for it for a time instead, or
// until a follower with the same Key has a hold again, if that is earlier.
//
// The follower may have connected again before the end of its former connection was noticed. Then
// it has a hold already, and none is left for it.
func (h *Hold) Leave(d time.Duration) {
	away := &Hold{Holder: h.away(), in: h.in, since: h.in.now()}
	away.stamp.Store(h.stamp.Load())
	away.Linger(d)
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	delete(h.in.all, h)
	if len(h.in.live(func(o *Hold) bool { return o.Kind == h.Kind && o.Key == h.Key })) > 0 {
		return
	}
	h.in.all[away] = struct{}{}
	all := h.in.live(func(o *Hold) bool { return o.Kind == Away })
	slices.SortFunc(all, func(a, b *Hold) int { return a.since.Compare(b.since) })
	for len(all) > mostAway {
		delete(h.in.all, all[0])
		all = all[1:]
	}
}

// away describes the same follower after it has gone.
func (by Holder) away() Holder {
	by.Kind = Away
	by.What += ", which has gone and may come back"
	return by
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
// has taken its segments. A holder that must not lose its segments registers a new hold and
// releases this one.
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

// live returns the holds that have not ended and that which chooses, in the order of their stamps.
// The caller holds Log.mu.
func (hs *holds) live(which func(*Hold) bool) []*Hold {
	var all []*Hold
	for h := range hs.all {
		if !h.Ended() && which(h) {
			all = append(all, h)
		}
	}
	sortHolds(all)
	return all
}

// sortHolds sorts holds by their stamps, the holder that is furthest behind first.
func sortHolds(all []*Hold) {
	slices.SortFunc(all, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(a.From(), b.From()), strings.Compare(a.What, b.What))
	})
}

// forgetEnded removes the holds that have ended from the registry, without those whose end is told
// when it costs the holder something. The caller holds Log.mu.
func (hs *holds) forgetEnded() {
	maps.DeleteFunc(hs.all, func(h *Hold, _ struct{}) bool {
		return h.Ended() && h.Kind != Away && h.Kind != Pin
	})
}

// everyHold chooses all holds.
func everyHold(*Hold) bool { return true }
