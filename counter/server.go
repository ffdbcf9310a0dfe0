// Package counter serves named counters of resources to many clients: the counter protocol of yrmcds.
//
//	s := counter.New(counter.Options{})
//	s.Start(listener)
//	defer s.Close()
//
// A client acquires resources of a counter, telling the maximum that all clients together may have, and releases them. What
// a connection has acquired is released when it ends. Counters are in memory only: a restart begins without any, because it
// has ended all connections.
//
// The counters (table) know no socket and no bytes of the protocol, which are in package frame; conn is what is between
// them. A wall-clock interval, a day, divides the time: each counter has a maximum within it, and a counter that is 0 stays
// until its end.
package counter

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/access"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
)

const (
	// DefaultBuckets is the size of the hash table of a server that was not told another.
	DefaultBuckets = 1_000_000

	// DefaultStatsInterval is the interval of a server that was not told another: it begins at midnight UTC.
	DefaultStatsInterval = 24 * time.Hour

	defaultTimeout = 30 * time.Second
	defaultMemory  = 1 << 30
	maxBuckets     = 1 << 28
	tick           = time.Second // the clock is looked at so often
	tallies        = 32
)

// Options of a Server. The zero value is usable.
type Options struct {
	MaxConns      int           // open connections; more are closed at once. 0 means no limit
	Buckets       int           // size of the hash table, 2^28 at most; 0 means DefaultBuckets
	StatsInterval time.Duration // interval of the maxima and of collections, at least a second; 0 means DefaultStatsInterval

	// MaxMemory bounds the counters, in bytes as Stats.Memory has them, and what each connection has of more than a thousand of
	// them: a new one beyond is refused. 0 means 1 GiB.
	MaxMemory int64

	// Timeout is for how long a client may not take a single byte of its replies, before its connection is closed and what
	// it holds is released; 0 means 30 seconds.
	Timeout time.Duration

	Access   *access.Guard     // who may do what; nil: everybody everything
	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewRequests; nil: requests are not counted
	Limits   *netio.Limits     // of all connections of the process; nil means none

	Logger *slog.Logger     // nil means silent
	Now    func() time.Time // the wall clock; nil means time.Now
}

func (o *Options) setDefaults() {
	if o.Buckets <= 0 {
		o.Buckets = DefaultBuckets
	}
	o.Buckets = min(o.Buckets, maxBuckets)
	if o.StatsInterval <= 0 {
		o.StatsInterval = DefaultStatsInterval
	}
	o.StatsInterval = max(time.Second, o.StatsInterval)
	if o.MaxMemory <= 0 {
		o.MaxMemory = defaultMemory
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Server serves counters on one port.
//
// Its goroutines are those of its port, and the collector; Close ends them and waits for them.
type Server struct {
	opts    Options
	table   *table
	pool    *sync.Pool
	port    *portserver.Server // nil before Start
	quit    chan struct{}      // closed by Close
	workers sync.WaitGroup     // the collector

	open     atomic.Int64
	accepted atomic.Uint64
	tallies  [tallies]tally

	mu   sync.Mutex // protects last
	last collection
}

// New returns a server without counters.
func New(o Options) *Server {
	o.setDefaults()
	return &Server{
		opts:  o,
		table: newTable(o.Buckets, o.MaxMemory),
		pool:  netio.NewPool(),
		quit:  make(chan struct{}),
	}
}

// Start begins to serve the connections of l, which now belongs to the server. It is called once.
func (s *Server) Start(l net.Listener) {
	s.workers.Go(s.collector)
	s.port = portserver.Start(l, portserver.Options{
		Serve:    s.serve,
		MaxConns: s.opts.MaxConns,
		Logger:   s.opts.Logger,
	})
}

// Close ends the connections, which releases all resources, and returns when all has ended. It is called once.
func (s *Server) Close() error {
	close(s.quit)
	var err error
	if s.port != nil {
		if err = s.port.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	s.workers.Wait()
	return err
}

// collector collects a moment after the start and in the beginning of each interval.
func (s *Server) collector() {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	interval, first := s.interval(), true
	for {
		select {
		case <-s.quit:
			return
		case <-clock.C:
		}
		now := s.interval()
		if now != interval {
			s.table.nextPeriod()
		}
		if now != interval || first {
			s.collect()
		}
		interval, first = now, false
	}
}

// interval is the number of the current one. A clock that is set back begins another one, too.
func (s *Server) interval() int64 {
	return s.opts.Now().Unix() / int64(s.opts.StatsInterval/time.Second)
}

func (s *Server) collect() {
	start := time.Now()
	found := s.table.collect()
	s.mu.Lock()
	defer s.mu.Unlock()
	found.last = time.Since(start)
	found.runs, found.all = s.last.runs+1, s.last.all+found.last
	s.last = found
}

func (s *Server) collected() collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
