package replication

import (
	"fmt"
	"sync"
	"time"

	"gotycoon/ulog"
)

// A follower that fetches copies follows the log afterwards, from the stamp of the first of them. Each copy is a connection of its own, and
// its Frozen holds the log only as long as it is under way: what came after the first copy would be gone when the last one is complete, and
// the follower would have to begin anew, for ever. Therefore the log is held for the follower from its first copy until some time after the
// last one, also when a copy is interrupted and goes on. A follower that follows has a hold of its own then.
//
// The hold is a weak one: when the disk is full it does not count, and the follower begins anew.

// copyLinger is how long the log is held for a follower between two copies, and after the last one.
const copyLinger = 2 * time.Minute

// copyHolds holds the log for followers that fetch copies, by their server IDs. The zero value is ready for use.
type copyHolds struct {
	mu   sync.Mutex
	open map[uint16]*copyHold
}

// copyHold is what one follower holds.
type copyHold struct {
	hold   *ulog.Hold
	copies int // under way
}

// begin holds the log for a follower whose copy begins. release is called when the copy has ended.
func (cs *copyHolds) begin(log *ulog.Log, sid uint16) (release func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h := cs.open[sid]
	if h == nil || h.copies == 0 && h.hold.Ended() {
		h = &copyHold{hold: log.HoldWeakly(fmt.Sprintf("the slave with sid=%d, which fetches copies", sid), log.Last())}
		if cs.open == nil {
			cs.open = map[uint16]*copyHold{}
		}
		cs.open[sid] = h
	}
	h.copies++
	h.hold.Linger(0)
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if h.copies--; h.copies == 0 {
			h.hold.Linger(copyLinger)
		}
	}
}
