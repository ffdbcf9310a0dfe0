package replication

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/internal/rescue"
	"gotycoon/internal/vfs"
	"gotycoon/ulog"
)

// maxInterval is the largest pause per update: sums of them must not overflow.
const maxInterval = time.Hour

// Master says where updates come from, and how fast they may.
type Master struct {
	Host     string        // empty: none
	Port     int           // TCP port
	Interval time.Duration // each update costs so much time at least (-riv); 0: full speed
}

// FollowerOptions are the parts that a Follower works with.
type FollowerOptions struct {
	Catalog     *db.Catalog  // where updates go; those for databases it does not have are dropped
	SID         uint16       // this server's ID; updates with it are dropped
	RTS         string       // path of the RTS file (-rts)
	Master      Master       // to begin with
	GapContinue bool         // go on when an original master has not kept all updates (-gap-continue)
	CopyLimit   int64        // bytes per second of a copy (-copy-limit); 0: no limit
	Services    Services     // takes updates of the services' database; nil: they are dropped
	Logger      *slog.Logger // nil means silent

	// Silence is after which time without a message a master is given up. It sends heartbeats all the time. Default 5 s.
	Silence time.Duration

	// Dial connects to the master, within the time of ctx, and over TLS perhaps; nil means plain TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Follower pulls updates from a master, which may change at any time, and applies them. Start and Close are for its owner; the
// other methods may be called by many goroutines.
type Follower struct {
	opts   FollowerOptions
	dbs    []uint16 // databases that updates are taken for
	pool   *sync.Pool
	ownLog uint64 // ulog.LogKey of this server's log; 0: none
	status status // what others are told

	place    place      // where the follower is; used by run
	good     []byte     // place as it was remembered last
	next     []byte     // place as the commit under way remembers it
	unproven bool       // the update received last is not asked for once more at the next connection
	refresh  bool       // the services' database is to be copied
	moved    bool       // updates have come since the RTS file was written
	rts      *rtsFile   // used by run, and by the goroutine that saving is for
	saving   chan error // the RTS file is being written; nil: it is not
	saved    time.Time  // when that was begun last
	deferred string     // address that run has failed to reach since it last reached one
	refused  bool       // the master has refused the latest attempt, which has been said
	failed   string     // why the last copy has ended early
	attempts int        // in vain, since a connection that was good for something

	stop context.CancelFunc // ends run; nil before Start
	done sync.WaitGroup     // waits for run

	mu      sync.Mutex         // guards the fields below
	master  Master             // of the next round
	from    *ulog.Stamp        // where the next round begins, unless at position
	retuned context.CancelFunc // ends the round that is under way
	tuned   bool               // since the last round has begun
	recopy  bool               // the next round begins with copies of all databases
}

// OpenFollower finds out where the databases are. The RTS file is created if need be. Nothing is pulled before Start.
func OpenFollower(o FollowerOptions) (*Follower, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Silence <= 0 {
		o.Silence = silenceTimeout
	}
	o.Master.Interval = clampInterval(o.Master.Interval)
	rts, err := openRTS(vfs.OS{}, o.RTS)
	if err != nil {
		return nil, fmt.Errorf("open the RTS file: %w", err)
	}
	f := &Follower{opts: o, dbs: o.followed(), pool: netio.NewPool(), rts: rts, master: o.Master}
	if log := o.Catalog.Log(); log != nil {
		f.ownLog = ulog.LogKey(log.ID())
	}
	f.place = f.recall(rts.saved)
	f.good = f.place.encode()
	f.recallPartial()
	f.status.position.Store(uint64(f.place.position))
	f.status.set(f.idleState())
	return f, nil
}

// Start begins to pull. Further calls do nothing.
func (f *Follower) Start() {
	if f.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { _ = rescue.Do(f.opts.Logger, "following the master", func() { f.run(ctx) }) })
}

// Close ends the connection to the master and returns when the position is saved. It is called once, before the databases are
// closed, and not while Start runs.
func (f *Follower) Close() error {
	if f.stop != nil {
		f.stop()
		f.done.Wait()
	}
	return f.rts.close()
}

// Tune changes the master: an empty host means none. from and interval are left as they are where nil. The connection to the old
// master is ended, and one to the new is begun at once.
func (f *Follower) Tune(host string, port int, from *ulog.Stamp, interval *time.Duration) {
	fromText, intervalText := "*", "*"
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master.Host, f.master.Port = host, port
	if from != nil {
		f.from = new(*from)
		fromText = strconv.FormatUint(uint64(*from), 10)
	}
	if interval != nil {
		f.master.Interval = clampInterval(*interval)
		intervalText = fmt.Sprintf("%f", Milliseconds(f.master.Interval))
	}
	if f.tuned = true; host == "" {
		f.status.retune(None)
	} else {
		f.status.retune(Connecting)
	}
	f.system("replication setting was modified: host=%s port=%d ts=%s iv=%s", host, port, fromText, intervalText)
	if f.retuned != nil {
		f.retuned()
	}
}

// Master returns what Tune has set last.
func (f *Follower) Master() Master {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master
}

// Position returns the stamp in the master's log up to which everything is in the databases. following is false when there is no
// master: what is in the databases then has nothing to do with the stamp.
func (f *Follower) Position() (at ulog.Stamp, following bool) {
	return ulog.Stamp(f.status.position.Load()), f.Master().Host != ""
}

func (m Master) address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// Milliseconds is the number that an interval is on the command line and the network.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func clampInterval(d time.Duration) time.Duration { return max(0, min(d, maxInterval)) }

func (f *Follower) system(format string, args ...any) {
	f.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}
