package replication

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/ulog"
)

// Replica describes a follower of this server.
type Replica struct {
	ID       int64      // number of the connection
	Peer     string     // its address
	SID      uint16     // its server ID; with White the ID of another server
	White    bool       // it wants only the updates of the server SID
	Ours     bool       // it is a server of our kind, not of the original
	State    State      // Streaming, Copying, Stalled or Gap
	Since    time.Time  // when it connected
	Position ulog.Stamp // it has acknowledged everything up to this stamp; 0: nothing yet
	Contact  time.Time  // when it last acknowledged something
	Seconds  float64    // how long it has lacked updates; 0: it has everything. May be Unknown
	Records  int64      // updates that it lacks; may be Unknown
}

// Replicas lists the followers of a server, across restarts of its port. The zero value is ready
// for use by many goroutines.
type Replicas struct {
	mu   sync.Mutex
	next int64
	open map[*replica]struct{}
	n    atomic.Int64
}

// replica is a follower on its connection. The goroutine of the connection sets its fields.
type replica struct {
	log   *ulog.Log
	hold  *followerHold // nil while it copies
	info  Replica       // the fields that do not change
	asked atomic.Int64  // UnixNano of the heartbeat that is not acknowledged yet; 0: none
	heard atomic.Int64  // UnixNano of the last acknowledgement

	gap, copying atomic.Bool
	position     atomic.Uint64
	had          atomic.Int64 // UnixNano of the last moment when it had everything; 0: none yet
	delivered    atomic.Int64 // updates of the log that were sent or passed over, or Unknown
	acked        atomic.Int64 // delivered at the last acknowledgement, or Unknown
}

// add lists a follower.
func (rs *Replicas) add(log *ulog.Log, peer string, f frame.Follow) *replica {
	now := time.Now()
	r := &replica{log: log, info: Replica{Peer: peer, SID: f.SID, White: f.Flags&frame.WhiteSID != 0, Ours: f.Extended(), Since: now}}
	r.delivered.Store(Unknown)
	r.acked.Store(Unknown)
	r.heard.Store(now.UnixNano())
	r.position.Store(f.TS)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.next++
	r.info.ID = rs.next
	if rs.open == nil {
		rs.open = map[*replica]struct{}{}
	}
	rs.open[r] = struct{}{}
	rs.n.Add(1)
	return r
}

func (rs *Replicas) remove(r *replica) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.open, r)
	rs.n.Add(-1)
}

// len returns how many followers there are.
func (rs *Replicas) len() int { return int(rs.n.Load()) }

// List returns the followers in the order in which they came.
func (rs *Replicas) List() []Replica {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := make([]Replica, 0, len(rs.open))
	now := time.Now()
	for r := range rs.open {
		list = append(list, r.look(now))
	}
	slices.SortFunc(list, func(a, b Replica) int { return int(a.ID - b.ID) })
	return list
}

// sending notes how far the stream has come.
func (r *replica) sending(reader *ulog.Reader) {
	if n, known := reader.Delivered(); known && n <= math.MaxInt64 {
		r.delivered.Store(int64(n))
	}
}

// asking notes that a heartbeat has been sent.
func (r *replica) asking(at time.Time) { r.asked.Store(at.UnixNano()) }

// acknowledged notes that the follower has everything up to a stamp, which was the end of the log
// when the heartbeat was sent.
func (r *replica) acknowledged(at ulog.Stamp, asked time.Time) {
	r.hold.acknowledged(at, time.Now())
	r.acked.Store(r.delivered.Load())
	r.position.Store(uint64(at))
	r.had.Store(asked.UnixNano())
	r.heard.Store(time.Now().UnixNano())
	r.asked.Store(0)
}

// unsent returns how many updates have still to be sent.
func (r *replica) unsent() (n uint64, known bool) { return r.behind(r.delivered.Load()) }

// behind returns how many updates follow the first n updates of the log.
func (r *replica) behind(n int64) (updates uint64, known bool) {
	if n < 0 {
		return 0, false
	}
	all := r.log.Updates()
	return max(all, uint64(n)) - uint64(n), true
}

// look returns the present description.
func (r *replica) look(now time.Time) Replica {
	i := r.info
	i.Position, i.Contact = ulog.Stamp(r.position.Load()), time.Unix(0, r.heard.Load())
	i.State, i.Seconds, i.Records = Streaming, Unknown, Unknown
	n, known := r.behind(r.acked.Load())
	if known {
		i.Records = int64(n)
	}
	unanswered := r.asked.Load() != 0 && now.Sub(time.Unix(0, r.asked.Load())) > stallAfter
	switch had := r.had.Load(); {
	case r.copying.Load():
		i.State, i.Position = Copying, 0
		return i
	case had != 0 && known && n == 0 && !unanswered:
		i.Seconds = 0
	case had != 0:
		i.Seconds = now.Sub(time.Unix(0, had)).Seconds()
	case i.Position > 0:
		i.Seconds = max(0, now.Sub(i.Position.Time()).Seconds())
	}
	switch {
	case r.gap.Load():
		i.State = Gap
	case unanswered:
		i.State = Stalled
	}
	return i
}
