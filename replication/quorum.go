package replication

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/ulog"
)

// MaxReplicas is how many followers can be waited for.
const MaxReplicas = 15

// QuorumOptions are what a Quorum is told at its beginning.
type QuorumOptions struct {
	Log      *ulog.Log // whose answers wait; nil: the caller asks the Quorum itself
	SID      uint16    // of this server: a follower with the same ID is sent nothing, and never counts
	Required int       // followers that must have an update (-sync-replicas)
	Timeout  time.Duration
	// Databases is the largest number of followers that a database requires (#syncrep=).
	Databases int
	// Always has all answers ask the Quorum, also while no follower is required: a Fence then stops
	// the answers that are under way.
	Always  bool
	Degrade bool // go on without followers after the timeout; otherwise refuse
	Logger  *slog.Logger
}

// Quorum knows up to which stamp enough followers have acknowledged this server's log. It
// implements ulog.Confirmer, and is used by many goroutines.
//
// # Who counts
//
// A follower counts when its stream carries all updates of this server, and it is of our kind:
//
//   - Followers are told apart by their server IDs. The same server connected twice counts once,
//     and so do two servers with one ID, by mistake: one of them has what either acknowledged.
//   - A follower with this server's own ID is sent none of this server's updates.
//   - A stream of one server's updates (frame.WhiteSID), with a gap, or of a copy lacks updates.
//   - A slave of the original cannot be told from "ktremotemgr slave", a command that acknowledges
//     everything and stores nothing. So slaves of the original are fed, and do not count.
//
// A follower is there from its first acknowledgement, which says that it has the log up to the end
// that the log had when it was asked, until it disconnects, or is late: a wait has timed out, and
// the follower had not acknowledged its stamp.
//
// # Watermarks
//
// For each number n of followers there is a level. Its watermark is the n-th largest of the stamps
// that followers which count have acknowledged, and it never falls: a follower that goes has taken
// the updates with it. Waits of a level are in the order of their stamps, mostly they come in that
// order; one acknowledgement ends all waits up to the watermark.
//
// Example with n = 1 and two followers. A acknowledges 100, B 90: the watermark is 100. A
// disconnects: the watermark stays, 100 is on A's disk. B acknowledges 95, and then 110: only now
// the watermark is 110.
//
// # What was rejected
//
// The follower's position in its request as a first acknowledgement: a slave that is started with
// the position of a copy claims what the copy had, and nobody knows whether that was true. The
// first heartbeat comes within a round trip. And counting acknowledgements of each update, as a
// majority protocol does: a log is acknowledged in order, so one stamp for each follower says all.
type Quorum struct {
	opts     QuorumOptions
	required atomic.Int32
	present  atomic.Int32          // followers that count and are there
	fence    atomic.Pointer[error] // nil: there is none
	wanted   atomic.Uint64         // newest stamp that anybody has waited for
	levels   [MaxReplicas + 1]level
	figures  quorumFigures
	waits    sync.Pool // of *wait

	mu      sync.Mutex // guards the fields below, and those of levels that say so
	counts  func(sid uint16) bool
	members map[uint16]*member
	watches []*watch
	said    []func() // lines for the log, which nobody writes while holding mu
}

// unlock releases mu, and then writes the lines that have gathered.
func (q *Quorum) unlock() {
	said := q.said
	q.said = nil
	q.mu.Unlock()
	for _, say := range said {
		say()
	}
}

var _ ulog.Confirmer = (*Quorum)(nil)

// level is what n followers have acknowledged; n is its index in Quorum.levels.
type level struct {
	confirmed atomic.Uint64 // watermark
	degraded  atomic.Bool   // answers do not wait, see QuorumOptions.Degrade

	// Guarded by Quorum.mu.
	waits []*wait   // in the order of their stamps
	since time.Time // since when fewer than n followers are there; zero: they are there
}

// member is a server that follows this one, or has done so.
type member struct {
	sid   uint16
	peer  string // address of its newest connection
	seen  time.Time
	votes []*vote // its connections
}

// vote is what a follower says on one connection.
type vote struct {
	quorum *Quorum
	member *member
	kick   chan struct{} // of one: somebody waits for a stamp that the follower was not asked for
	asked  atomic.Uint64 // newest stamp that the follower was asked for

	// Guarded by Quorum.mu.
	acked ulog.Stamp // 0: nothing yet
	late  bool
}

