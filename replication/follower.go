package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db"
	"gotycoon/internal/klog"
	"gotycoon/internal/netio"
	"gotycoon/ulog"
)

const (
	// retryAfter is the pause before a master is called again. Up to a quarter is added by chance, so that the followers of
	// a master that was restarted do not all come at once.
	retryAfter = time.Second
	// retryRefused is the pause when this server cannot store what comes.
	retryRefused = 10 * time.Second
	// netTimeout limits connecting, and each wait for bytes or send space. A master sends heartbeats all the time.
	netTimeout = time.Minute
	// saveEvery is how far the RTS file may be behind while updates come.
	saveEvery = time.Second
	// maxInterval is the largest pause per update: sums of them must not overflow.
	maxInterval = time.Hour
)

// Master says where updates come from, and how fast they may.
type Master struct {
	Host     string        // empty: none
	Port     int           // TCP port
	Interval time.Duration // each update costs so much time at least (-riv); 0: full speed
}

// FollowerOptions are the parts that a Follower works with.
type FollowerOptions struct {
	Catalog *db.Catalog  // where updates go; those for databases it does not have are dropped
	SID     uint16       // this server's ID; updates with it are dropped
	RTS     string       // path of the RTS file (-rts)
	Master  Master       // to begin with
	Logger  *slog.Logger // nil means silent
}

// Follower pulls updates from a master, which may change at any time, and applies them. Start and Close are for its owner; the
// other methods may be called by many goroutines.
type Follower struct {
	opts     FollowerOptions
	pool     *sync.Pool
	position atomic.Uint64 // a ulog.Stamp: everything up to it is applied and safe; set by run

	rts      *rtsFile  // used by run
	saved    time.Time // when run wrote it last
	deferred string    // address that run has failed to reach since it last reached one

	stop context.CancelFunc // ends run; nil before Start
	done sync.WaitGroup     // waits for run

	mu      sync.Mutex         // guards the fields below
	master  Master             // of the next round
	from    *ulog.Stamp        // where the next round begins, unless at position
	retuned context.CancelFunc // ends the round that is under way
}

// OpenFollower reads the position in the RTS file, which is created if need be. Nothing is pulled before Start.
func OpenFollower(o FollowerOptions) (*Follower, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Master.Interval = clampInterval(o.Master.Interval)
	rts, err := openRTS(o.RTS)
	if err != nil {
		return nil, fmt.Errorf("open the RTS file: %w", err)
	}
	f := &Follower{opts: o, pool: netio.NewPool(), rts: rts, master: o.Master}
	f.position.Store(uint64(rts.saved))
	return f, nil
}

// Start begins to pull. Further calls do nothing.
func (f *Follower) Start() {
	if f.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { f.run(ctx) })
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
	return ulog.Stamp(f.position.Load()), f.Master().Host != ""
}

func (m Master) address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// Milliseconds is the number that an interval is on the command line and the network.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func clampInterval(d time.Duration) time.Duration { return max(0, min(d, maxInterval)) }

func (f *Follower) system(format string, args ...any) {
	f.opts.Logger.Log(context.Background(), klog.LevelSystem, fmt.Sprintf(format, args...))
}

// run does one round after the other until the context ends.
func (f *Follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		f.round(ctx)
	}
}

// round follows one master until the connection ends, and pauses. Tune ends a round early.
func (f *Follower) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := f.begin(cancel)
	if m.Host == "" {
		<-ctx.Done()
		return
	}
	sleep(ctx, f.follow(ctx, m))
}

// begin takes over what Tune has set. From now on Tune calls retuned.
func (f *Follower) begin(retuned context.CancelFunc) Master {
	f.mu.Lock()
	m, from := f.master, f.from
	f.from, f.retuned = nil, retuned
	f.mu.Unlock()
	if from != nil {
		f.position.Store(uint64(*from))
		f.save()
	}
	return m
}

// follow pulls from a master until the connection ends, and returns how long to wait before the next attempt.
func (f *Follower) follow(ctx context.Context, m Master) time.Duration {
	pause := retryAfter + rand.N(retryAfter/4)
	p, err := f.connect(ctx, m)
	if err != nil {
		if f.deferred != m.address() && ctx.Err() == nil {
			f.deferred = m.address()
			f.system("replication was deferred: host=%s port=%d", m.Host, m.Port)
			f.opts.Logger.Info(fmt.Sprintf("the master cannot be reached: %v", err))
		}
		return pause
	}
	f.deferred = ""
	f.system("replication started: host=%s port=%d rts=%d", m.Host, m.Port, f.position.Load())
	err = p.run(ctx)
	p.close()
	f.system("replication finished: host=%s port=%d", m.Host, m.Port)
	f.save()
	if e, ok := errors.AsType[*db.Error](err); ok {
		f.opts.Logger.Error(fmt.Sprintf("replication waits, since updates cannot be stored: %v", e))
		return retryRefused
	}
	if ctx.Err() == nil {
		f.opts.Logger.Info(fmt.Sprintf("the connection to the master has ended: %v", err))
	}
	return pause
}

// advance moves the position on and sees to it that the RTS file is not far behind.
func (f *Follower) advance(to ulog.Stamp) {
	if to > ulog.Stamp(f.position.Load()) {
		f.position.Store(uint64(to))
	}
	if time.Since(f.saved) >= saveEvery {
		f.save()
	}
}

// save puts the position into the RTS file, after the updates up to it are on the disk.
func (f *Follower) save() {
	f.saved = time.Now()
	at := ulog.Stamp(f.position.Load())
	if at == f.rts.saved {
		return
	}
	err := f.opts.Catalog.SyncLogs()
	if err == nil {
		err = f.rts.save(at)
	}
	if err != nil {
		f.opts.Logger.Error(fmt.Sprintf("writing the RTS file: %v", err))
	}
}
