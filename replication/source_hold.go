package replication

import (
	"time"

	"gotycoon/ulog"
)

// holdGrace is how long the log is held beyond the acknowledgement of a follower.
//
// A follower acknowledges what it has, and makes a note of its position on its disk later: one of our kind with the next update, and
// otherwise every ten seconds (idleEvery); one of the original when it likes. After a crash it asks from the note. If the log were held from the
// acknowledgement on, the updates between the two could be gone. They need not be anything that the follower lacks: of two masters each
// is told of stamps of its own updates, and gets none of them. But the follower cannot know that, and would replace its data by copies.
const holdGrace = 3 * idleEvery

// followerHold is the hold of the log for a follower on its connection, whose goroutine it belongs to.
type followerHold struct {
	hold  *ulog.Hold
	grace time.Duration
	at    ulog.Stamp // what the follower had acknowledged
	since time.Time  // at this time; the hold moves on to at when the grace is over
}

// acknowledged notes that the follower has everything up to a stamp.
func (h *followerHold) acknowledged(at ulog.Stamp, now time.Time) {
	if now.Sub(h.since) < h.grace {
		return
	}
	h.hold.Advance(h.at)
	h.at, h.since = at, now
}
