package replication

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"gotycoon/binproto/frame"
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

// A follower whose connection has ended comes back within seconds, mostly, and asks from where it was. If its hold went with the
// connection, a removal in between would take what it needs, and it would replace its data by copies. So the hold stays for awayLinger, as
// a weak one of its own in the list, until the same follower takes it over. Only followers with extended streams are waited for: they are
// servers of this kind. An original slave cannot be told from "ktremotemgr slave", which is not expected back, and after which files of the
// log are to be removed.

const (
	awayLinger = 2 * time.Minute // how long the log is held for a follower that has gone
	mostAway   = 64              // of them; the one that has gone first is forgotten for another
)

// followerID says which followers are the same.
type followerID struct {
	sid  uint16
	host string
}

func idOf(f frame.Follow, peer string) followerID {
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		host = peer
	}
	return followerID{f.SID, host}
}

// awayHolds holds the log for followers that have gone. The zero value is ready for use.
type awayHolds struct {
	mu  sync.Mutex
	all []awayHold // the one that went first is the first
}

type awayHold struct {
	who  followerID
	hold *ulog.Hold
}

// leave goes on with the hold of a follower that goes.
func (a *awayHolds) leave(log *ulog.Log, who followerID, hold *ulog.Hold) {
	h := log.HoldWeakly(fmt.Sprintf("the slave with sid=%d, which has gone and may come back", who.sid), hold.From())
	h.Linger(awayLinger)
	hold.Release()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(func(other awayHold) bool { return other.hold.Ended() })
	a.all = append(a.all, awayHold{who, h})
	if extra := len(a.all) - mostAway; extra > 0 {
		n := 0
		a.forget(func(awayHold) bool { n++; return n <= extra })
	}
}

// back ends the holds for a follower that has come back, and has another one now.
func (a *awayHolds) back(who followerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(func(h awayHold) bool { return h.who == who })
}

// forget releases some holds. The caller holds mu.
func (a *awayHolds) forget(which func(awayHold) bool) {
	a.all = slices.DeleteFunc(a.all, func(h awayHold) bool {
		gone := which(h)
		if gone {
			h.hold.Release()
		}
		return gone
	})
}
