package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/ulog"
)

// maxInterval is the largest pause for each update: sums of pauses must not overflow.
const maxInterval = time.Hour

// Master says where updates come from, and how fast they may come.
type Master struct {
	Host     string        // empty: there is no master
	Port     int           // TCP port
	Interval time.Duration // each update takes at least this long (-riv); 0: full speed
}

// FollowerOptions are the parts that a Follower works with.
type FollowerOptions struct {
	Catalog     *db.Catalog  // gets the updates; updates of databases that it lacks are dropped
	SID         uint16       // this server's ID; updates with this ID are dropped
	RTS         string       // path of the RTS file (-rts)
	Master      Master       // the first master
	GapContinue bool         // go on if an original master has not kept all updates (-gap-continue)
	Cluster     bool         // a cluster says whom to follow (Succeed), and from where
	CopyLimit   int64        // bytes per second of a copy (-copy-limit); 0: no limit
	Services    Services     // takes updates of the services' database; nil: they are dropped
	Logger      *slog.Logger // nil means silent

	// Silence is how long a master may send nothing before the connection to it is given up. A
	// master sends heartbeats all the time. Default 5 s.
	Silence time.Duration

	// Dial connects to the master before ctx ends, for example over TLS; nil means plain TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Services takes a master's updates of the services' database. A master may change only some
// records of that database. *leader.Role implements it.
type Services interface {
	// Prepare looks at updates before they are stored. refresh asks for a copy of the master's
	// services' database, to be fetched after the updates are stored.
	Prepare(ups []ulog.Update) (refresh bool, err error)
	// Replicate stores updates as db.(*DB).Replicate does, except those of records that the master
	// may not change. copied says that the updates come from a copy.
	Replicate(p *db.Pending, ups []ulog.Update, note func(n int) *ulog.Position, copied bool) error
	// CaughtUp is called when everything that the master had is here.
	CaughtUp() error
	// Alone is called when there is no master, or the master has no services' database.
	Alone() error
	// Partial tells the services whether a copy of their database is still to be completed.
	Partial(on bool)
}

// Follower pulls updates from a master and applies them. The master may change at any time. Start
// and Close are for the Follower's owner; any goroutine may call the other methods.
type Follower struct {
	arrivals arrivals // of clients that wait for the position

	opts   FollowerOptions
	dbs    []uint16 // databases that updates are taken for
	ownLog uint64   // ulog.LogKey of this server's log; 0: none
	onTune func()   // see OnTune; nil: nobody wants to know
	status status
	known  atomic.Pointer[[]byte] // good, for other goroutines

	// The goroutine of run owns the fields from here to attempts.
	place    place      // includes what was received and is not durable yet
	good     []byte     // encoded place that was remembered last; see remember
	next     []byte     // encoded place that the commit under way remembers
	unproven bool       // the next connection does not ask once more for the update received last
	refresh  bool       // the services' database is to be copied
	moved    bool       // updates have come since the RTS file was written
	rts      *rtsFile   // while saving is not nil, its goroutine owns the file
	saving   chan error // gets the result of writing the RTS file; nil: it is not being written
	saved    time.Time  // when the last write of the RTS file began
	deferred string     // address that could not be reached since the last connection to a master
	refused  bool       // the master refused the latest connection, and the log says so
	failed   string     // why the last copy ended early
	attempts int        // connections in vain since the last useful one
	refusals int        // connections in a row that have ended because updates could not be stored
	early    int        // connections to a primary that has not begun its term
	elect    Election   // of the master of this round; zero: nobody has elected it
	lacking  time.Time  // since when the master has lacked updates that it may still receive

	stop context.CancelFunc // ends run; nil before Start
	done sync.WaitGroup     // waits for run, and for the writer of the RTS file

	mu      sync.Mutex         // protects the fields below
	master  Master             // of the next round
	from    *ulog.Stamp        // position for the next round; nil: that of place
	retuned context.CancelFunc // ends the present round
	tuned   bool               // Tune was called since the present round began
	recopy  bool               // the next round begins with copies of all databases
	elected *Election          // of the master of the next round; nil: nobody has elected it
	rest    rest
}

// Why a connection to a master ends, where the next step depends on it.
var (
	// errAgain: another connection is to be made at once.
	errAgain = errors.New("the connection is begun anew")

	// errCopy: databases are to be copied first.
	errCopy = errors.New("databases have to be copied")

	// errGap: the master's log does not reach back far enough.
	errGap = errors.New("the master has not kept the updates that this server needs")

	// errParted: the master lacks updates which this server has from it.
	errParted = errors.New("the master has lost updates that this server has from it")

	// errStranger: the new master has not followed the former one, or not as far as this server.
	errStranger = errors.New("the new master lacks updates that this server has from the former one")

	// errLagging: the new master may still receive what it lacks, see succession.go.
	errLagging = errors.New("the new master has not yet received all updates that this server has from the former one")

	// errOtherKind: a copy of the master's database cannot be stored in this server's.
	errOtherKind = errors.New("one of the databases has expiration times (ktopts=p is missing) and the other has not")

	// errTerm: the master is not the primary that was elected, not yet or not any more.
	errTerm = errors.New("the other server is not the primary of the cluster now")

	// errRefused: the other server does not want to be a master.
	errRefused = errors.New("the master refuses to be followed: it has no update log (-ulog), or its access file (-access) gives this server no " +
		"right to replicate, or it serves only its own machine; its log says why")
)

// Tune changes the master: an empty host means none. A nil from leaves the position as it is, a nil
// interval the interval. The connection to the old master ends, and the one to the new master
// begins at once.
func (f *Follower) Tune(host string, port int, from *ulog.Stamp, interval *time.Duration) {
	f.turn(host, port, from, interval, nil)
}

func (f *Follower) turn(host string, port int, from *ulog.Stamp, interval *time.Duration, e *Election) {
	fromText, intervalText := "*", "*"
	defer f.tellTuned() // after the lock is free
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
	f.elected = e
	f.rest.ordered++
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

// OnTune has tuned called after each Tune, without a lock of the Follower. It is called before
// Start.
func (f *Follower) OnTune(tuned func()) { f.onTune = tuned }

func (f *Follower) tellTuned() {
	if f.onTune != nil {
		f.onTune()
	}
}

// Recopy is called before Tune. If that call of Tune names a master, all databases of this server
// are replaced by copies of the master's, even where they hold newer records.
func (f *Follower) Recopy() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recopy = true
}

// Master returns the master that was set last.
func (f *Follower) Master() Master {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master
}

// Position returns the stamp in the master's log up to which every update is in the databases.
// following is false if there is no master: then the stamp says nothing about the databases.
func (f *Follower) Position() (at ulog.Stamp, following bool) {
	return ulog.Stamp(f.status.position.Load()), f.Master().Host != ""
}

// AwaitPosition returns the position when it has reached a stamp, or after limit.
func (f *Follower) AwaitPosition(want ulog.Stamp, limit time.Duration) ulog.Stamp {
	return f.arrivals.await(&f.status.position, want, limit)
}

// Status returns the present state of the replication.
func (f *Follower) Status() Status { return f.status.look(time.Now()) }

func (m Master) address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// Milliseconds returns an interval as the command line and the network have it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func clampInterval(d time.Duration) time.Duration { return max(0, min(d, maxInterval)) }

// databases returns the indexes of the databases that this server takes updates for.
func (o *FollowerOptions) databases() []uint16 {
	dbs := make([]uint16, 0, o.Catalog.Len()+1)
	for i := range o.Catalog.Len() {
		dbs = append(dbs, uint16(i))
	}
	if o.Services != nil {
		dbs = append(dbs, db.ServicesIndex)
	}
	return dbs
}

// shared returns the databases that both this server and a master have.
func (f *Follower) shared(h *frame.Hello) []uint16 {
	return slices.DeleteFunc(slices.Clone(f.dbs), func(i uint16) bool { return !masterHas(h, i) })
}

func masterHas(h *frame.Hello, i uint16) bool {
	if i == db.ServicesIndex {
		return h.Services
	}
	return i < h.Databases
}

// store stores updates of one database. copied says that they come from a copy.
func (f *Follower) store(p *db.Pending, index uint16, ups []ulog.Update, note func(n int) *ulog.Position, copied bool) (err error) {
	defer func() {
		if err == nil {
			f.refusals = 0
		}
	}()
	if index != db.ServicesIndex {
		return f.opts.Catalog.DB(int(index)).Replicate(p, ups, note, nil)
	}
	refresh, err := f.opts.Services.Prepare(ups)
	if err != nil {
		return err
	}
	if refresh && !copied {
		f.refresh = true
		f.place.copyAgain(index) // note remembers it together with the updates
	}
	return f.opts.Services.Replicate(p, ups, note, copied)
}

// dial connects to a master.
func (f *Follower) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f.opts.Dial == nil {
		dialer := net.Dialer{Timeout: connectTimeout}
		return dialer.DialContext(ctx, "tcp", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return f.opts.Dial(ctx, "tcp", addr)
}

// dialClient is dial for package client: questions and copies use the same kind of connection as
// updates.
func (f *Follower) dialClient(ctx context.Context, _, addr string) (net.Conn, error) {
	return f.dial(ctx, addr)
}

func (f *Follower) system(format string, args ...any) {
	f.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}

// connectTimeout limits connecting.
const connectTimeout = 10 * time.Second