// wait is a goroutine that waits until n followers have acknowledged a stamp.
type wait struct {
	n     int
	at    ulog.Stamp
	soft  bool       // degraded levels do not wait
	ended chan error // of one
	timer *time.Timer
}

func newWait() any {
	w := &wait{ended: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}

// end ends a wait that has been taken out of its level, or is about to be.
func (w *wait) end(err error) { w.ended <- err }

// quorumFigures count what waits have come to.
type quorumFigures struct {
	waiting                        atomic.Int64
	refused, unconfirmed, degraded atomic.Int64
}

// NewQuorum returns a Quorum without followers.
func NewQuorum(o QuorumOptions) *Quorum {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	q := &Quorum{opts: o, members: map[uint16]*member{}}
	q.required.Store(int32(o.Required))
	q.waits.New = newWait
	now := time.Now()
	for n := range q.levels {
		q.levels[n].since = now
	}
	q.levels[0].confirmed.Store(uint64(everything))
	q.ask(o.Always || o.Required > 0 || o.Databases > 0)
	return q
}

// ask has answers wait for the Quorum, those of clients that do not ask for followers only where
// usual is true. Otherwise such an answer costs one look at a pointer.
func (q *Quorum) ask(usual bool) {
	if q.opts.Log != nil {
		q.opts.Log.SetConfirmer(q, usual)
	}
}

// everything is a stamp that no update reaches.
const everything = ulog.Stamp(1<<64 - 1)

// Required implements ulog.Confirmer.
func (q *Quorum) Required() int { return int(q.required.Load()) }

// SetRequired changes how many followers must have an update. Waits under way keep their number.
func (q *Quorum) SetRequired(n int) {
	q.mu.Lock()
	defer q.unlock()
	q.required.Store(int32(min(max(n, 0), MaxReplicas)))
	q.ask(n > 0)
	q.tellWatches()
}

// Fence has every wait end with err from now on, those under way too: this server must not
// acknowledge anything any more. That holds for databases and requests that require no follower as
// well, see QuorumOptions.Always. Unfence ends it.
func (q *Quorum) Fence(err error) {
	q.mu.Lock()
	defer q.unlock()
	q.fence.Store(&err)
	q.ask(true)
	for n := range q.levels {
		l := &q.levels[n]
		for _, w := range l.waits {
			w.end(err)
		}
		l.waits = nil
	}
}

// Unfence ends a Fence.
//
// Followers that are missing then have the whole timeout to come before updates are refused.
func (q *Quorum) Unfence() {
	q.mu.Lock()
	defer q.unlock()
	q.fence.Store(nil)
	now := time.Now()
	for n := range q.levels {
		if l := &q.levels[n]; !l.since.IsZero() {
			l.since = now
		}
	}
}

// Confirmed implements ulog.Confirmer. While there is a fence nothing may be told.
func (q *Quorum) Confirmed(usual, asked int) ulog.Stamp {
	if q.fence.Load() != nil {
		return 0
	}
	confirmed := ulog.Stamp(q.levels[min(asked, MaxReplicas)].confirmed.Load())
	if l := &q.levels[min(usual, MaxReplicas)]; !l.degraded.Load() {
		confirmed = min(confirmed, ulog.Stamp(l.confirmed.Load()))
	}
	return confirmed
}

// here returns the stamp that a member has acknowledged on a connection that is open, and whether
// it is there and not late. The caller holds mu.
func (m *member) here() (acked ulog.Stamp, present bool) {
	for _, v := range m.votes {
		acked = max(acked, v.acked)
		present = present || v.acked > 0 && !v.late
	}
	return acked, present
}

// eligible reports whether a member may count. The caller holds mu.
func (q *Quorum) eligible(m *member) bool { return q.counts == nil || q.counts(m.sid) }

// watch is a wait of a cluster, see quorum_await.go.
type watch struct {
	reached func() bool // asked under Quorum.mu
	done    chan struct{}
}

// tellWatches ends the watches that have reached what they wait for. The caller holds mu.
func (q *Quorum) tellWatches() {
	q.watches = slices.DeleteFunc(q.watches, func(w *watch) bool {
		if !w.reached() {
			return false
		}
		close(w.done)
		return true
	})
}
