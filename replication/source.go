package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gotycoon/binproto/frame"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

// SourceOptions of a Source.
type SourceOptions struct {
	Log       *ulog.Log
	SID       uint16           // this server's ID
	Databases int              // number of this server's databases
	Services  bool             // this server has a services' database besides
	Done      <-chan struct{}  // closed when the server stops: connections end within a heartbeat
	Replicas  *Replicas        // where followers are listed; nil means nowhere
	Logger    *slog.Logger     // nil means silent
	Now       func() time.Time // nil means time.Now

	// Grace is how long the log is held for a follower after it has acknowledged updates, see
	// holdGrace; 0 means 30 s.
	Grace time.Duration
}

// Source feeds followers from an update log. Each follower has the goroutine of its connection and
// its own pace: a follower that stalls delays no other. Followers at the end of the log share its
// newest updates in memory, the others read its files.
type Source struct {
	opts   SourceOptions
	copies copyHolds
	away   awayHolds

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
	if o.Replicas == nil {
		o.Replicas = new(Replicas)
	}
	return &Source{opts: o, refused: map[uint16]time.Time{}, told: map[uint16]*ulog.GapError{}}
}

// Serve answers a follower's request and streams updates until the connection or the server ends.
// Then the caller sends the rest of c.Out and closes the connection.
func (s *Source) Serve(c *netio.Conn, f frame.Follow, peer string) {
	hold := s.opts.Log.HoldWeakly(fmt.Sprintf("the slave with sid=%d", f.SID), ulog.Stamp(f.TS))
	defer hold.Release()
	who := idOf(f, peer)
	if extended(f) {
		s.away.back(who)
	} else {
		hold.EndsWith(c.Gone)
	}
	r, err := s.opts.Log.NewReader(ulog.Stamp(f.TS))
	if err != nil {
		s.opts.Logger.Error("opening an update log reader failed: " + err.Error())
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	defer r.Close()
	gap, _ := errors.AsType[*ulog.GapError](r.Lost())
	if !s.meetGap(r, f, gap) {
		c.Out = append(c.Out, byte(frame.Error))
		return
	}
	s.system("a slave was connected: ts=%d sid=%d", f.TS, f.SID)
	replica := s.opts.Replicas.add(s.opts.Log, peer, f)
	replica.hold = &followerHold{hold: hold, grace: s.opts.Grace, at: ulog.Stamp(f.TS), since: time.Now()}
	defer s.opts.Replicas.remove(replica)
	replica.gap.Store(gap != nil)
	c.Out = append(c.Out, byte(frame.Replication))
	st := stream{source: s, conn: c, reader: r, follow: f, replica: replica, timer: time.NewTimer(0)}
	defer st.timer.Stop()
	r.OnRoom(st.room)
	if err := st.run(); err != nil && !errors.Is(err, errEnded) {
		s.opts.Logger.Error(fmt.Sprintf("replication to the slave with sid=%d: %v", f.SID, err))
	}
	s.system("a slave was disconnected: sid=%d", f.SID)
	if extended(f) && !replica.gap.Load() { // otherwise it fetches copies
		s.away.leave(s.opts.Log, who, hold)
	}
}

// hello is the first message to a follower of our kind.
func (s *Source) hello(r *ulog.Reader) frame.Hello {
	return frame.Hello{SID: s.opts.SID, Gap: r.Lost() != nil, Log: s.opts.Log.ID(), First: uint64(r.Begins()),
		Last: uint64(s.opts.Log.Last()), Databases: uint16(s.opts.Databases), Services: s.opts.Services, Newest: true}
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

func extended(f frame.Follow) bool { return f.Extended() }

func (s *Source) system(format string, args ...any) {
	s.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}
