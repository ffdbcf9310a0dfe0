package replication

import (
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
// It may lack nothing of them: of two masters, each is told stamps of its own updates and gets none
// of these updates. But the follower cannot know that, and would replace its data by copies.
const holdGrace = 3 * idleEvery

// followerHold is the hold of the log for a follower. The goroutine of the follower's connection
// owns it.
type followerHold struct {
	hold  *ulog.Hold
	grace time.Duration
	at    ulog.Stamp // an acknowledged stamp
	since time.Time  // when it was acknowledged; after the grace the hold moves on to at
}

// acknowledged notes that the follower has everything up to a stamp.
func (h *followerHold) acknowledged(at ulog.Stamp, now time.Time) {
	if now.Sub(h.since) < h.grace {
		return
	}
	h.hold.Advance(h.at)
	h.at, h.since = at, now
}
