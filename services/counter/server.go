// Package counter serves named counters of resources to many clients, as yrmcds does. The protocol
// is specified in yrmcds's documentation, "Counter support".
//
//	s := counter.New(counter.Options{})
//	s.Start(listener)
//	defer s.Close()
//
// A client acquires resources of a counter and says the maximum that all clients together may have;
// later it releases them. When a connection ends, everything that it has acquired is released.
// Counters are in memory only: a restart begins without counters, because it has ended all
// connections.
//
// The table of counters knows no socket and no byte layout: package frame has the layout, conn.go
// connects the two. Time is divided into intervals of the wall clock, usually days. Each counter
// has a maximum within the present interval, and a counter that has become 0 is kept until the
// interval ends, so that its maximum can be read.
package counter

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/services"
)

// Name is the name of the service.
const Name = "counter"

const (
	// DefaultBuckets is the default of Options.Buckets.
	DefaultBuckets = 1_000_000

	// DefaultStatsInterval is the default of Options.StatsInterval. Such an interval begins at
	// midnight UTC.
	DefaultStatsInterval = 24 * time.Hour

	defaultMemory = 1 << 30
	maxBuckets    = 1 << 28
	tick          = time.Second // how often the collector looks at the clock
	tallies       = 32          // connections share this number of tallies
)

// Options of a Server. The zero value is usable.
type Options struct {
	services.Options

	Buckets int // size of the hash table, 2^28 at most; 0 means DefaultBuckets
	// StatsInterval is the length of an interval, at least a second; 0 means DefaultStatsInterval.
	// Counters that are 0 are collected when an interval ends.
	StatsInterval time.Duration

	// MaxMemory bounds the bytes of the counters, as Stats.Memory counts them, and of the lists of
	// connections that hold more than a thousand counters. A new counter beyond is refused. 0 means
	// 1 GiB.
	MaxMemory int64

	Now func() time.Time // the wall clock; nil means time.Now
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
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Server serves counters on one port.
//
// Goroutines: the port's and the collector. Close ends them and waits for them.
type Server struct {
	*services.Port
	opts    Options
	table   *table
	quit    chan struct{}  // closed by Close
	workers sync.WaitGroup // the collector

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
		Port:  services.NewPort(Name, o.Options, commandNames()...),
		opts:  o,
		table: newTable(o.Buckets, o.MaxMemory),
		quit:  make(chan struct{}),
	}
}

// Start begins to serve the connections of l, which now belongs to the server. It is called once.
func (s *Server) Start(l net.Listener) {
	s.workers.Go(s.collector)
	s.Serve(l, s.begin)
}

// Close ends the connections, which releases all resources, and returns when all goroutines have
// ended. It is called once.
func (s *Server) Close() error {
	close(s.quit)
	err := s.Stop()
	s.workers.Wait()
	return err
}

// collector removes unused counters one tick after the start and at the beginning of each interval.
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

// interval returns the number of the present interval. A clock that is set back begins another
// interval, too.
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
