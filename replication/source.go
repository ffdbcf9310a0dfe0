package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/klog"
	"gotycoon/ulog"
)

// SourceOptions are the parts that a Source works with, and what it tells followers.
type SourceOptions struct {
	Log       *ulog.Log
	SID       uint16          // this server's ID
	Databases int             // number of this server's databases
	Services  bool            // this server has a services' database besides
	Done      <-chan struct{} // closed when the server stops: connections end within a heartbeat
	Replicas  *Replicas       // where followers are listed; nil means nowhere
	Quorum    *Quorum         // hears what followers acknowledge; nil: nobody waits for them

	// Past returns what this server has received as a follower, see succession.go. Nil: followers
	// are told nothing of it.
	Past func() *frame.Past

	Logger *slog.Logger     // nil means silent
	Now    func() time.Time // nil means time.Now

	// Away is how long the log is held for a follower that has gone, if it is of our kind; 0 means
	// 2 minutes.
	Away time.Duration
	// Most is how many bytes of log files may be kept for one follower, connected or away; 0 means
	// any number.
	Most int64

	// Grace is how long the log is held for a follower after it has acknowledged updates, see
	// holdGrace; 0 means 30 s.
	Grace time.Duration

	// Members: only acknowledgements on connections of servers count that have proved to be members
	// of the cluster. Anybody else who may replicate could say that it has what it has not.
	Members bool

	// Made returns the function that tells which updates were made in a term of the cluster, by
	// the log and the stamp of their origin. Lineage returns what this server's log says about
	// its data. Both are nil where there is no cluster.
	Made    func() func(log, stamp uint64) bool
	Lineage func() Lineage

	// Follows returns the term whose primary this server follows, 0 while it follows none. Lost
	// returns the function that tells which updates do not belong to the cluster's history, by the
	// log and the stamp of their origin. Both are set with Made.
	Follows func() uint64
	Lost    func() func(log, stamp uint64) bool

	// Position returns the stamp in the primary's log up to which this server has everything. It is
	// set with Made, for clients that watch a member that follows.
	Position func() (at ulog.Stamp, following bool)

	// Term returns the term of which this server is the primary, 0 while it is not; nil: it is in
	// no cluster. A stream that begins in a term ends with it: that is the caller's duty.
	Term func() uint64
}

// errEnded ends a stream without an error line: the follower or the server has gone.
var errEnded = errors.New("the connection has ended")

// Source feeds followers from an update log. Each follower has the goroutine of its connection and
// its own pace: a follower that stalls delays no other. Followers at the end of the log share its
// newest updates in memory, the others read its files.
type Source struct {
	opts   SourceOptions
	copies copyHolds

	mu      sync.Mutex                // protects the fields below, whose keys are server IDs
	refused map[uint16]time.Time      // when the log last said that a slave was refused
	told    map[uint16]*ulog.GapError // gaps of followers that may be going to fetch copies
}

// NewSource returns a source for the followers of a log.
func NewSource(o SourceOptions) *Source {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Grace == 0 {
		o.Grace = holdGrace
	}
	if o.Away == 0 {
		o.Away = awayLinger
	}
	if o.Replicas == nil {
		o.Replicas = new(Replicas)
	}
	return &Source{opts: o, refused: map[uint16]time.Time{}, told: map[uint16]*ulog.GapError{}}
}

// hello is the first message to a follower of our kind.
func (s *Source) hello(r *ulog.Reader) frame.Hello {
	h := frame.Hello{SID: s.opts.SID, Gap: r.Lost() != nil, Log: s.opts.Log.ID(), First: uint64(r.Begins()),
		Last: uint64(s.opts.Log.Last()), Databases: uint16(s.opts.Databases), Services: s.opts.Services, Newest: true}
	if s.opts.Term != nil {
		h.Term = s.opts.Term()
	}
	if s.opts.Past != nil {
		h.Past = s.opts.Past()
	}
	return h
}

// Copying lists a follower that fetches a copy of a database. It implements binproto.Source.
func (s *Source) Copying(peer string, r frame.CopyRequest) (end func()) {
	replica := s.opts.Replicas.add(s.opts.Log, peer, frame.Follow{Flags: frame.Extended, SID: uint16(r.Flags >> 16)})
	replica.copying.Store(true)
	s.tellCopied(uint16(r.Flags >> 16))
	release := s.copies.begin(s.opts.Log, uint16(r.Flags>>16))
	return func() {
		release()
		s.opts.Replicas.remove(replica)
	}
}

func (s *Source) system(format string, args ...any) {
	s.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}

// What becomes of a follower when updates that it needs have been removed from the log.
//
// A follower of our kind is told of the gap in a Hello, and fetches a copy. (It may also have asked
// once more for an update that it has, see parted.go; so the log line is written when the copy
// begins.)
//
// A slave of the original has no message for a gap. It would continue with the next update that is
// left, and its next position would hide that updates are missing. So it is refused, or cut off,
// before it is told any stamp behind the gap. It comes back with its old position and is refused
// again, until somebody gives it a copy or another position.
//
// A follower that asks for the log from its beginning (time stamp 0) gets what is left, as from the
// original. So do programs that print the log and are no slaves: they have no server ID, want the
// updates of one server only, or ask with frame.Remaining.

// refusedEvery: a refused slave comes back every second, but the log repeats the refusal only this
// often.
const refusedEvery = time.Minute

// meetGap handles a gap in front of the first update of a stream; gap is nil if there is none. It
// returns false if the follower is to be refused. For a follower that wants what is left, it has
// the reader skip the gap.
func (s *Source) meetGap(r *ulog.Reader, f frame.Follow, gap *ulog.GapError) bool {
	s.mu.Lock()
	delete(s.told, f.SID)
	if gap != nil && f.Extended() {
		s.told[f.SID] = gap
	}
	s.mu.Unlock()
	switch {
	case gap == nil || f.Extended():
		return true
	case f.TS == 0 || f.SID == 0 || f.Flags != 0:
		s.tellGap(f.SID, gap, "goes on with what is left; if it is a slave, give it a copy of the databases")
		r.SkipGap()
		return true
	}
	if s.refuses(f.SID, time.Now()) {
		s.tellGap(f.SID, gap, "is refused: "+remedy)
	}
	return false
}

const remedy = "give it a copy of the databases with the copy's time stamp in its RTS file, or have it go on without the missing updates from a " +
	"later time stamp (ktremotemgr tunerepl -ts)"

// tellGap logs which updates a follower misses, and what becomes of the follower.
func (s *Source) tellGap(sid uint16, gap *ulog.GapError, then string) {
	s.opts.Logger.Error(fmt.Sprintf("the slave with sid=%d misses updates, because files of the update log that held some newer than ts=%d have been "+
		"removed: it %s (%v)", sid, gap.From, then, gap))
}

// tellCopied logs once that a follower fetches copies, if it does so because of a gap.
func (s *Source) tellCopied(sid uint16) {
	s.mu.Lock()
	gap := s.told[sid]
	delete(s.told, sid)
	s.mu.Unlock()
	if gap != nil {
		s.tellGap(sid, gap, "will fetch a copy")
	}
}

// refuses reports whether the refusal of a slave is to be logged now.
func (s *Source) refuses(sid uint16, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.refused[sid]; known && now.Sub(last) < refusedEvery {
		return false
	}
	s.refused[sid] = now
	return true
}
