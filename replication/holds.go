package replication

import (
	"fmt"
	"sync"
	"time"

	"gotycoon/ulog"
)

// holdGrace is how long the log is held for a follower after it has acknowledged updates.
//
// A follower acknowledges updates first, and writes its position to its disk later: a follower of
// our kind with the next update or within ten seconds (idleEvery), a slave of the original when it
// likes. After a crash it asks from the position on its disk. If the hold moved on with the
// acknowledgement, the segments in between could be removed, and the follower would meet a gap:
//
//	12:00:00  the follower's disk has position 100
//	12:00:05  it acknowledges 200; the log removes the segment with 100 to 200
//	12:00:06  it crashes, and asks for the updates after 100: a gap
//
// Perhaps the follower lacks none of the removed updates. When two servers follow each other and
// clients write to one of them, the other server's log consists of updates that it has from there;
// the writing server is sent the stamps of these updates and none of the updates. But it cannot
// know that the gap held nothing else, and would replace its data by copies.
const holdGrace = 3 * idleEvery

// followerHold is the hold of the log for a follower. The goroutine of the follower's connection
// owns it.
type followerHold struct {
	hold  *ulog.Hold
	grace time.Duration
	at    ulog.Stamp // an acknowledged stamp
	since time.Time  // when at was acknowledged; after the grace the hold moves on to at
}

// acknowledged notes that the follower has everything up to a stamp. When the noted stamp is older
// than the grace, the hold moves on to it, and the new stamp is noted in its place. Stamps that are
// acknowledged in between are not noted.
func (h *followerHold) acknowledged(at ulog.Stamp, now time.Time) {
	if now.Sub(h.since) < h.grace {
		return
	}
	h.hold.Advance(h.at)
	h.at, h.since = at, now
}

// A follower whose connection has ended mostly comes back within seconds, and asks from where it
// was. If its hold ended with the connection, the segments that it needs could be removed before it
// is back, and it would replace its data by copies. So the log is held for SourceOptions.Away, or
// until the same follower has a hold of its own again, if that is earlier. Only followers with
// extended streams are waited for: they are servers of our kind. A slave of the original cannot be
// told from "ktremotemgr slave", a command that does not come back and must not keep log files.
//
// A restart of this server is an end of all connections, too: see ulog.(*Log).SaveHolds.

// awayLinger is how long the log is held for a follower that has gone, if nothing else is said.
const awayLinger = 2 * time.Minute

// A follower that fetches copies goes on in the log from the instant of the first copy. Each copy
// is a connection of its own, and its Frozen holds the log only while it is under way. If nothing
// else held the log, updates behind the first copy could be gone when the last one is complete: the
// follower would meet a gap, and would begin anew for ever. So the log is held for the follower
// from its first copy until copyLinger after the last, also while a copy is interrupted. After that
// the follower's stream has a hold of its own.
//
// The hold is weak: when the disk is nearly full, the log is removed in spite of the hold, and the
// follower begins anew. It has no bound in bytes: a bound that is smaller than what is written
// while a database is copied would have the follower copy for ever.

// copyLinger is how long the log is held for a follower between two copies, and after the last one.
const copyLinger = 2 * time.Minute

// copyHolds holds the log for followers that fetch copies, by their server IDs. The zero value is
// ready for use.
type copyHolds struct {
	mu   sync.Mutex
	open map[uint16]*copyHold
}

// copyHold holds the log for one follower.
type copyHold struct {
	hold   *ulog.Hold
	copies int // under way
}

// begin holds the log for a follower whose copy begins. The caller calls release when the copy has
// ended.
//
// The first of the copies under way takes a new hold, from the stamp of the lingering hold. It must
// not renew the lingering hold: a removal of log files may just have found that hold ended and
// forgotten it. A forgotten hold holds nothing, even when it is renewed.
func (cs *copyHolds) begin(log *ulog.Log, sid uint16) (release func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h := cs.open[sid]
	if h == nil {
		h = &copyHold{}
		if cs.open == nil {
			cs.open = map[uint16]*copyHold{}
		}
		cs.open[sid] = h
	}
	if h.copies == 0 {
		from := log.Last()
		if !h.hold.Ended() {
			from = h.hold.From()
		}
		lingering := h.hold
		what := fmt.Sprintf("the slave with sid=%d, which fetches copies", sid)
		h.hold = log.Hold(ulog.Holder{Kind: ulog.Follower, What: what, Weak: true}, from)
		lingering.Release()
	}
	h.copies++
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if h.copies--; h.copies == 0 {
			h.hold.Linger(copyLinger)
		}
	}
}
