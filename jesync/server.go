package jesync

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"gotycoon/access"
	"gotycoon/internal/metrics"
	"gotycoon/internal/netio"
	"gotycoon/internal/portserver"
	"gotycoon/primary"
)

const (
	// DefaultPort is the port of a lock server that was not told another.
	DefaultPort = 11400

	// DefaultMaxKeys is the number of keys of a server that was not told another.
	DefaultMaxKeys = 1_000_000

	// DefaultMaxWaiters is the number of waiting requests of a server that was not told another.
	DefaultMaxWaiters = 100_000

	defaultTimeout = 30 * time.Second
	defaultMemory  = 1 << 30
	maxLists       = 4                // lists that are made at once
	tick           = time.Millisecond // the clock does not look twice within
)

// Options of a Server. The zero value is usable.
type Options struct {
	MaxTTL     time.Duration // longest EXPIRES, in whole seconds: more is cut. 0 means 2^31-1 seconds
	MaxKeys    int           // keys in use: a new one beyond is refused. 0 means DefaultMaxKeys
	MaxWaiters int           // waiting requests of all keys: one more is refused. 0 means DefaultMaxWaiters
	MaxConns   int           // open connections; more are closed at once. 0 means no limit

	// MaxMemory bounds the names of the keys in use, in bytes: a new one beyond is refused. 0 means 1 GiB.
	MaxMemory int64

	// StrictOrder lets no request overtake one that waits, even if that allows fewer holders than there are.
	StrictOrder bool

	Fences  Fences        // where fencing tokens come from; nil: lock-fenced is refused
	Primary *primary.Role // which of several servers gives them out; nil: this one

	// Timeout is for how long a client may not take a single byte of its replies, before its connection is closed and its
	// locks are released; 0 means 30 seconds.
	Timeout time.Duration

	Access   *access.Guard     // who may do what; nil: everybody everything
	Meter    *metrics.Meter    // measures connections; nil: nobody does
	Requests *metrics.Protocol // made by NewRequests; nil: requests are not counted
	Limits   *netio.Limits     // of all connections of the process; nil means none

	Logger *slog.Logger // nil means silent
}

func (o *Options) setDefaults() {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.MaxWaiters <= 0 {
		o.MaxWaiters = DefaultMaxWaiters
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = defaultMemory
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// bounds are the limits as the table knows them.
func (o *Options) bounds() bounds {
	b := bounds{keys: int64(o.MaxKeys), waiters: int64(o.MaxWaiters), names: o.MaxMemory, expires: math.MaxInt32, strict: o.StrictOrder}
	if o.MaxTTL > 0 {
		b.expires = int32(min(max(1, o.MaxTTL/time.Second), math.MaxInt32))
	}
	return b
}

// Server serves locks on one port.
//
// Its goroutines are those of its port, the clock, the reservation of tokens, and one for each client that does not take what it is
// told; Close ends them and waits for them.
type Server struct {
	opts    Options
	table   *table
	started time.Time
	pool    *sync.Pool
	lists   chan struct{}      // a place for each list that is being made
	port    *portserver.Server // nil before Start
	quit    chan struct{}      // closed by Close
	workers sync.WaitGroup     // clock, tokens
	writers sync.WaitGroup     // see outbox.go
}

// New returns a server without locks. It reserves fencing tokens, if they are this server's to give out.
func New(o Options) (*Server, error) {
	o.setDefaults()
	tk := newTokens(o.Fences, o.Logger)
	if tk != nil {
		if err := o.Primary.Attach(tk); err != nil {
			return nil, err
		}
	}
	return &Server{
		opts:    o,
		table:   newTable(o.bounds(), tk),
		started: time.Now(),
		pool:    netio.NewPool(),
		lists:   make(chan struct{}, maxLists),
		quit:    make(chan struct{}),
	}, nil
}

// Start begins to serve the connections of l, which now belongs to the server. It is called once.
func (s *Server) Start(l net.Listener) {
	s.workers.Go(s.clock)
	if s.table.tokens != nil {
		s.workers.Go(func() { s.table.tokens.run(s.quit) })
	}
	s.port = portserver.Start(l, portserver.Options{Serve: s.serve, MaxConns: s.opts.MaxConns, Logger: s.opts.Logger})
}

// Close ends the connections, which releases all locks, and returns when all has ended. It is called once.
func (s *Server) Close() error {
	close(s.quit)
	s.workers.Wait()
	var err error
	if s.port != nil {
		if err = s.port.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	s.writers.Wait()
	return err
}

// now is the time since the start in nanoseconds. A wall clock that is set does not change it.
func (s *Server) now() int64 { return int64(time.Since(s.started)) }

// clock lets requests time out and locks expire.
func (s *Server) clock() {
	var st step
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-timer.C:
		case <-s.table.kick:
		}
		st.now = s.now()
		s.table.pass(&st)
		timer.Reset(s.untilNext())
	}
}

// untilNext is how long the clock may rest.
func (s *Server) untilNext() time.Duration {
	when := s.table.next()
	if when == never {
		return math.MaxInt64
	}
	return max(tick, time.Duration(when-s.now()))
}
